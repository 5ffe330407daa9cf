package layers

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// cell is the value of one key in one layer.
type cell struct {
	raw   string
	value value
}

// flatten converts nested values into cells by dotted key. Values are string, bool,
// numbers and map[string]any; others are errors. If several names lead to one key,
// the last in byte order wins: "a.b" over "b" in "a".
func flatten(values map[string]any) (map[string]cell, error) {
	out := make(map[string]cell)
	return out, flattenInto(out, "", values)
}

func flattenInto(out map[string]cell, prefix string, values map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		key, v := prefix+name, values[name]
		switch v := v.(type) {
		case string:
			out[key] = cell{v, parseText(v)}
		case bool:
			out[key] = cell{strconv.FormatBool(v), value{isBool: true, boolean: v}}
		case map[string]any:
			if isFractionValue(v) {
				c, err := fractionCell(v)
				if err != nil {
					return errInvalidValue(key)
				}
				out[key] = c
			} else if err := flattenInto(out, key+".", v); err != nil {
				return err
			}
		default:
			c, ok := numberCell(v)
			if !ok {
				return errInvalidValue(key)
			}
			out[key] = c
		}
	}
	return nil
}

// isFractionValue reports whether a mapping is a single value: it is empty or has a
// member of a fraction.
func isFractionValue(m map[string]any) bool {
	_, numerator := m["numerator"]
	_, denominator := m["denominator"]
	return len(m) == 0 || numerator || denominator
}

// fractionCell stores a mapping as compact JSON, and as a fraction if it is one.
func fractionCell(m map[string]any) (cell, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return cell{}, err
	}
	c := cell{raw: string(text)}
	f := FractionalPercent{Denominator: Hundred}
	for name, v := range m {
		val, ok := v.(string)
		if !ok {
			number, isNumber := numberCell(v)
			if !isNumber || number.value.double != float64(number.value.integer) {
				return c, nil
			}
			val = strconv.FormatUint(number.value.integer, 10)
		}
		if !f.set(name, val) {
			return c, nil
		}
	}
	c.value = value{isFraction: true, fraction: f}
	return c, nil
}

// numberCell formats a number like %g: at most six significant digits.
func numberCell(v any) (cell, bool) {
	var f float64
	var exact uint64 // 0: f is
	switch v := v.(type) {
	case float64:
		f = v
	case float32:
		f = float64(v)
	case int:
		f, exact = float64(v), uint64(max(v, 0))
	case int64:
		f, exact = float64(v), uint64(max(v, 0))
	case int32:
		f = float64(v)
	case uint32:
		f = float64(v)
	case uint64:
		f, exact = float64(v), v
	default:
		return cell{}, false
	}
	c := cell{sixDigits(f), numberValue(f)}
	if exact != 0 {
		c.value.integer, c.value.isInteger = exact, true
	}
	return c, c.value.isDouble
}

// sixDigits formats f with at most six significant digits and no trailing zeros.
func sixDigits(f float64) string {
	digits, exponent, hasExponent := strings.Cut(strconv.FormatFloat(f, 'g', 6, 64), "e")
	if strings.Contains(digits, ".") {
		digits = strings.TrimRight(strings.TrimRight(digits, "0"), ".")
	}
	if hasExponent {
		return digits + "e" + exponent
	}
	return digits
}
