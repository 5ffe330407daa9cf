package decode

import (
	"strconv"
	"strings"
)

// trail is the current path of a walk over a message. It becomes text only for an
// error. The zero trail is the whole message.
type trail struct{ steps []step }

// step is a field, an entry of a map or an element of a list.
type step struct {
	name  string // a field, or the key of an entry; empty for an element
	index int    // of an element
	entry bool   // name is a key
}

// field enters a field, item an element of a list, key an entry of a map. back leaves
// it.
func (t *trail) field(name string) { t.steps = append(t.steps, step{name: name}) }
func (t *trail) item(i int)        { t.steps = append(t.steps, step{index: i}) }
func (t *trail) key(k string)      { t.steps = append(t.steps, step{name: k, entry: true}) }
func (t *trail) back()             { t.steps = t.steps[:len(t.steps)-1] }

// path returns the path as error texts show it, with further fields below it.
func (t *trail) path(below ...string) string {
	var b strings.Builder
	for _, s := range t.steps {
		switch {
		case s.entry:
			b.WriteString("[" + quote(s.name, false) + "]")
		case s.name == "":
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		default:
			dot(&b, s.name)
		}
	}
	for _, name := range below {
		dot(&b, name)
	}
	return b.String()
}

func dot(b *strings.Builder, name string) {
	if b.Len() > 0 {
		b.WriteByte('.')
	}
	b.WriteString(name)
}
