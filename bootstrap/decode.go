package bootstrap

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
	"golang.org/x/net/http/httpguts"

	"github.com/statsd-admin/statsd-admin/internal/conftree"
	"github.com/statsd-admin/statsd-admin/internal/lazyregexp"
	"github.com/statsd-admin/statsd-admin/internal/redact"
	"github.com/statsd-admin/statsd-admin/internal/spelling"
)

// A setter decodes one value into its destination. Errors go to the decoder, which
// continues, so that one run finds all of them.
type setter func(d *decoder, n *yaml.Node, path string)

// field is one row of a message's table: the name as it is written in the
// file, and where its value goes.
type field struct {
	name string
	set  setter
}

// level is a mapping with its fields.
type level struct {
	path   string
	fields []field
}

// decoder walks a document once and collects errors and warnings.
type decoder struct {
	doc          *document
	product      string
	allowUnknown bool
	messages     *messages
	harmless     bool // the value being decoded is no secret, whatever its path

	errs     []*Error
	dropped  int // errors of clusters that are not in errs
	unknown  []string
	meant    []string // field paths that unknown fields were probably meant to be
	open     []level  // the mappings that are being decoded, outermost first
	warnings []string
}

// errorf adds an error in the value n of the field path.
func (d *decoder) errorf(n *yaml.Node, path, format string, args ...any) {
	d.errs = append(d.errs, &Error{Position: d.doc.position(n), Field: path, Message: fmt.Sprintf(format, args...)})
}

// warnf adds a warning about the value n of the field path.
func (d *decoder) warnf(n *yaml.Node, path, format string, args ...any) {
	d.warnings = append(d.warnings, (&Error{Position: d.doc.position(n), Field: path, Message: fmt.Sprintf(format, args...)}).Error())
}

// show returns a value as error texts print it: quoted, cut, masked.
func (d *decoder) show(n *yaml.Node, path string) string {
	return conftree.Show(n, redact.Path(path) && !d.harmless)
}

// message decodes a mapping by its table of fields and returns the values of
// the fields that were set, by name. A null value means not set.
func (d *decoder) message(n *yaml.Node, path string, fields []field) map[string]*yaml.Node {
	seen := make(map[string]*yaml.Node)
	if n.Kind != yaml.MappingNode {
		d.errorf(n, path, "%s is not a mapping; allowed fields: %s", d.show(n, path), fieldNames(fields))
		return seen
	}
	d.open = append(d.open, level{path, fields})
	defer func() { d.open = d.open[:len(d.open)-1] }()
	var names map[string]bool // of all keys, once one is unknown
	for key, value := range conftree.Pairs(n) {
		name := conftree.SnakeCase(key.Value)
		at := join(path, name)
		if _, dup := seen[name]; dup {
			d.errorf(key, at, "set twice, as %q and in another spelling", key.Value)
			continue
		}
		f := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
		if f < 0 {
			if names == nil {
				names = make(map[string]bool)
				for k := range conftree.Pairs(n) {
					names[conftree.SnakeCase(k.Value)] = true
				}
			}
			d.unknownField(key, path, fields, names)
			continue
		}
		if conftree.IsNull(value) {
			continue
		}
		seen[name] = value
		fields[f].set(d, value, at)
	}
	return seen
}

// unknownField notes a key of the mapping at path that is not among its fields; taken
// are the names of its keys. In a secret it is not shown, unless it is a name of one or close to a field.
func (d *decoder) unknownField(key *yaml.Node, path string, fields []field, taken map[string]bool) {
	cutShort := func(f field) bool { return strings.HasPrefix(f.name, key.Value) }
	near := nearestField(key.Value, fields, taken)
	hidden := redact.Path(path) && !redact.Path(key.Value) && near == "" && !slices.ContainsFunc(fields, cutShort)
	at := join(path, conftree.Key(key.Value, hidden))
	if d.allowUnknown {
		d.unknown = append(d.unknown, d.doc.position(key).String()+": "+at)
		return
	}
	hint := ""
	if near != "" {
		hint = "did you mean " + near + "? "
		d.meant = append(d.meant, join(path, near))
	} else if outer, ok := d.outerOf(key.Value); ok && !hidden {
		hint = "it is a field of " + outer + "; "
	}
	d.errorf(key, at, "unknown field; %sallowed: %s", hint, fieldNames(fields))
}

// outerOf returns the innermost mapping around the current mapping that has a field called
// key: such a key is probably indented too far.
func (d *decoder) outerOf(key string) (path string, ok bool) {
	name := conftree.SnakeCase(key)
	for _, l := range slices.Backward(d.open[:len(d.open)-1]) {
		if slices.ContainsFunc(l.fields, func(f field) bool { return f.name == name && !refused(f) }) {
			return cmp.Or(l.path, "the top level"), true
		}
	}
	return "", false
}

// nearestField returns the field that key was probably meant to be, "" if none is
// close. Fields whose names are taken by keys of the mapping do not count.
func nearestField(key string, fields []field, taken map[string]bool) string {
	return spelling.Nearest(conftree.SnakeCase(key), func(yield func(string) bool) {
		for _, f := range fields {
			if !refused(f) && !taken[f.name] && !yield(f.name) {
				return
			}
		}
	}, len(key)/3)
}

// refused reports whether a field is of a feature that is not part of this build.
func refused(f field) bool {
	return reflect.ValueOf(f.set).Pointer() == reflect.ValueOf(absent).Pointer()
}

// fieldNames lists the names of a table for an error text, except fields that are
// always refused.
func fieldNames(fields []field) string {
	var names []string
	for _, f := range fields {
		if !refused(f) {
			names = append(names, f.name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// oneOf adds an error if several of names are set, or none although that is
// required. It returns the name in use.
func (d *decoder) oneOf(n *yaml.Node, path string, seen map[string]*yaml.Node, required bool, names ...string) string {
	var set []string
	for _, name := range names {
		if _, ok := seen[name]; ok {
			set = append(set, name)
		}
	}
	switch {
	case len(set) > 1:
		d.errorf(seen[set[1]], join(path, set[1]), "only one of %s may be set", strings.Join(names, ", "))
		return ""
	case len(set) == 1:
		return set[0]
	case required && n.Kind == yaml.MappingNode && !slices.ContainsFunc(names, func(name string) bool { return d.misspelled(path, name) }):
		d.errorf(n, path, "one of %s must be set", strings.Join(names, ", "))
	}
	return ""
}

// require reports fields that must be set but are not.
func (d *decoder) require(n *yaml.Node, path string, seen map[string]*yaml.Node, names ...string) {
	if n.Kind != yaml.MappingNode {
		return // has been reported
	}
	for _, name := range names {
		if _, ok := seen[name]; !ok && !d.misspelled(path, name) {
			d.errorf(n, join(path, name), "required field is not set")
		}
	}
}

// misspelled reports whether an unknown field of the mapping at path was probably meant
// to be the field name, whose absence is then not reported separately.
func (d *decoder) misspelled(path, name string) bool {
	return slices.Contains(d.meant, join(path, name))
}

// join appends a field name to a path.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// nested decodes a message whose fields need no check across each other.
func nested(fields ...field) setter {
	return func(d *decoder, n *yaml.Node, path string) { d.message(n, path, fields) }
}

// ignored accepts any value of a field that has no effect here, and says so.
func ignored(d *decoder, n *yaml.Node, path string) {
	d.warnf(n, path, "accepted, but has no effect")
}

// accepted takes any value of a field that is only shown.
func accepted(*decoder, *yaml.Node, string) {}

// absent refuses a field of a feature that is not part of this build; a value
// that switches nothing on (null, false, empty) is fine.
func absent(d *decoder, n *yaml.Node, path string) {
	if !empty(n) {
		d.errorf(n, path, "known, but not available in this build; remove it")
	}
}

func empty(n *yaml.Node) bool {
	if n.Kind == yaml.ScalarNode {
		return conftree.IsNull(n) || n.Value == "" || n.Value == "false"
	}
	return len(n.Content) == 0
}

// raw keeps a value as it is for a reader elsewhere.
func raw(to *Raw) setter {
	return func(d *decoder, n *yaml.Node, path string) { *to = Raw{Node: n, Path: path, doc: d.doc} }
}

// scalar reports an error and returns false unless n is a plain value.
func (d *decoder) scalar(n *yaml.Node, path, want string) bool {
	if n.Kind != yaml.ScalarNode {
		d.errorf(n, path, "%s is not %s", d.show(n, path), want)
		return false
	}
	return true
}

// text decodes text.
func text(to *string) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		if !d.scalar(n, path, "a string") {
			return
		}
		if n.Style == 0 && slices.Contains([]string{"!!bool", "!!int", "!!float", "!!null"}, n.Tag) {
			d.errorf(n, path, "%s is not a string; put it in quotes", d.show(n, path))
			return
		}
		*to = n.Value
	}
}

// headerName decodes the name of a header field, or the beginning of one.
func headerName(to *string) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		var name string
		text(&name)(d, n, path)
		if name != "" && !httpguts.ValidHeaderFieldName(name) {
			d.errorf(n, path, "%s is not the name of a header", d.show(n, path))
			return
		}
		*to = name
	}
}

// scalar decodes a plain value by parse. The error about any other value says that it is not
// want, which is formatted with args.
func scalar[T any](to *T, parse func(n *yaml.Node) (T, bool), want string, args ...any) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		if n.Kind == yaml.ScalarNode {
			if v, ok := parse(n); ok {
				*to = v
				return
			}
		}
		d.errorf(n, path, "%s is not "+want, append([]any{d.show(n, path)}, args...)...)
	}
}

// boolean decodes true or false.
func boolean(to *bool) setter {
	return scalar(to, func(n *yaml.Node) (v, ok bool) {
		v = strings.EqualFold(n.Value, "true")
		return v, n.Tag == "!!bool" && (v || strings.EqualFold(n.Value, "false"))
	}, "a boolean (true or false)")
}

// not decodes the opposite of a boolean.
func not(to *bool) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		v := !*to
		boolean(&v)(d, n, path)
		*to = !v
	}
}

// whole decodes an integer in [lowest, highest]. As in the JSON form of
// messages, a number may stand in quotes.
func whole[T ~int | ~int32 | ~int64 | ~uint16 | ~uint32 | ~uint64](to *T, lowest, highest int64) setter {
	return scalar(to, func(n *yaml.Node) (T, bool) {
		v, ok := integer(n)
		return T(v), ok && v >= lowest && v <= highest
	}, "an integer in [%d, %d]", lowest, highest)
}

// integer returns the integer that n is, with or without quotes.
func integer(n *yaml.Node) (value int64, ok bool) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!bool" {
		return 0, false
	}
	if v, err := strconv.ParseInt(n.Value, 10, 64); err == nil {
		return v, true
	}
	f, err := strconv.ParseFloat(n.Value, 64)
	return int64(f), err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53
}

// number decodes a number in [lowest, highest].
func number(to *float64, lowest, highest float64) setter {
	return scalar(to, func(n *yaml.Node) (float64, bool) {
		v, err := strconv.ParseFloat(n.Value, 64)
		return v, n.Tag != "!!bool" && err == nil && v >= lowest && v <= highest
	}, "a number in [%v, %v]", lowest, highest)
}

// limit decodes a limit: a positive number, or a negative number for no limit,
// which adds a warning. 0 is refused because it could mean either.
func limit(to *int) setter {
	return limitOf(to, math.MaxInt32, integer, "an integer in [1, %d]")
}

// sizeLimit is limit for numbers of bytes up to most, with a unit or without.
func sizeLimit(to *int, most int64) setter {
	return limitOf(to, most, byteCount, "a size in [1, %d] bytes, written like 65535, 64KiB or 4MiB")
}

func limitOf(to *int, most int64, parse func(*yaml.Node) (int64, bool), want string) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		switch v, ok := parse(n); {
		case ok && v < 0:
			*to = -1
			d.warnf(n, path, "no limit")
		case !ok || v == 0 || v > most:
			d.errorf(n, path, "%s is not "+want+", or -1 for no limit", d.show(n, path), most)
		default:
			*to = int(v)
		}
	}
}

// messageDuration matches the JSON form of a duration: decimal seconds.
var messageDuration = lazyregexp.New(`^-?[0-9]{1,12}(\.[0-9]{1,9})?s$`)

// duration decodes the JSON form of a duration message (0.25s) in
// [lowest, highest].
func duration(to *time.Duration, lowest, highest time.Duration) setter {
	within := span{lowest, highest}
	return scalar(to, func(n *yaml.Node) (time.Duration, bool) {
		v, ok := within.parse(n)
		return v, ok && messageDuration().MatchString(n.Value)
	}, "a duration in seconds%s, written like 5s or 0.25s", within)
}

// period decodes a duration of our own settings, in which units may be mixed:
// 250ms, 90s, 1h30m.
func period(to *time.Duration, lowest, highest time.Duration) setter {
	within := span{lowest, highest}
	return scalar(to, within.parse, "a duration%s, written like 250ms, 90s or 24h", within)
}

// timeLimit decodes a limit in time; a negative one is none.
func timeLimit(to *time.Duration) setter {
	bounded := period(to, time.Millisecond, 24*time.Hour)
	return func(d *decoder, n *yaml.Node, path string) {
		if v, err := time.ParseDuration(n.Value); n.Kind == yaml.ScalarNode && (n.Value == "-1" || err == nil && v < 0) {
			*to = -1
			d.warnf(n, path, "no limit")
			return
		}
		bounded(d, n, path)
	}
}

// span is the allowed range of a duration.
type span struct{ lowest, highest time.Duration }

// parse returns the duration that n is, false if it is none or out of range.
func (s span) parse(n *yaml.Node) (time.Duration, bool) {
	v, err := time.ParseDuration(n.Value)
	return v, err == nil && v >= s.lowest && v <= s.highest
}

// String returns the range as error texts show it.
func (s span) String() string {
	if s.highest == forever {
		return fmt.Sprintf(" of at least %s", s.lowest)
	}
	return fmt.Sprintf(" in [%s, %s]", s.lowest, s.highest)
}

// sizeUnits are the endings of a size, longest first.
var sizeUnits = []struct {
	name  string
	bytes int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1000}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}}

// size decodes a number of bytes in [lowest, highest], with a unit or without.
func size(to *int, lowest, highest int64) setter {
	return scalar(to, func(n *yaml.Node) (int, bool) {
		v, ok := byteCount(n)
		return int(v), ok && v >= lowest && v <= highest
	}, "a size in [%d, %d] bytes, written like 65535, 64KiB or 4MiB", lowest, highest)
}

// byteCount returns the number of bytes that n is, with a unit or without.
func byteCount(n *yaml.Node) (value int64, ok bool) {
	if n.Kind != yaml.ScalarNode {
		return 0, false
	}
	for _, unit := range sizeUnits {
		if digits, ok := strings.CutSuffix(n.Value, unit.name); ok {
			v, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
			return v * unit.bytes, err == nil && v >= 0 && v*unit.bytes/unit.bytes == v
		}
	}
	return integer(n)
}

// choice decodes one word of a set. Case matters.
func choice[T ~string](to *T, allowed ...T) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		if n.Kind == yaml.ScalarNode && slices.Contains(allowed, T(n.Value)) {
			*to = T(n.Value)
			return
		}
		d.errorf(n, path, "%s is not one of %s", d.show(n, path), words(allowed))
	}
}

// enum decodes a word of the list, which is separated by ", ", to the value at the
// same index.
func enum[T any](to *T, words string, values ...T) setter {
	allowed := strings.Split(words, ", ")
	return func(d *decoder, n *yaml.Node, path string) {
		var word string
		choice(&word, allowed...)(d, n, path)
		if i := slices.Index(allowed, word); i >= 0 {
			*to = values[i]
		}
	}
}

// words lists the values of a choice for an error text.
func words[T ~string](list []T) string {
	var b strings.Builder
	for i, w := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(w))
	}
	return b.String()
}

// list decodes a list; element makes the setter for a new last element.
func list[T any](to *[]T, element func(to *T) setter) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		if n.Kind != yaml.SequenceNode {
			d.errorf(n, path, "%s is not a list", d.show(n, path))
			return
		}
		*to = make([]T, len(n.Content))
		for i, child := range n.Content {
			element(&(*to)[i])(d, child, fmt.Sprintf("%s[%d]", path, i))
		}
	}
}

// texts decodes a list of text values.
func texts(to *[]string) setter { return list(to, text) }

// cidr decodes an address range such as 10.0.0.0/8, or a single address.
func cidr(to *netip.Prefix) setter {
	return scalar(to, func(n *yaml.Node) (netip.Prefix, bool) {
		if p, err := netip.ParsePrefix(n.Value); err == nil {
			return p.Masked(), true
		}
		a, err := netip.ParseAddr(n.Value)
		return netip.PrefixFrom(a, a.BitLen()), err == nil && a.Zone() == ""
	}, "an address range such as 10.0.0.0/8 or ::1/128")
}

// structure decodes a free-form mapping into plain values: map[string]any,
// []any, string, float64, bool and nil.
func structure(to *map[string]any) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		if n.Kind != yaml.MappingNode {
			d.errorf(n, path, "%s is not a mapping", d.show(n, path))
		} else {
			*to, _ = d.plain(n, path).(map[string]any)
		}
	}
}

// plain turns a tree into plain values.
func (d *decoder) plain(n *yaml.Node, path string) any {
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for key, value := range conftree.Pairs(n) {
			m[key.Value] = d.plain(value, join(path, key.Value))
		}
		return m
	case yaml.SequenceNode:
		l := make([]any, len(n.Content))
		for i, child := range n.Content {
			l[i] = d.plain(child, fmt.Sprintf("%s[%d]", path, i))
		}
		return l
	}
	switch n.Tag {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int", "!!float":
		if v, err := strconv.ParseFloat(n.Value, 64); err == nil {
			return v
		}
		if v, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
			return float64(v)
		}
	}
	return n.Value
}

// typedConfig decodes the body of an extension: the mapping under typed_config
// with its @type. types maps the last part of a type name to its fields.
func (d *decoder) typedConfig(n *yaml.Node, path string, types map[string][]field) (typeName string) {
	if n.Kind != yaml.MappingNode {
		d.errorf(n, path, "%s is not a mapping with @type", d.show(n, path))
		return ""
	}
	names := strings.Join(slices.Sorted(maps.Keys(types)), ", ")
	for key, url := range conftree.Pairs(n) {
		if key.Value != "@type" {
			continue
		}
		typeName = url.Value[strings.LastIndexAny(url.Value, "./")+1:]
		fields, ok := types[typeName]
		if !ok {
			d.errorf(url, join(path, "@type"), "%s is not a known type; known: %s", d.show(url, path), names)
			return ""
		}
		d.message(n, path, append([]field{{"@type", accepted}}, fields...))
		return typeName
	}
	d.errorf(n, join(path, "@type"), "required field is not set; known types: %s", names)
	return ""
}
