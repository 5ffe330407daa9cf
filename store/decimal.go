package store

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"
)

// appendUint appends v in decimal digits, as [strconv.AppendUint] does. It computes up
// to eight digits at once instead of one or two after another.
func appendUint(dst []byte, v uint64) []byte {
	if v < 10 {
		return append(dst, '0'+byte(v))
	}
	if v >= 1e8 {
		return strconv.AppendUint(dst, v, 10)
	}
	// Each step splits all parts of x, the first of which is the lowest. Its quotients
	// are exact for dividends of four and of two digits.
	x := v/1e4 | v%1e4<<32
	q := x * 10486 >> 20 & 0x7f_0000_007f
	x = q | (x-100*q)<<16
	q = x * 103 >> 10 & 0xf_000f_000f_000f
	x = q | (x-10*q)<<8

	zeros := bits.TrailingZeros64(x) / 8 // in front
	n := len(dst)
	dst = slices.Grow(dst, 8)[:n+8]
	binary.LittleEndian.PutUint64(dst[n:], (x|0x3030_3030_3030_3030)>>(8*zeros))
	return dst[:n+8-zeros]
}
