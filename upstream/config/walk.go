package config

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// walker turns a tree of nodes into the JSON form of a message, with one
// newline per line of the text, so that what the JSON decoder says of a line
// holds for the text too. On the way it checks every value against the
// descriptor of its field, notes where each field stands, and writes out what
// only people write: aliases, merge keys, enum names in lower case, numbers in
// other bases.
type walker struct {
	*report
	types        *protoregistry.Types
	allowUnknown bool

	hidden int // above 0 inside a field whose values are secrets
	out    bytes.Buffer
	line   int  // of the text that is written now
	left   int  // values that may still come; below 0 nothing more is read
	over   bool // it was reported that left ran out
}

// decodeNode decodes the tree n into m. What is wrong goes to r.
func decodeNode(n *yaml.Node, m proto.Message, r *report, allowUnknown bool, budget int) {
	w := &walker{report: r, types: protoregistry.GlobalTypes, allowUnknown: allowUnknown, line: 1, left: budget}
	r.root = n
	w.message(n, m.ProtoReflect().Descriptor(), "", 0)
	if len(r.errs) > 0 {
		return
	}
	err := protojson.UnmarshalOptions{RecursionLimit: maxDepth + 10}.Unmarshal(w.out.Bytes(), m)
	if err == nil {
		return
	}
	// Whatever the walk did not see coming. The words of the decoder are not
	// stable and may quote a secret, so only its line is used.
	e := &Error{Position: r.source.position(n), Kind: Malformed, Message: "cannot be decoded as " + string(m.ProtoReflect().Descriptor().FullName())}
	if at := decoderLine.FindStringSubmatch(err.Error()); at != nil {
		e.Position.Line, _ = strconv.Atoi(at[1])
		e.Position.Column = 1
	}
	r.add(e)
}

// decoderLine finds the line in a message of the JSON decoder.
var decoderLine = regexp.MustCompile(`\(line.(\d+):\d+\)`)

// seek writes newlines up to the line of n. Values that were written earlier in
// the text (behind an alias) stay on the line where they are used.
func (w *walker) seek(n *yaml.Node) {
	for w.line < n.Line {
		w.out.WriteByte('\n')
		w.line++
	}
}

// enter follows aliases and counts a value. It returns nil if there are too
// many or they are nested too deeply.
func (w *walker) enter(n *yaml.Node, path string, depth int) *yaml.Node {
	for hops := 0; n.Kind == yaml.AliasNode && n.Alias != nil; hops++ {
		if hops > maxDepth {
			break
		}
		n = n.Alias
	}
	w.left--
	if depth > maxDepth && w.left >= 0 {
		w.nodeErrorf(Malformed, n, "", "nested deeper than %d levels", maxDepth)
		w.left, w.over = -1, true
	}
	if w.left < 0 {
		if !w.over {
			w.nodeErrorf(Malformed, n, "", "too many values once aliases are written out")
			w.over = true
		}
		return nil
	}
	if n.Kind == yaml.ScalarNode && !slices.Contains(scalarTags, n.Tag) {
		w.nodeErrorf(Malformed, n, path, "tag %q is not known", n.Tag)
		return nil
	}
	if n.Kind != yaml.ScalarNode && n.Tag != "" && n.Tag != "!!map" && n.Tag != "!!seq" {
		w.nodeErrorf(Malformed, n, path, "tag %q is not known", n.Tag)
		return nil
	}
	w.seek(n)
	return n
}

var scalarTags = []string{"", "!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", "!!merge"}

// member is one key of a mapping with its value.
type member struct{ key, value *yaml.Node }

// members lists what a mapping holds after merge keys (<<) are written out: own
// keys win over merged ones, and earlier merged mappings over later ones. Each
// merged key takes one from left; below 0 the rest is left out. r may be nil.
func members(n *yaml.Node, r *report, path string, left *int) []member {
	var merged []*yaml.Node
	list := make([]member, 0, len(n.Content)/2)
	first := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := dealias(n.Content[i]), n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode:
			r.nodeErrorf(Malformed, key, path, "a key must be text, not a list or a mapping")
			continue
		case key.Tag == "!!merge":
			merged = append(merged, value)
			continue
		}
		if before := first[key.Value]; before != nil {
			r.nodeErrorf(Malformed, key, join(path, key.Value), "duplicate key %q, first used in line %d", key.Value, before.Line)
			continue
		}
		first[key.Value] = key
		list = append(list, member{key, value})
	}
	for _, source := range merged {
		source = dealias(source)
		all := []*yaml.Node{source}
		if source.Kind == yaml.SequenceNode {
			all = source.Content
		}
		for _, m := range all {
			m = dealias(m)
			if m.Kind != yaml.MappingNode {
				r.nodeErrorf(Malformed, m, path, "a merge key (<<) needs a mapping or a list of mappings")
				continue
			}
			for i := 0; i+1 < len(m.Content); i += 2 {
				if *left--; *left < 0 {
					return list
				}
				key := dealias(m.Content[i])
				if key.Kind == yaml.ScalarNode && key.Tag == "!!merge" {
					r.nodeErrorf(Malformed, key, path, "a merged mapping may not hold a merge key (<<) itself")
					continue
				}
				if key.Kind == yaml.ScalarNode && first[key.Value] == nil {
					first[key.Value] = key
					list = append(list, member{key, m.Content[i+1]})
				}
			}
		}
	}
	return list
}

func dealias(n *yaml.Node) *yaml.Node {
	for hops := 0; n.Kind == yaml.AliasNode && n.Alias != nil && hops < maxDepth; hops++ {
		n = n.Alias
	}
	return n
}

// join appends a field name to a path.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Tag == "!!null"
}

// show returns a value as error texts print it, masked inside a secret.
func (w *walker) show(n *yaml.Node) string { return show(n, w.hidden > 0) }

// show returns a value as error texts print it.
func show(n *yaml.Node, secret bool) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "null"
	}
	if n.Tag == "!!str" || n.Tag == "!!timestamp" {
		return quote(n.Value, secret)
	}
	if secret {
		return redacted
	}
	return clip(n.Value)
}

// findField looks a field up by its name or its JSON name.
func findField(md protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if fd := md.Fields().ByName(protoreflect.Name(name)); fd != nil {
		return fd
	}
	return md.Fields().ByJSONName(name)
}

// message writes the mapping n as a message of type md.
func (w *walker) message(n *yaml.Node, md protoreflect.MessageDescriptor, path string, depth int) {
	if write := special(md.FullName()); write != nil {
		write(w, n, path, depth)
		return
	}
	n = w.enter(n, path, depth)
	if n == nil {
		return
	}
	if n.Kind != yaml.MappingNode {
		w.nodeErrorf(Malformed, n, path, "%s is not a mapping with fields of %s", w.show(n), shortName(md))
		return
	}
	w.out.WriteByte('{')
	w.fields(n, md, path, depth, "")
	w.out.WriteByte('}')
}

// fields writes the members of a message. The key skip was written already.
func (w *walker) fields(n *yaml.Node, md protoreflect.MessageDescriptor, path string, depth int, skip string) {
	seen := make(map[protoreflect.FieldNumber]string)
	chosen := make(map[protoreflect.Name]protoreflect.FieldDescriptor)
	comma := skip != ""
	for _, m := range members(n, w.report, path, &w.left) {
		name := m.key.Value
		if skip != "" && name == skip {
			continue
		}
		fd := findField(md, name)
		if fd == nil {
			w.unknownField(m.key, join(path, clip(name)), md)
			continue
		}
		at := join(path, string(fd.Name()))
		if other, ok := seen[fd.Number()]; ok {
			w.nodeErrorf(Malformed, m.key, at, "set twice, as %s and as %s", other, name)
			continue
		}
		seen[fd.Number()] = name
		value := dealias(m.value)
		if isNull(value) && fd.Kind() != protoreflect.EnumKind && !takesNull(fd) {
			continue // null means absent
		}
		if od := fd.ContainingOneof(); od != nil && !od.IsSynthetic() {
			if other := chosen[od.Name()]; other != nil {
				field, message := oneofConflict(path, other, fd)
				w.nodeErrorf(Conflict, m.key, field, "%s", message)
				continue
			}
			chosen[od.Name()] = fd
		}
		if comma {
			w.out.WriteByte(',')
		}
		comma = true
		w.seek(m.key)
		fmt.Fprintf(&w.out, `"%s":`, fd.Name())
		w.field(m.value, fd, at, depth)
	}
}

// takesNull tells whether null is a value of the field and not its absence.
func takesNull(fd protoreflect.FieldDescriptor) bool {
	return !fd.IsList() && !fd.IsMap() && fd.Message() != nil && fd.Message().FullName() == "google.protobuf.Value"
}

func (w *walker) unknownField(key *yaml.Node, path string, md protoreflect.MessageDescriptor) {
	e := &Error{Position: w.source.position(key), Kind: UnknownField, Field: path, Message: "unknown field of " + shortName(md)}
	if w.allowUnknown {
		w.unknown++
		w.warn(e)
		return
	}
	w.add(e)
}

// field writes the value of a field, with its cardinality.
func (w *walker) field(n *yaml.Node, fd protoreflect.FieldDescriptor, path string, depth int) {
	if isSensitive(fd) {
		w.hidden++
		defer func() { w.hidden-- }()
	}
	if !fd.IsList() && !fd.IsMap() {
		w.single(n, fd, path, depth+1)
		return
	}
	n = w.enter(n, path, depth+1)
	switch {
	case n == nil:
	case fd.IsList() && n.Kind != yaml.SequenceNode:
		w.nodeErrorf(Malformed, n, path, "%s is not a list", w.show(n))
	case fd.IsList():
		w.out.WriteByte('[')
		for i, child := range n.Content {
			if i > 0 {
				w.out.WriteByte(',')
			}
			at := fmt.Sprintf("%s[%d]", path, i)
			if isNull(dealias(child)) && !takesNullElement(fd) {
				w.nodeErrorf(Malformed, child, at, "null is not an element")
				continue
			}
			w.single(child, fd, at, depth+2)
			if w.left < 0 {
				return
			}
		}
		w.out.WriteByte(']')
	case n.Kind != yaml.MappingNode:
		w.nodeErrorf(Malformed, n, path, "%s is not a mapping", w.show(n))
	default:
		w.out.WriteByte('{')
		for i, m := range members(n, w.report, path, &w.left) {
			if i > 0 {
				w.out.WriteByte(',')
			}
			at := fmt.Sprintf("%s[%s]", path, quote(m.key.Value, false))
			if isNull(dealias(m.value)) {
				w.nodeErrorf(Malformed, m.key, at, "null is not a value")
				continue
			}
			w.seek(m.key)
			w.text(m.key.Value)
			w.out.WriteByte(':')
			w.single(m.value, fd.MapValue(), at, depth+2)
		}
		w.out.WriteByte('}')
	}
}

func takesNullElement(fd protoreflect.FieldDescriptor) bool {
	return fd.Message() != nil && fd.Message().FullName() == "google.protobuf.Value"
}

// text writes s as a JSON string on one line.
func (w *walker) text(s string) {
	b, err := json.Marshal(s) // cannot fail for a string
	if err == nil {
		w.out.Write(b)
	}
}

// single writes one value of the kind of fd.
func (w *walker) single(n *yaml.Node, fd protoreflect.FieldDescriptor, path string, depth int) {
	if fd.Message() != nil {
		if wrapped := wrappedField(fd.Message()); wrapped != nil {
			w.scalar(n, wrapped, path, depth)
			return
		}
		w.message(n, fd.Message(), path, depth)
		return
	}
	w.scalar(n, fd, path, depth)
}

// wrappedField returns the value of a wrapper message, nil for other messages.
func wrappedField(md protoreflect.MessageDescriptor) protoreflect.FieldDescriptor {
	if md.ParentFile().Path() == "google/protobuf/wrappers.proto" {
		return md.Fields().ByNumber(1)
	}
	return nil
}

func (w *walker) scalar(n *yaml.Node, fd protoreflect.FieldDescriptor, path string, depth int) {
	n = w.enter(n, path, depth)
	if n == nil {
		return
	}
	refuse := func(want string) {
		w.nodeErrorf(Malformed, n, path, "%s is not %s", w.show(n), want)
	}
	if n.Kind != yaml.ScalarNode {
		refuse(kindText(fd))
		return
	}
	switch fd.Kind() {
	case protoreflect.StringKind, protoreflect.BytesKind:
		if n.Tag != "!!str" && n.Tag != "!!timestamp" && n.Tag != "!!merge" {
			refuse("text; put it in quotes")
			return
		}
		if fd.Kind() == protoreflect.BytesKind && !isBase64(n.Value) {
			refuse("base64")
			return
		}
		w.text(n.Value)
	case protoreflect.BoolKind:
		v, ok := boolOf(n)
		if !ok {
			refuse("true or false")
			return
		}
		fmt.Fprint(&w.out, v)
	case protoreflect.EnumKind:
		w.enum(n, fd, path)
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		v, ok := floatOf(n)
		if !ok || fd.Kind() == protoreflect.FloatKind && math.Abs(v) > math.MaxFloat32 && !math.IsInf(v, 0) {
			refuse("a number")
			return
		}
		w.number(v)
	default:
		v, ok := wholeOf(n, fd.Kind())
		if !ok {
			refuse(kindText(fd))
			return
		}
		fmt.Fprintf(&w.out, `"%s"`, v)
	}
}

func kindText(fd protoreflect.FieldDescriptor) string {
	switch fd.Kind() {
	case protoreflect.StringKind, protoreflect.BytesKind:
		return "text"
	case protoreflect.BoolKind:
		return "true or false"
	case protoreflect.EnumKind:
		return enumText(fd.Enum())
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return "a number"
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return "a whole number between 0 and 4294967295"
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return "a whole number between 0 and 18446744073709551615"
	}
	return "a whole number"
}

func boolOf(n *yaml.Node) (v, ok bool) {
	if n.Tag != "!!bool" {
		return false, false
	}
	switch strings.ToLower(n.Value) {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	return false, false
}

// floatOf reads a number; as everywhere in the JSON form of messages it may
// stand in quotes.
func floatOf(n *yaml.Node) (v float64, ok bool) {
	switch n.Tag {
	case "!!bool", "!!null":
		return 0, false
	case "!!int":
		if i, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
			return float64(i), true
		}
	case "!!float":
		switch strings.ToLower(n.Value) {
		case ".nan":
			return math.NaN(), true
		case ".inf", "+.inf":
			return math.Inf(1), true
		case "-.inf":
			return math.Inf(-1), true
		}
	}
	switch n.Value {
	case "NaN":
		return math.NaN(), true
	case "Infinity":
		return math.Inf(1), true
	case "-Infinity":
		return math.Inf(-1), true
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
	return v, err == nil && !math.IsInf(v, 0) && !math.IsNaN(v)
}

// wholeOf reads a whole number that fits kind and returns its decimal form.
func wholeOf(n *yaml.Node, kind protoreflect.Kind) (string, bool) {
	bits, signed := 64, true
	switch kind {
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		bits = 32
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		bits, signed = 32, false
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		signed = false
	}
	if n.Tag == "!!bool" || n.Tag == "!!null" {
		return "", false
	}
	base := 10
	if n.Tag == "!!int" {
		base = 0
	}
	text := strings.TrimPrefix(n.Value, "+")
	if signed {
		if v, err := strconv.ParseInt(text, base, bits); err == nil {
			return strconv.FormatInt(v, 10), true
		}
	} else if v, err := strconv.ParseUint(text, base, bits); err == nil {
		return strconv.FormatUint(v, 10), true
	}
	// 1e3 and 5.0 are whole numbers too.
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<53 || !strings.ContainsAny(text, ".eE") || strings.ContainsAny(text, "xXpP") {
		return "", false
	}
	text = strconv.FormatFloat(f, 'f', -1, 64)
	if text == "-0" {
		text = "0"
	}
	if signed {
		_, err = strconv.ParseInt(text, 10, bits)
	} else {
		_, err = strconv.ParseUint(text, 10, bits)
	}
	return text, err == nil
}

func isBase64(s string) bool {
	enc := base64.StdEncoding
	if strings.ContainsAny(s, "-_") {
		enc = base64.URLEncoding
	}
	if len(s)%4 != 0 {
		enc = enc.WithPadding(base64.NoPadding)
	}
	_, err := enc.DecodeString(s)
	return err == nil && !strings.ContainsAny(s, "\r\n")
}

// number writes a floating point value.
func (w *walker) number(v float64) {
	switch {
	case math.IsNaN(v):
		w.out.WriteString(`"NaN"`)
	case math.IsInf(v, 1):
		w.out.WriteString(`"Infinity"`)
	case math.IsInf(v, -1):
		w.out.WriteString(`"-Infinity"`)
	default:
		w.out.WriteString(strconv.FormatFloat(v, 'g', -1, 64))
	}
}

// enum writes an enum by name. Numbers pass as they are; whether they are
// defined is a rule of the field.
func (w *walker) enum(n *yaml.Node, fd protoreflect.FieldDescriptor, path string) {
	if n.Tag == "!!int" {
		if v, ok := wholeOf(n, protoreflect.Int32Kind); ok {
			w.out.WriteString(v)
			return
		}
	}
	if n.Tag == "!!null" && fd.Enum().FullName() == "google.protobuf.NullValue" {
		w.out.WriteString("null")
		return
	}
	if n.Tag == "!!null" {
		w.out.WriteString("0")
		return
	}
	name := enumName(fd.Enum(), n.Value)
	if name == "" {
		w.nodeErrorf(BadValue, n, path, "%s is not %s", w.show(n), enumText(fd.Enum()))
		return
	}
	w.text(name)
}

// enumName returns the name of a value as it is declared, also for the name in
// lower case; empty if there is none.
func enumName(ed protoreflect.EnumDescriptor, text string) string {
	for _, name := range []string{text, strings.ToUpper(text)} {
		if ed.Values().ByName(protoreflect.Name(name)) != nil {
			return name
		}
	}
	return ""
}

// special returns the writer of a message whose JSON form is not that of its
// fields, nil for all others.
func special(name protoreflect.FullName) func(w *walker, n *yaml.Node, path string, depth int) {
	switch name {
	case "google.protobuf.Any":
		return (*walker).any
	case "google.protobuf.Duration":
		return (*walker).duration
	case "google.protobuf.Timestamp":
		return (*walker).timestamp
	case "google.protobuf.FieldMask":
		return (*walker).fieldMask
	case "google.protobuf.Value":
		return (*walker).value
	case "google.protobuf.Struct":
		return (*walker).structure
	case "google.protobuf.ListValue":
		return (*walker).listValue
	}
	return nil
}

var durationForm = regexp.MustCompile(`^-?[0-9]{1,12}(\.[0-9]{1,9})?s$`)

func (w *walker) duration(n *yaml.Node, path string, depth int) {
	if n = w.enter(n, path, depth); n == nil {
		return
	}
	if n.Kind == yaml.ScalarNode && durationForm.MatchString(n.Value) {
		whole, _, _ := strings.Cut(strings.Trim(n.Value, "-s"), ".")
		if v, err := strconv.ParseInt(whole, 10, 64); err == nil && v < 315_576_000_000 {
			w.text(n.Value)
			return
		}
	}
	w.nodeErrorf(Malformed, n, path, "%s is not a duration in seconds, written like 5s or 0.25s", w.show(n))
}

func (w *walker) timestamp(n *yaml.Node, path string, depth int) {
	if n = w.enter(n, path, depth); n == nil {
		return
	}
	if _, err := time.Parse(time.RFC3339Nano, n.Value); n.Kind != yaml.ScalarNode || err != nil {
		w.nodeErrorf(Malformed, n, path, "%s is not a time, written like 2025-03-04T05:06:07Z", w.show(n))
		return
	}
	w.text(n.Value)
}

func (w *walker) fieldMask(n *yaml.Node, path string, depth int) {
	if n = w.enter(n, path, depth); n == nil {
		return
	}
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
		w.nodeErrorf(Malformed, n, path, "%s is not a list of field names separated by commas", w.show(n))
		return
	}
	w.text(n.Value)
}

// value writes a free-form value.
func (w *walker) value(n *yaml.Node, path string, depth int) {
	if n = w.enter(n, path, depth); n == nil {
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		w.out.WriteByte('{')
		for i, m := range members(n, w.report, path, &w.left) {
			if i > 0 {
				w.out.WriteByte(',')
			}
			w.seek(m.key)
			w.text(m.key.Value)
			w.out.WriteByte(':')
			w.value(m.value, path, depth+1)
			if w.left < 0 {
				return
			}
		}
		w.out.WriteByte('}')
		return
	case yaml.SequenceNode:
		w.out.WriteByte('[')
		for i, child := range n.Content {
			if i > 0 {
				w.out.WriteByte(',')
			}
			w.value(child, path, depth+1)
			if w.left < 0 {
				return
			}
		}
		w.out.WriteByte(']')
		return
	}
	switch n.Tag {
	case "!!null":
		w.out.WriteString("null")
	case "!!bool":
		v, _ := boolOf(n)
		fmt.Fprint(&w.out, v)
	case "!!int", "!!float":
		v, ok := floatOf(n)
		if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
			w.nodeErrorf(Malformed, n, path, "%s is not a number that JSON can hold", w.show(n))
			return
		}
		w.number(v)
	default:
		w.text(n.Value)
	}
}

func (w *walker) structure(n *yaml.Node, path string, depth int) {
	if dealias(n).Kind != yaml.MappingNode {
		w.nodeErrorf(Malformed, n, path, "%s is not a mapping", show(dealias(n), true))
		return
	}
	w.value(n, path, depth)
}

func (w *walker) listValue(n *yaml.Node, path string, depth int) {
	if dealias(n).Kind != yaml.SequenceNode {
		w.nodeErrorf(Malformed, n, path, "%s is not a list", show(dealias(n), true))
		return
	}
	w.value(n, path, depth)
}

// any writes the mapping of an extension: its type in "@type", its fields
// beside it.
func (w *walker) any(n *yaml.Node, path string, depth int) {
	if n = w.enter(n, path, depth); n == nil {
		return
	}
	if n.Kind != yaml.MappingNode {
		w.nodeErrorf(Malformed, n, path, "%s is not a mapping with @type", w.show(n))
		return
	}
	url, value := anyParts(n, &w.left)
	switch {
	case len(n.Content) == 0:
		w.out.WriteString("{}")
		return
	case url == nil || url.Kind != yaml.ScalarNode || url.Tag != "!!str":
		w.nodeErrorf(Malformed, n, path, "needs @type with the name of the message")
		return
	}
	mt, err := w.types.FindMessageByURL(url.Value)
	if err != nil {
		if errors.Is(err, protoregistry.NotFound) {
			w.nodeErrorf(Malformed, url, path, "@type %s is not a known message", quote(url.Value, w.hidden > 0))
		} else {
			w.nodeErrorf(Malformed, url, path, "@type %s is not the name of a message", quote(url.Value, w.hidden > 0))
		}
		return
	}
	md := mt.Descriptor()
	w.out.WriteString(`{"@type":`)
	w.text(url.Value)
	if special(md.FullName()) == nil && wrappedField(md) == nil {
		w.fields(n, md, path, depth, "@type")
		w.out.WriteByte('}')
		return
	}
	for _, m := range members(n, w.report, path, &w.left) {
		if m.key.Value != "@type" && m.key.Value != "value" {
			w.unknownField(m.key, join(path, clip(m.key.Value)), md)
		}
	}
	if value == nil {
		w.nodeErrorf(Malformed, n, path, "needs value beside @type %s", quote(url.Value, w.hidden > 0))
		return
	}
	w.out.WriteString(`,"value":`)
	if wrapped := wrappedField(md); wrapped != nil {
		w.scalar(value, wrapped, join(path, "value"), depth+1)
	} else {
		w.message(value, md, join(path, "value"), depth+1)
	}
	w.out.WriteByte('}')
}

// anyParts finds the members that make up an Any.
func anyParts(n *yaml.Node, left *int) (url, value *yaml.Node) {
	for _, m := range members(n, nil, "", left) {
		switch m.key.Value {
		case "@type":
			url = dealias(m.value)
		case "value":
			value = m.value
		}
	}
	return url, value
}
