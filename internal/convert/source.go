package convert

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/statsd-admin/statsd-admin/internal/conftree"
	"github.com/statsd-admin/statsd-admin/internal/lazyregexp"
)

// object is a group of settings. Methods of a nil object find nothing.
type object struct {
	c     *conversion
	path  string
	keys  []string // in the order of the file
	items map[string]*value
}

// value is a setting. Methods of a nil value return zero values.
type value struct {
	c     *conversion
	key   *yaml.Node // where the setting begins
	node  *yaml.Node
	path  string
	taken bool

	expanded bool // environment variables are replaced
}

// newObject returns the settings of a node. If the node is not a mapping, it adds an error
// and returns nil.
func (c *conversion) newObject(n *yaml.Node, path string) *object {
	if n.Kind != yaml.MappingNode {
		c.errorf(n, path, "%s is not a group of settings", conftree.Show(n, true))
		return nil
	}
	o := &object{c: c, path: path, items: map[string]*value{}}
	for key, node := range conftree.Pairs(n) {
		at := conftree.Key(key.Value, false)
		if path != "" {
			at = path + "." + at
		}
		o.keys = append(o.keys, key.Value)
		o.items[key.Value] = &value{c: c, key: key, node: node, path: at}
	}
	return o
}

// take returns a setting, nil if it is not set.
func (o *object) take(name string) *value {
	if o == nil {
		return nil
	}
	v := o.items[name]
	if v == nil {
		return nil
	}
	v.taken = true
	if conftree.IsNull(v.node) {
		return nil
	}
	return v
}

// rest adds a note for each setting that was not taken: the hint for it, or noEquivalent.
func (o *object) rest(hints map[string]string, at *section) {
	if o == nil {
		return
	}
	for _, key := range o.keys {
		v := o.items[key]
		if v.taken {
			continue
		}
		v.taken = true
		hint, ok := hints[key]
		if !ok {
			hint = noEquivalent
		}
		v.note(at, "%s", hint)
	}
}

// noEquivalent is the note about a setting without a hint.
const noEquivalent = "has no equivalent"

// note adds a note about v.
func (v *value) note(at *section, format string, args ...any) {
	if v != nil {
		v.c.notef(v.key, v.path, at, format, args...)
	}
}

// noteIf adds a note about a switch that is on.
func (v *value) noteIf(at *section, text string) {
	if v.boolean(false) {
		v.note(at, "%s", text)
	}
}

func (v *value) wrong(want string) {
	v.c.errorf(v.node, v.path, "%s is not %s%s", conftree.Show(v.node, false), want, v.unset())
}

// variable matches a reference to an environment variable, such as $HOST, ${HOST} or
// ${HOST:-localhost}, the escape $$, and other references, such as @{vault:password}.
var variable = lazyregexp.New(`\$\$|\$([A-Za-z_][A-Za-z0-9_]*)|\$\{([A-Za-z_][A-Za-z0-9_]*)(?:(:?[-?])([^}]*))?\}|[$@]\{[^}]*\}`)

// expand replaces references to environment variables that are set or have a default.
func (v *value) expand() {
	if v.c.lookup == nil || v.expanded || v.node.Kind != yaml.ScalarNode {
		return
	}
	v.expanded = true
	n := *v.node
	n.Value = variable().ReplaceAllStringFunc(n.Value, func(ref string) string {
		parts := variable().FindStringSubmatch(ref)
		name, operator := parts[1]+parts[2], parts[3]
		text, ok := v.c.lookup(name)
		switch {
		case ref == "$$":
			return "$"
		case name == "":
			v.note(v.c.out, "%s is not read: write its value", oneWord(ref))
			return ref
		case ok && (text != "" || !strings.HasPrefix(operator, ":")):
			v.note(v.c.out, "the environment variable %s is not read later: this is its value now", name)
			return text
		case strings.HasSuffix(operator, "-"):
			v.note(v.c.out, "the environment variable %s is not read later: this is its default", name)
			return parts[4]
		}
		v.note(v.c.out, "the environment variable %s is not set: write its value", name)
		return ref
	})
	v.node = &n
}

// unset explains an error if the text refers to an environment variable that is not set.
func (v *value) unset() string {
	if v.c.lookup == nil || v.node.Kind != yaml.ScalarNode {
		return ""
	}
	if parts := variable().FindStringSubmatch(v.node.Value); parts != nil && parts[1]+parts[2] != "" {
		return fmt.Sprintf(": the environment variable %s is not set; set it for this conversion", parts[1]+parts[2])
	}
	return ""
}

// text returns a text, or the default.
func (v *value) text(otherwise string) string {
	if v == nil {
		return otherwise
	}
	if v.node.Kind != yaml.ScalarNode {
		v.wrong("a string")
		return otherwise
	}
	v.expand()
	return v.node.Value
}

// boolean returns a switch, or the default.
func (v *value) boolean(otherwise bool) bool {
	if v == nil {
		return otherwise
	}
	on, err := strconv.ParseBool(v.scalar())
	if err != nil {
		v.wrong("a boolean (true or false)")
		return otherwise
	}
	return on
}

// scalar returns the text of a scalar, "" for others.
func (v *value) scalar() string {
	if v.node.Kind != yaml.ScalarNode {
		return ""
	}
	v.expand()
	return strings.ReplaceAll(v.node.Value, "_", "")
}

// number returns a number, and whether v is one.
func (v *value) number() (f float64, ok bool) {
	if v == nil {
		return
	}
	f, err := strconv.ParseFloat(v.scalar(), 64)
	if ok = err == nil && !math.IsNaN(f) && !math.IsInf(f, 0); !ok {
		v.wrong("a number")
	}
	return f, ok
}

// whole returns an integer, or the default. A number outside [least, most]
// becomes the default with a note.
func (v *value) whole(otherwise, least, most int, at *section) int {
	if v == nil {
		return otherwise
	}
	n, err := strconv.ParseInt(v.scalar(), 0, 64)
	switch {
	case err != nil:
		v.wrong("an integer")
	case n < int64(least) || n > int64(most):
		v.note(at, "%d is not in [%d, %d]", n, least, most)
	default:
		return int(n)
	}
	return otherwise
}

// port returns the number of a port, or the default.
func (v *value) port(otherwise int) int {
	if v == nil {
		return otherwise
	}
	if n := atoi(v.scalar()); n > 0 {
		return n
	}
	v.wrong("a port in [1, 65535]")
	return otherwise
}

// duration returns a duration: text with units, or a number of units.
func (v *value) duration(otherwise, unit time.Duration) time.Duration {
	if v == nil {
		return otherwise
	}
	if d, err := time.ParseDuration(v.scalar()); err == nil {
		return d
	}
	f, err := strconv.ParseFloat(v.scalar(), 64)
	d := f * float64(unit)
	if err != nil || !(math.Abs(d) < math.MaxInt64) {
		v.wrong("a duration, such as 10s")
		return otherwise
	}
	return time.Duration(d)
}

// list returns the elements of a list. Anything else is a list of one element.
func (v *value) list() (all []*value) {
	if v == nil {
		return nil
	}
	if v.node.Kind != yaml.SequenceNode {
		return []*value{v}
	}
	for i, n := range v.node.Content {
		all = append(all, &value{c: v.c, key: n, node: n, path: v.path + "[" + strconv.Itoa(i) + "]", taken: true})
	}
	return all
}

// words returns the elements of a list, which can be a text with spaces between them.
func (v *value) words() (all []string) {
	for _, e := range v.list() {
		all = append(all, strings.Fields(e.text(""))...)
	}
	return all
}

// object returns a group of settings, nil if v is none.
func (v *value) object() *object {
	if v == nil {
		return nil
	}
	return v.c.newObject(v.node, v.path)
}
