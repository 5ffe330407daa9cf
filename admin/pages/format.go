package pages

import (
	"fmt"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/numfmt"
	"github.com/statsd-admin/statsd-admin/store"
)

// thin separates a number from its unit.
const thin = "\u202F"

// none stands for a value that does not exist.
const none = numfmt.None

// count returns n grouped.
func count[T ~int | ~int64 | ~uint32 | ~uint64](n T) string { return numfmt.Grouped(fmt.Sprint(n)) }

// plural returns n and a noun, with an s unless n is 1.
func plural[T ~int | ~int64 | ~uint32 | ~uint64](n T, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(n) + " " + noun + "s"
}

func sizeText(bytes float64) string {
	number, unit := numfmt.Size(bytes)
	return number + thin + unit
}

func measuredText(x float64, unit store.Unit) string {
	number, symbol := numfmt.Measured(x, unit.String())
	if symbol == "" {
		return number
	}
	return number + thin + symbol
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
