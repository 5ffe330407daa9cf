package convert

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/statsd-admin/statsd-admin/internal/lazyregexp"
	"github.com/statsd-admin/statsd-admin/internal/oneline"
)

// section is a mapping of the result, with comments.
type section struct {
	items []item
}

// item is an entry of a section, or a comment.
type item struct {
	key   string
	value any    // nil for a comment; a text, a number, a switch, a list of them, a section or a list of sections
	text  string // of a comment
}

func (s *section) comment(text string) {
	s.items = append(s.items, item{text: oneline.Clean(text)})
}

func (s *section) set(key string, value any) {
	if i := s.find(key); i >= 0 {
		s.items[i].value = value
		return
	}
	s.items = append(s.items, item{key: key, value: value})
}

func (s *section) find(key string) int {
	return slices.IndexFunc(s.items, func(it item) bool { return it.value != nil && it.key == key })
}

// has reports whether an entry is set.
func (s *section) has(key string) bool { return s.find(key) >= 0 }

// child returns the section of an entry. It creates the entry if necessary.
func (s *section) child(key string) *section {
	if i := s.find(key); i >= 0 {
		return s.items[i].value.(*section)
	}
	made := new(section)
	s.set(key, made)
	return made
}

// add appends a section to the list of an entry. It creates the entry if necessary.
func (s *section) add(key string) *section {
	made := new(section)
	var all []*section
	if i := s.find(key); i >= 0 {
		all = s.items[i].value.([]*section)
	}
	s.set(key, append(all, made))
	return made
}

// append appends the section as YAML. Each line is indented.
func (s *section) append(to []byte, indent int) []byte {
	margin := strings.Repeat("  ", indent)
	for _, it := range s.items {
		switch v := it.value.(type) {
		case nil:
			to = append(to, margin+"# "+it.text+"\n"...)
		case *section:
			if v.entries() > 0 {
				to = append(to, margin+it.key+":\n"...)
				to = v.append(to, indent+1)
			} else {
				to = v.append(to, indent) // nothing but comments
			}
		case []*section:
			to = append(to, margin+it.key+":\n"...)
			for _, e := range v {
				text := e.append(nil, indent+1)
				first := len(margin)
				for bytes.HasPrefix(text[first+2:], []byte("# ")) { // comments stand before the dash
					end := bytes.IndexByte(text, '\n') + 1
					to = append(append(to, margin...), text[first+2:end]...)
					text = text[end:]
				}
				to = append(append(to, margin+"- "...), text[first+2:]...)
			}
		default:
			to = append(append(append(to, margin+quoted(it.key)+": "...), scalar(v)...), '\n')
		}
	}
	return to
}

// entries returns the number of entries, without comments.
func (s *section) entries() (n int) {
	for _, it := range s.items {
		if it.value != nil {
			n++
		}
	}
	return n
}

// scalar returns a value in the flow style of YAML.
func scalar(v any) string {
	switch v := v.(type) {
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case string:
		return quoted(v)
	case []string:
		return list(v)
	case []float64:
		return list(v)
	}
	panic("convert: a value of an unknown type")
}

func list[T any](values []T) string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = scalar(v)
	}
	return "[" + strings.Join(all, ", ") + "]"
}

var (
	plain   = lazyregexp.New(`^(?:/?[A-Za-z_][A-Za-z0-9_./-]*|[0-9]+(?:\.[0-9]+)?(?:ms|s|m|h)(?:[0-9]+(?:\.[0-9]+)?(?:ms|s|m|h))*|[0-9]{1,3}(?:\.[0-9]{1,3}){3})$`)
	notText = lazyregexp.New(`^(?i:y|n|yes|no|on|off|true|false|null|nan|inf)$`)
)

// quoted returns a text of YAML, in quotes unless it cannot be taken for anything else.
// The escapes of Go are escapes of YAML.
func quoted(s string) string {
	if plain().MatchString(s) && !notText().MatchString(s) {
		return s
	}
	return strconv.Quote(strings.ToValidUTF8(s, "\uFFFD"))
}
