package decode

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/reflect/protoreflect"
)

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
		if n.ShortTag() != "!!str" && n.ShortTag() != "!!timestamp" && n.ShortTag() != "!!merge" {
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

// wholeOf returns the decimal form of a whole number that fits kind.
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
	if n.ShortTag() == "!!bool" || n.ShortTag() == "!!null" {
		return "", false
	}
	base := 10
	if n.ShortTag() == "!!int" {
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

// enum writes an enum by name. Numbers are passed on; a field rule checks whether
// they are defined.
func (w *walker) enum(n *yaml.Node, fd protoreflect.FieldDescriptor, path string) {
	if n.ShortTag() == "!!int" {
		if v, ok := wholeOf(n, protoreflect.Int32Kind); ok {
			w.out.WriteString(v)
			return
		}
	}
	if n.ShortTag() == "!!null" && fd.Enum().FullName() == "google.protobuf.NullValue" {
		w.out.WriteString("null")
		return
	}
	if n.ShortTag() == "!!null" {
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
