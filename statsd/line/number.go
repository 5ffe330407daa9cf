package line

import (
	"bytes"
	"math"
	"strconv"
)

// maxCount is the largest value of a counter sample divided by its rate:
// float64 holds all whole numbers up to here.
const maxCount = 1 << 53

// Numbers reads the values of the samples. Split must have returned OK for a
// metric with valid fields.
func (p *Parser) Numbers(l *Line) Reason {
	l.Values = l.Values[:0]
	for i := range l.Samples {
		s := &l.Samples[i]
		if s.Type == Set {
			if len(s.Text) == 0 {
				return l.stop(l.offset(s.Text), EmptyValue)
			}
			continue
		}
		s.From = len(l.Values)
		for rest := s.Text; len(rest) > 0; {
			part := rest
			if c := bytes.IndexByte(rest, ':'); c >= 0 {
				part, rest = rest[:c], rest[c+1:]
				if c == 0 {
					continue
				}
			} else {
				rest = nil
			}
			v, r := s.value(part, l.SignedCounters, p.cfg.Exporter)
			if r != OK {
				return l.stop(l.offset(part), r)
			}
			l.Values = append(l.Values, Value{v, part[0] == '+' || part[0] == '-'})
		}
		s.To = len(l.Values)
		if s.From == s.To {
			return l.stop(l.offset(s.Text), EmptyValue)
		}
	}
	return OK
}

// offset returns the offset of part in l.Text.
func (l *Line) offset(part []byte) int { return cap(l.Text) - cap(part) }

// value parses one number and checks it against its type; signed allows
// negative counters, and anyTimer negative timers.
func (s *Sample) value(part []byte, signed, anyTimer bool) (float64, Reason) {
	v, r := parseNumber(part)
	if r != OK {
		return 0, r
	}
	switch s.Type {
	case Counter:
		if v < 0 && !signed {
			return 0, NegativeCounter
		}
		if math.Abs(v)/s.Rate > maxCount {
			return 0, OutOfRange
		}
	case Timer:
		if v < 0 && !anyTimer {
			return 0, NegativeTimer
		}
	}
	return v, OK
}

var pow10 = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// parseNumber parses all of b as a decimal number. It returns BadValue if b is
// not a number and NotFinite if its value is not finite. It rounds the digits that
// count, see parseLong, as strconv does: up to 15 digits, the digits and the power
// of ten are exact, and so is the rounding of their quotient.
func parseNumber(b []byte) (float64, Reason) {
	i := 0
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		i = 1
	}
	start := i
	var digits uint64
	for i < len(b) && b[i]-'0' <= 9 {
		digits = digits*10 + uint64(b[i]-'0')
		i++
	}
	n := i - start
	scale := 0
	if i < len(b) && b[i] == '.' {
		i++
		dot := i
		for i < len(b) && b[i]-'0' <= 9 {
			digits = digits*10 + uint64(b[i]-'0')
			i++
		}
		scale = i - dot
		n += scale
	}
	if n == 0 {
		return 0, notNumber(b[start:])
	}
	if i < len(b) || n > 15 {
		return parseLong(b, i)
	}
	v := float64(digits)
	if scale > 0 {
		v /= pow10[scale]
	}
	if b[0] == '-' {
		v = 0 - v
	}
	return v, OK
}

const (
	maxDigits = 19 // of a number that count

	// The first digits of the smallest number that rounds to infinity, e308, and of
	// the smallest normal number, e-308.
	infinite = "1797693134862315808"
	normal   = "2225073858507201384"
)

// parseLong is parseNumber for numbers with many digits or with an exponent at
// b[i]. Digits after the first maxDigits count as zeros, and numbers below the normal
// range of float64 are zero: strconv takes a thousand times as long for them as for
// others, so that a small flood could keep a processor busy.
func parseLong(b []byte, i int) (float64, Reason) {
	exp := 0 // of the last digit
	if i < len(b) {
		if b[i]|0x20 != 'e' {
			return 0, BadValue
		}
		digits := b[i+1:]
		negative := len(digits) > 0 && digits[0] == '-'
		if negative || len(digits) > 0 && digits[0] == '+' {
			digits = digits[1:]
		}
		if len(digits) == 0 {
			return 0, BadValue
		}
		for _, c := range digits {
			if c-'0' > 9 {
				return 0, BadValue
			}
			exp = min(exp*10+int(c-'0'), 1<<20) // more than a line has digits
		}
		if negative {
			exp = -exp
		}
	}
	var buf [32]byte
	n, fraction := 0, false
	for _, c := range b[:i] {
		switch {
		case c == '-' || c == '+':
		case c == '.':
			fraction = true
		case n == 0 && c == '0' || n == maxDigits: // leading zeros, digits that do not count
			if n > 0 {
				exp++
			}
			if fraction {
				exp--
			}
		default:
			buf[n] = c
			n++
			if fraction {
				exp--
			}
		}
	}
	digits := buf[:n]
	switch e := exp + n - 1; { // of the first digit
	case n == 0 || e < -308 || e == -308 && string(digits) < normal:
		return 0, OK
	case e > 308 || e == 308 && string(digits) >= infinite:
		return 0, NotFinite
	}
	v, _ := strconv.ParseFloat(text(strconv.AppendInt(append(digits, 'e'), int64(exp), 10)), 64)
	if b[0] == '-' {
		v = -v
	}
	return v, OK
}

// notNumber distinguishes infinities and NaN from other text.
func notNumber(b []byte) Reason {
	for _, word := range []string{"nan", "inf", "infinity"} {
		if len(b) == len(word) && equalFold(b, word) {
			return NotFinite
		}
	}
	return BadValue
}

func equalFold(b []byte, lower string) bool {
	for i, c := range b {
		if c|0x20 != lower[i] {
			return false
		}
	}
	return true
}
