package pages

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/store"
)

// thin separates a number from its unit.
const thin = "\u202F"

// none stands for a value that does not exist.
const none = "–"

// grouped returns a decimal number with groups of three digits and a true minus.
// Other texts are returned unchanged.
func grouped(number string) string {
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

// count returns n grouped.
func count[T ~int | ~int64 | ~uint32 | ~uint64](n T) string { return grouped(fmt.Sprint(n)) }

// plural returns n and a noun, with an s unless n is 1.
func plural[T ~int | ~int64 | ~uint32 | ~uint64](n T, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(n) + " " + noun + "s"
}

// figures returns x with three significant digits, or all digits of its whole part.
func figures(x float64) string {
	switch a := math.Abs(x); {
	case math.IsNaN(x):
		return none
	case math.IsInf(x, 0):
		return fmt.Sprint(x)
	case a == 0:
		return "0"
	case a >= 1e15 || a < 1e-6:
		return strconv.FormatFloat(x, 'g', 3, 64)
	case a >= 100:
		return grouped(strconv.FormatFloat(x, 'f', 0, 64))
	case a >= 10:
		return grouped(trimmed(x, 1))
	case a >= 1:
		return grouped(trimmed(x, 2))
	default:
		return grouped(trimmed(x, 2-int(math.Floor(math.Log10(a)))))
	}
}

// trimmed returns x with up to the given number of decimals.
func trimmed(x float64, decimals int) string {
	s := strconv.FormatFloat(x, 'f', decimals, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// rate returns a number per second.
func rate(x float64) string {
	if x == 0 || x >= 10_000 {
		return grouped(strconv.FormatFloat(x, 'f', 0, 64))
	}
	return grouped(strconv.FormatFloat(x, 'f', 1, 64))
}

// sizeUnits are the units of sizes, each 1,024 of the one before.
var sizeUnits = [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}

// size returns a number of bytes and its unit.
func size(bytes float64) (number, unit string) {
	i := 0
	for math.Abs(bytes) >= 1024 && i < len(sizeUnits)-1 {
		bytes /= 1024
		i++
	}
	return figures(bytes), sizeUnits[i]
}

// sizeUnit returns how many bytes a unit of [size] has.
func sizeUnit(unit string) uint64 { return 1 << (10 * slices.Index(sizeUnits[:], unit)) }

func sizeText(bytes float64) string {
	number, unit := size(bytes)
	return number + thin + unit
}

// measured returns a value of a histogram with its unit.
func measured(x float64, unit store.Unit) (number, symbol string) {
	if math.IsNaN(x) {
		return none, ""
	}
	switch unit.String() {
	case "bytes":
		return size(x)
	case "microseconds":
		return seconds(x / 1e6)
	case "milliseconds":
		return seconds(x / 1e3)
	case "seconds":
		return seconds(x)
	case "percent":
		return figures(x * 100), "%"
	}
	return figures(x), ""
}

// seconds returns a duration in the unit that suits it.
func seconds(s float64) (number, unit string) {
	switch a := math.Abs(s); {
	case a == 0:
		return "0", "ms"
	case a < 1e-3:
		return figures(s * 1e6), "µs"
	case a < 10:
		return figures(s * 1e3), "ms"
	}
	return figures(s), "s"
}

func measuredText(x float64, unit store.Unit) string {
	number, symbol := measured(x, unit)
	if symbol == "" {
		return number
	}
	return number + thin + symbol
}

// unitOf returns how many of a histogram's units a symbol of [measured] stands for.
func unitOf(unit store.Unit, symbol string) float64 {
	base := map[string]float64{"microseconds": 1e6, "milliseconds": 1e3, "seconds": 1}[unit.String()]
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
	return float64(sizeUnit(symbol))
}

// span returns a time span in its two greatest units.
func span(d time.Duration) string {
	d = d.Truncate(time.Second)
	days, hours, minutes := int(d.Hours())/24, int(d.Hours())%24, int(d.Minutes())%60
	switch {
	case d < 0:
		return "\u2212" + span(-d)
	case days > 0:
		return fmt.Sprintf("%d d %d h", days, hours)
	case hours > 0:
		return fmt.Sprintf("%d h %d min", hours, minutes)
	case minutes > 0:
		return fmt.Sprintf("%d min %d s", minutes, int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d s", int(d.Seconds()))
}

// when appends a time in UTC. Scripts turn it into local time.
func (v *view) when(t time.Time) {
	if t.IsZero() {
		v.Put(none)
		return
	}
	t = t.UTC()
	v.Put(h("<time datetime='"), t.Format(time.RFC3339), h("' title='"), t.Format("2006-01-02 15:04:05"), h(" UTC'>"),
		t.Format("2006-01-02 15:04:05"), h("Z</time>"))
}

// isoTime is the exact form of a time.
func isoTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}
