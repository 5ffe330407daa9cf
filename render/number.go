package render

import (
	"math"
	"strconv"
)

// appendFloat appends the shortest decimal that reads back as x, with an
// exponent only below 1e-4 and from 1e16 on.
func appendFloat(dst []byte, x float64) []byte {
	if a := math.Abs(x); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.AppendFloat(dst, x, 'e', -1, 64)
	}
	if x == math.Trunc(x) {
		return strconv.AppendInt(dst, int64(x), 10)
	}
	return strconv.AppendFloat(dst, x, 'f', -1, 64)
}

// appendTextFloat is appendFloat for plain text and the expositions, where not
// a number is "nan".
func appendTextFloat(dst []byte, x float64) []byte {
	if math.IsNaN(x) {
		return append(dst, "nan"...)
	}
	return appendFloat(dst, x)
}

// AppendJSONFloat appends x as a JSON number, with the digits of the text
// formats, or null if it is not a number.
func AppendJSONFloat(dst []byte, x float64) []byte {
	if math.IsNaN(x) {
		return append(dst, "null"...)
	}
	return appendFloat(dst, x)
}

// appendG appends x as C's %g with the given number of significant digits.
func appendG(dst []byte, x float64, digits int) []byte {
	if math.IsNaN(x) {
		return append(dst, "nan"...)
	}
	if x >= 0 && x < 100_000 && x == math.Trunc(x) {
		return strconv.AppendUint(dst, uint64(x), 10)
	}
	return strconv.AppendFloat(dst, x, 'g', digits, 64)
}
