package layers

import (
	"cmp"
	"math"
	"strconv"
	"strings"
)

// Denominator is the denominator of a [FractionalPercent].
type Denominator uint32

// The denominators.
const (
	Hundred     Denominator = 100
	TenThousand Denominator = 10_000
	Million     Denominator = 1_000_000
)

// FractionalPercent is a fraction of cases. A denominator of 0 means Hundred.
type FractionalPercent struct {
	Numerator   uint32
	Denominator Denominator
}

// Enabled decides one case: it is true for Numerator out of Denominator random
// numbers, and always if the numerator exceeds the denominator. Equal numbers give
// equal answers, which makes decisions sticky.
func (f FractionalPercent) Enabled(random uint64) bool {
	d := cmp.Or(f.Denominator, Hundred)
	return random%uint64(d) < uint64(f.Numerator)
}

// value holds the conversions of one text or number to each type.
type value struct {
	integer  uint64
	double   float64
	fraction FractionalPercent

	isInteger, isDouble, isBool, isFraction bool
	boolean                                 bool
}

// parseText parses a text from disk, the admin layer or a text field.
func parseText(raw string) value {
	text := strings.TrimSpace(raw)
	if v, ok := parseNumber(text); ok {
		return v
	}
	switch {
	case strings.EqualFold(text, "true"):
		return value{isBool: true, boolean: true}
	case strings.EqualFold(text, "false"):
		return value{isBool: true}
	}
	if f, ok := parseFraction(text); ok {
		return value{isFraction: true, fraction: f}
	}
	return value{}
}

// parseNumber parses a decimal number. It rejects hexadecimal forms, infinities and
// underscores.
func parseNumber(text string) (value, bool) {
	if text == "" || strings.ContainsAny(text, "xXpPiInN_") {
		return value{}, false
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return value{}, false
	}
	v := numberValue(f)
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		v.integer, v.isInteger = n, true // exact beyond 2^53
	}
	return v, true
}

// numberValue returns the conversions of a number: any number is a double, a
// non-negative one an integer (rounded down), a whole one a boolean.
func numberValue(f float64) value {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return value{}
	}
	v := value{double: f, isDouble: true}
	if f >= 0 && f < math.MaxUint64 {
		v.integer, v.isInteger = uint64(f), true
	}
	if f == math.Trunc(f) && math.Abs(f) < math.MaxInt32 {
		v.isBool, v.boolean = true, f != 0
	}
	return v
}

// parseFraction parses a mapping with the members numerator and denominator in common
// YAML forms: one member per line, or {a: b, c: d}, with or without quotes. Anything
// else is not a fraction.
func parseFraction(text string) (FractionalPercent, bool) {
	f := FractionalPercent{Denominator: Hundred}
	separators := "\n"
	if inner, ok := strings.CutPrefix(text, "{"); ok {
		inner, ok = strings.CutSuffix(inner, "}")
		if !ok {
			return FractionalPercent{}, false
		}
		text, separators = inner, "\n,"
	} else if text == "" {
		return FractionalPercent{}, false
	}
	seen := ""
	for member := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
		if member = strings.TrimSpace(member); member == "" {
			continue
		}
		name, val, ok := strings.Cut(member, ":")
		name, val = unquote(name), unquote(val)
		if !ok || name == seen || !f.set(name, val) {
			return FractionalPercent{}, false
		}
		seen = name // two members exist, so a third one repeats or is unknown
	}
	return f, true
}

// unquote strips blanks and one pair of quotes.
func unquote(s string) string {
	s = strings.TrimSpace(s)
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

// set parses one member and reports whether it is valid.
func (f *FractionalPercent) set(name, val string) bool {
	switch name {
	case "numerator":
		n, err := strconv.ParseUint(val, 10, 32)
		f.Numerator = uint32(n)
		return err == nil
	case "denominator":
		d, ok := denominators[val]
		f.Denominator = d
		return ok
	}
	return false
}

// denominators by name and by enumeration number.
var denominators = map[string]Denominator{
	"HUNDRED": Hundred, "TEN_THOUSAND": TenThousand, "MILLION": Million,
	"0": Hundred, "1": TenThousand, "2": Million,
}
