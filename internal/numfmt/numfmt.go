// Package numfmt formats numbers for people, in the same way on the pages and in a
// terminal.
package numfmt

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
)

// None stands for a value that does not exist.
const None = "–"

// Grouped returns a decimal number with groups of three digits and a minus sign (U+2212).
// Other texts are returned unchanged.
func Grouped(number string) string {
	digits, sign := number, ""
	if strings.HasPrefix(digits, "-") {
		digits, sign = digits[1:], "\u2212"
	}
	whole, rest := digits, ""
	if at := strings.IndexAny(digits, ".eE"); at >= 0 {
		whole, rest = digits[:at], digits[at:]
	}
	if whole == "" || strings.Trim(whole, "0123456789") != "" {
		return number
	}
	var b strings.Builder
	b.WriteString(sign)
	for i, c := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String() + rest
}

// Significant returns x with three significant digits, or all digits of its whole part.
func Significant(x float64) string {
	switch a := math.Abs(x); {
	case math.IsNaN(x):
		return None
	case math.IsInf(x, 0):
		return fmt.Sprint(x)
	case a == 0:
		return "0"
	case a >= 1e15 || a < 1e-6:
		return strconv.FormatFloat(x, 'g', 3, 64)
	case a >= 100:
		return Grouped(strconv.FormatFloat(x, 'f', 0, 64))
	case a >= 10:
		return Grouped(Trimmed(x, 1))
	case a >= 1:
		return Grouped(Trimmed(x, 2))
	default:
		return Grouped(Trimmed(x, 2-int(math.Floor(math.Log10(a)))))
	}
}

// Trimmed returns x with up to the given number of decimals.
func Trimmed(x float64, decimals int) string {
	s := strconv.FormatFloat(x, 'f', decimals, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// Rate returns a number per second.
func Rate(x float64) string {
	if x == 0 || x >= 10_000 {
		return Grouped(strconv.FormatFloat(x, 'f', 0, 64))
	}
	return Grouped(strconv.FormatFloat(x, 'f', 1, 64))
}

// Difference returns the difference of two decimal numbers, exact if both are whole, or
// "" if one is not a number.
func Difference(now, base string) string {
	if len(now) < 19 && len(base) < 19 { // neither they nor the difference overflow
		a, errA := strconv.ParseInt(now, 10, 64)
		b, errB := strconv.ParseInt(base, 10, 64)
		if errA == nil && errB == nil {
			return strconv.FormatInt(a-b, 10)
		}
	}
	a, wholeA := new(big.Int).SetString(now, 10)
	b, wholeB := new(big.Int).SetString(base, 10)
	if wholeA && wholeB {
		return a.Sub(a, b).String()
	}
	x, errX := strconv.ParseFloat(now, 64)
	y, errY := strconv.ParseFloat(base, 64)
	if errX != nil || errY != nil {
		return ""
	}
	return strconv.FormatFloat(x-y, 'g', 12, 64)
}

// Signed returns a change with its sign.
func Signed(change string) string {
	switch {
	case change == "":
		return None
	case change == "0" || strings.HasPrefix(change, "-"):
		return Grouped(change)
	}
	return "+" + Grouped(change)
}

// sizeUnits are the units of sizes, each 1,024 of the one before.
var sizeUnits = [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}

// Size returns a number of bytes and its unit.
func Size(bytes float64) (number, unit string) {
	i := 0
	for math.Abs(bytes) >= 1024 && i < len(sizeUnits)-1 {
		bytes /= 1024
		i++
	}
	return Significant(bytes), sizeUnits[i]
}

// SizeUnit returns how many bytes a unit of [Size] has.
func SizeUnit(unit string) uint64 { return 1 << (10 * slices.Index(sizeUnits[:], unit)) }

// Measured returns a value of a histogram with its unit.
func Measured(x float64, unit string) (number, symbol string) {
	if math.IsNaN(x) {
		return None, ""
	}
	switch unit {
	case "bytes":
		return Size(x)
	case "microseconds":
		return Seconds(x / 1e6)
	case "milliseconds":
		return Seconds(x / 1e3)
	case "seconds":
		return Seconds(x)
	case "percent":
		return Significant(x * 100), "%"
	}
	return Significant(x), ""
}

// Seconds returns a duration in the unit that suits it.
func Seconds(s float64) (number, unit string) {
	switch a := math.Abs(s); {
	case a == 0:
		return "0", "ms"
	case a < 1e-3:
		return Significant(s * 1e6), "µs"
	case a < 10:
		return Significant(s * 1e3), "ms"
	}
	return Significant(s), "s"
}

// UnitOf returns how many of a histogram's units a symbol of [Measured] stands for.
func UnitOf(unit string, symbol string) float64 {
	base := map[string]float64{"microseconds": 1e6, "milliseconds": 1e3, "seconds": 1}[unit]
	switch symbol {
	case "":
		return 1
	case "%":
		return 0.01
	case "µs":
		return base / 1e6
	case "ms":
		return base / 1e3
	case "s":
		return base
	}
	return float64(SizeUnit(symbol))
}

// Age returns an age in its largest unit.
func Age(d time.Duration) string {
	switch {
	case d < time.Second:
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d.Hours()/24))
}

// Span returns a time Span in its two greatest units.
func Span(d time.Duration) string {
	d = d.Truncate(time.Second)
	days, hours, minutes := int(d.Hours())/24, int(d.Hours())%24, int(d.Minutes())%60
	switch {
	case d < 0:
		return "\u2212" + Span(-d)
	case days > 0:
		return fmt.Sprintf("%d d %d h", days, hours)
	case hours > 0:
		return fmt.Sprintf("%d h %d min", hours, minutes)
	case minutes > 0:
		return fmt.Sprintf("%d min %d s", minutes, int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d s", int(d.Seconds()))
}
