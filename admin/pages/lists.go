package pages

import (
	"strings"

	"github.com/statsd-admin/statsd-admin/store"
)

// number returns the value of a counter or gauge of the server by its name.
func number(list *store.View, name string) (value float64, ok bool) {
	c, ok := list.Find(name)
	if !ok || c.Kind() != store.KindCounter && c.Kind() != store.KindGauge {
		return 0, false
	}
	return c.Float(), true
}

// pairs appends names and values as a list. body calls pair for each.
func (v *view) pairs(body func(pair func(name string, value func()))) {
	v.Put(h("<dl class='pad pairs'>"))
	body(func(name string, value func()) {
		v.Put(h("<dt>"), name, h("</dt><dd class='num'>"))
		value()
		v.Put(h("</dd>"))
	})
	v.Put(h("</dl>\n"))
}

// text returns a function that appends parts.
func (v *view) text(parts ...any) func() { return func() { v.Put(parts...) } }

// exact returns a function that appends a number in short, with its exact value.
func (v *view) exact(x float64, shown string) func() {
	return v.text(h("<span data-value='"), exactValue(x), h("'>"), shown, h("</span>"))
}

// page returns the offset and the number of rows to show.
func (v *view) window(sizes ...string) (offset, limit int) {
	limit = atoi(v.choice("rows", sizes...), 1000)
	return atoi(v.query.Value("offset"), 1<<30), limit
}

// atoi returns an integer from 0 to the given maximum, 0 for anything else.
func atoi(s string, most int) int {
	n := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0
		}
		n = min(n*10+int(c-'0'), most)
	}
	return n
}

// dotted appends a name that can break behind its dots and underscores.
func (v *view) dotted(name string) {
	for {
		at := strings.IndexAny(name, "._")
		if at < 0 || at == len(name)-1 {
			v.Put(name)
			return
		}
		v.Put(name[:at+1], h("<wbr>"))
		name = name[at+1:]
	}
}

// shared returns the length of the beginning that a name shares with the name above
// it, up to a dot. It is shown quietly.
func shared(above, name string) int {
	at := 0
	for i := 0; i < len(above) && i < len(name) && above[i] == name[i]; i++ {
		if name[i] == '.' {
			at = i + 1
		}
	}
	return at
}
