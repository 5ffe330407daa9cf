package decode

import (
	"encoding/base64"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// scalar decodes a value that is no message. It is invalid after an error.
func (w *walker) scalar(n *yaml.Node, fd protoreflect.FieldDescriptor, path string) protoreflect.Value {
	want := kindText(fd)
	if n.Kind == yaml.ScalarNode {
		tag := n.ShortTag()
		isText := tag == "!!str" || tag == "!!timestamp" || tag == "!!merge"
		switch kind := fd.Kind(); kind {
		case protoreflect.StringKind:
			if isText {
				return protoreflect.ValueOfString(n.Value)
			}
			want = "a string; put it in quotes"
		case protoreflect.BytesKind:
			b, ok := fromBase64(n.Value)
			if isText && ok {
				return protoreflect.ValueOfBytes(b)
			}
			if want = "base64"; !isText {
				want = "a string; put it in quotes"
			}
		case protoreflect.BoolKind:
			if v, ok := boolOf(n); ok {
				return protoreflect.ValueOfBool(v)
			}
		case protoreflect.EnumKind:
			return w.enum(n, fd, path)
		case protoreflect.FloatKind, protoreflect.DoubleKind:
			v, ok := floatOf(n)
			switch {
			case ok && kind == protoreflect.DoubleKind:
				return protoreflect.ValueOfFloat64(v)
			case ok && (math.IsInf(v, 0) || !math.IsInf(float64(float32(v)), 0)):
				return protoreflect.ValueOfFloat32(float32(v))
			}
		default:
			if v := wholeOf(n, kind); v.IsValid() {
				return v
			}
		}
	}
	w.refuse(n, path, want)
	return protoreflect.Value{}
}

// anyValue allows all values of an enum.
func anyValue(int32) bool { return true }

func kindText(fd protoreflect.FieldDescriptor) string {
	switch fd.Kind() {
	case protoreflect.StringKind, protoreflect.BytesKind:
		return "a string"
	case protoreflect.BoolKind:
		return "a boolean (true or false)"
	case protoreflect.EnumKind:
		return enumText(fd.Enum(), anyValue)
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return "a number"
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return "an integer between 0 and 4294967295"
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return "an integer between 0 and 18446744073709551615"
	}
	return "an integer"
}

func boolOf(n *yaml.Node) (v, ok bool) {
	if n.ShortTag() != "!!bool" {
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

// floatOf returns a number, which can be in quotes as in the JSON form of messages.
func floatOf(n *yaml.Node) (v float64, ok bool) {
	switch n.ShortTag() {
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

// wholeOf returns an integer that fits kind, else an invalid value.
func wholeOf(n *yaml.Node, kind protoreflect.Kind) protoreflect.Value {
	if n.ShortTag() == "!!bool" || n.ShortTag() == "!!null" {
		return protoreflect.Value{}
	}
	base := 10
	if n.ShortTag() == "!!int" {
		base = 0
	}
	text := strings.TrimPrefix(n.Value, "+")
	if v := parseWhole(text, base, kind); v.IsValid() {
		return v
	}
	// 1e3 and 5.0 are integers too.
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<53 || !strings.ContainsAny(text, ".eE") || strings.ContainsAny(text, "xXpP") {
		return protoreflect.Value{}
	}
	return parseWhole(strconv.FormatFloat(f+0, 'f', -1, 64), 10, kind) // +0 removes the sign of -0
}

func parseWhole(text string, base int, kind protoreflect.Kind) protoreflect.Value {
	signed := func(bits int) (int64, bool) {
		v, err := strconv.ParseInt(text, base, bits)
		return v, err == nil
	}
	unsigned := func(bits int) (uint64, bool) {
		v, err := strconv.ParseUint(text, base, bits)
		return v, err == nil
	}
	switch kind {
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		if v, ok := signed(32); ok {
			return protoreflect.ValueOfInt32(int32(v))
		}
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		if v, ok := unsigned(32); ok {
			return protoreflect.ValueOfUint32(uint32(v))
		}
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		if v, ok := unsigned(64); ok {
			return protoreflect.ValueOfUint64(v)
		}
	default:
		if v, ok := signed(64); ok {
			return protoreflect.ValueOfInt64(v)
		}
	}
	return protoreflect.Value{}
}

// fromBase64 decodes the standard and the URL alphabet, with padding or without.
func fromBase64(s string) ([]byte, bool) {
	enc := base64.StdEncoding
	if strings.ContainsAny(s, "-_") {
		enc = base64.URLEncoding
	}
	if len(s)%4 != 0 {
		enc = enc.WithPadding(base64.NoPadding)
	}
	b, err := enc.DecodeString(s)
	return b, err == nil && !strings.ContainsAny(s, "\r\n")
}

// enum decodes an enum by name. Numbers are passed on; a field rule checks whether
// they are defined.
func (w *walker) enum(n *yaml.Node, fd protoreflect.FieldDescriptor, path string) protoreflect.Value {
	switch n.ShortTag() {
	case "!!null":
		return protoreflect.ValueOfEnum(0)
	case "!!int":
		if v := wholeOf(n, protoreflect.Int32Kind); v.IsValid() {
			return protoreflect.ValueOfEnum(protoreflect.EnumNumber(v.Int()))
		}
	}
	name := enumName(fd.Enum(), n.Value)
	if name == "" {
		w.nodeErrorf(BadValue, n, path, "%s is not %s", show(n, w.hidden > 0), enumText(fd.Enum(), anyValue))
		return protoreflect.Value{}
	}
	return protoreflect.ValueOfEnum(fd.Enum().Values().ByName(protoreflect.Name(name)).Number())
}

// enumName returns the declared name of a value, also for the name in lower case,
// empty if there is none.
func enumName(ed protoreflect.EnumDescriptor, text string) string {
	for _, name := range []string{text, strings.ToUpper(text)} {
		if ed.Values().ByName(protoreflect.Name(name)) != nil {
			return name
		}
	}
	return ""
}
