package admin

import (
	"math"
	"strconv"

	"github.com/statsd-admin/statsd-admin/render"
)

// appendExactSigned appends n, as a string if JavaScript would round it.
func appendExactSigned(b []byte, n int64) []byte {
	const bound = 1 << 53
	if n >= bound || n <= -bound {
		return append(strconv.AppendInt(append(b, '"'), n, 10), '"')
	}
	return strconv.AppendInt(b, n, 10)
}

// thousandths rounds a rate, unless it is very high.
func thousandths(r float64) float64 {
	if math.Abs(r) < 1e12 {
		r = math.Round(r*1000)/1000 + 0 // no negative zero
	}
	return r
}

// appendRate appends a number per second, rounded to thousandths.
func appendRate(b []byte, r float64) []byte { return render.AppendJSONFloat(b, thousandths(r)) }

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
