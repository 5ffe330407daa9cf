package admin

import (
	"math"
	"strconv"

	"github.com/statsd-admin/statsd-admin/render"
)

func appendJSONString(b []byte, text string) []byte {
	b = render.AppendJSONText(append(b, '"'), text)
	return append(b, '"')
}

// exactBelow is the first number from which on JavaScript rounds.
const exactBelow = 1 << 53

// appendExact appends n, quoted if JavaScript would round it.
func appendExact(b []byte, n uint64) []byte {
	if n >= exactBelow {
		return append(strconv.AppendUint(append(b, '"'), n, 10), '"')
	}
	return strconv.AppendUint(b, n, 10)
}

func appendExactSigned(b []byte, n int64) []byte {
	if n >= exactBelow || n <= -exactBelow {
		return append(strconv.AppendInt(append(b, '"'), n, 10), '"')
	}
	return strconv.AppendInt(b, n, 10)
}

// appendRate appends a number per second, rounded to thousandths.
func appendRate(b []byte, r float64) []byte {
	if math.Abs(r) < 1e12 {
		r = math.Round(r*1000)/1000 + 0 // no negative zero
	}
	return render.AppendJSONFloat(b, r)
}

// appendNumbers appends a list of numbers, with null for NaN.
func appendNumbers(b []byte, list []float64) []byte {
	b = append(b, '[')
	for i, x := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = render.AppendJSONFloat(b, x)
	}
	return append(b, ']')
}
