package top

import (
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/statsd-admin/statsd-admin/internal/numfmt"
)

// wide reports whether a character takes two columns.
func wide(r rune) bool {
	switch {
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf && r != 0x303f, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6,
		r >= 0x1f300 && r <= 0x1f64f, r >= 0x1f680 && r <= 0x1f6ff, r >= 0x1f900 && r <= 0x1f9ff, r >= 0x20000 && r <= 0x3fffd:
		return true
	}
	return false
}

// columnsOf returns how many columns a character takes.
func columnsOf(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case wide(r):
		return 2
	}
	return 1
}

func width(s string) (n int) {
	for _, r := range s {
		n += columnsOf(r)
	}
	return n
}

// fit returns s in exactly n columns. Of a text that is too long, the beginning and
// the end are kept.
func (st Style) fit(s string, n int) string {
	w := width(s)
	if w <= n {
		return s + strings.Repeat(" ", n-w)
	}
	mark := "…"
	if st.ASCII {
		mark = "~"
	}
	if n <= 1 {
		return strings.Repeat(mark, max(n, 0))
	}
	runes := []rune(s)
	head, tail, used := 0, len(runes), 1
	for front := true; ; front = !front {
		next := head
		if !front {
			next = tail - 1
		}
		if used += columnsOf(runes[next]); used > n {
			used -= columnsOf(runes[next])
			break
		}
		if front {
			head++
		} else {
			tail--
		}
	}
	return string(runes[:head]) + mark + string(runes[tail:]) + strings.Repeat(" ", n-used)
}

// right returns s at the right end of n columns.
func (st Style) right(s string, n int) string {
	if w := width(s); w < n {
		return strings.Repeat(" ", n-w) + s
	}
	return st.fit(s, n)
}

// spelled returns a text of package numfmt for a terminal.
func (st Style) spelled(text string) string {
	if st.ASCII {
		return strings.NewReplacer("\u2212", "-", numfmt.None, "-", "µ", "u").Replace(text)
	}
	return text
}

// fitted returns a number as the pages show it if it fits in n columns, n being 5 at
// least. Otherwise it gets a suffix for a power of 1000.
func (st Style) fitted(text string, x float64, n int) string {
	if text = st.spelled(text); width(text) > n {
		return st.spelled(short(x, n))
	}
	return text
}

// number returns a number in at most n columns.
func (st Style) number(x float64, n int) string { return st.fitted(numfmt.Grouped(exact(x)), x, n) }

// rate returns a number per second in at most n columns, or nothing for 0.
func (st Style) rate(x float64, n int) string {
	if x == 0 {
		return ""
	}
	return st.fitted(numfmt.Rate(x), x, n)
}

// change returns a number with its sign in at most n columns, or nothing for 0.
func (st Style) change(exact string, n int) string {
	x, _ := strconv.ParseFloat(exact, 64)
	if x == 0 {
		return ""
	}
	text := numfmt.Signed(exact)
	if width(text) > n && x > 0 {
		return "+" + st.spelled(short(x, n-1))
	}
	return st.fitted(text, x, n)
}

// measured returns a value of a histogram with its unit in at most n columns.
func (st Style) measured(x float64, unit string, n int) string {
	number, symbol := numfmt.Measured(x, unit)
	if symbol == "" {
		return st.fitted(number, x, n)
	}
	if number += " "; width(number+symbol) > n {
		number = st.fitted(strings.TrimSpace(number), x/numfmt.UnitOf(unit, symbol), n-width(symbol))
	}
	return st.spelled(number + symbol)
}

// exact returns a number without the noise of the difference of two.
func exact(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 12, 64)
}

// short returns a number in at most n columns, n being 5 at least, with three
// significant digits or a suffix for a power of 1000.
func short(x float64, n int) string {
	if x < 0 {
		return "\u2212" + short(-x, n-1)
	}
	if s := numfmt.Significant(x); x < 1e15 && width(s) <= n {
		return s
	}
	for digits := 3; digits >= 0 && x < 1000; digits-- {
		if s := numfmt.Trimmed(x, digits); len(s) <= n {
			return s
		}
	}
	rest := x
	for _, unit := range []string{"k", "M", "G", "T", "P", "E"} {
		rest /= 1000
		for digits := 2; digits >= 0 && rest < 1000; digits-- {
			if s := strconv.FormatFloat(rest, 'f', digits, 64) + unit; len(s) <= n {
				return s
			}
		}
	}
	return strconv.FormatFloat(x, 'e', 0, 64)
}

// levels draws a line of values, each between 0 and the greatest.
func (st Style) levels(values []float64) string {
	steps := []rune(" ▁▂▃▄▅▆▇█")
	if st.ASCII {
		steps = []rune(" .:-=+*#@")
	}
	top := 0.0
	for _, v := range values {
		top = max(top, v)
	}
	var b strings.Builder
	for _, v := range values {
		i := 0
		if top > 0 && v > 0 {
			i = min(max(int(math.Ceil(v/top*float64(len(steps)-1))), 1), len(steps)-1)
		}
		b.WriteRune(steps[i])
	}
	return b.String()
}

// bar draws a share of n columns.
func (st Style) bar(share float64, n int) string {
	full, empty := "█", "░"
	if st.ASCII {
		full, empty = "#", "."
	}
	filled := int(math.Round(min(max(share, 0), 1) * float64(n)))
	if share > 0 {
		filled = max(filled, 1)
	}
	return strings.Repeat(full, filled) + strings.Repeat(empty, n-filled)
}
