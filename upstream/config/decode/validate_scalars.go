package decode

import (
	"fmt"
	"math"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/envoyproxy/protoc-gen-validate/validate"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/statsd-admin/statsd-admin/internal/lazyregexp"
)

// showValue returns a value for error texts.
func showValue(v protoreflect.Value, fd protoreflect.FieldDescriptor, secret bool) string {
	switch fd.Kind() {
	case protoreflect.StringKind:
		return quote(v.String(), secret)
	case protoreflect.BytesKind:
		if secret {
			return redacted
		}
		return fmt.Sprintf("%d bytes", len(v.Bytes()))
	case protoreflect.EnumKind:
		if value := fd.Enum().Values().ByNumber(v.Enum()); value != nil {
			return string(value.Name())
		}
		return fmt.Sprint(v.Enum())
	}
	if secret {
		return redacted
	}
	return fmt.Sprint(v.Interface())
}

func scalarFaults(v protoreflect.Value, fd protoreflect.FieldDescriptor, rules *validate.FieldRules, secret bool) []string {
	show := func() string { return showValue(v, fd, secret) }
	switch r := rules.GetType().(type) {
	case *validate.FieldRules_Float:
		return numberFaults(float32(v.Float()), r.Float, r.Float, show, float32(v.Float()) != float32(v.Float()))
	case *validate.FieldRules_Double:
		return numberFaults(v.Float(), r.Double, r.Double, show, math.IsNaN(v.Float()))
	case *validate.FieldRules_Int32:
		return numberFaults(int32(v.Int()), r.Int32, r.Int32, show, false)
	case *validate.FieldRules_Int64:
		return numberFaults(v.Int(), r.Int64, r.Int64, show, false)
	case *validate.FieldRules_Uint32:
		return numberFaults(uint32(v.Uint()), r.Uint32, r.Uint32, show, false)
	case *validate.FieldRules_Uint64:
		return numberFaults(v.Uint(), r.Uint64, r.Uint64, show, false)
	case *validate.FieldRules_Bool:
		if r.Bool.Const != nil && *r.Bool.Const != v.Bool() {
			return []string{fmt.Sprintf("%s is not %v", show(), *r.Bool.Const)}
		}
	case *validate.FieldRules_String_:
		return textFaults(v.String(), r.String_, show)
	case *validate.FieldRules_Bytes:
		return bytesFaults(v.Bytes(), r.Bytes, show)
	}
	if fd.Kind() == protoreflect.EnumKind {
		return enumFaults(v.Enum(), fd, rules.GetEnum(), show)
	}
	return nil
}

// number is the constraint of all numeric kinds.
type number interface {
	~int32 | ~int64 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// bounds are the rules of one numeric kind.
type bounds[T number] interface {
	GetIn() []T
	GetNotIn() []T
	GetIgnoreEmpty() bool
	GetConst() T
	GetLt() T
	GetLte() T
	GetGt() T
	GetGte() T
}

// numberFaults checks a number. r and set are the same rules; r has the values, set
// reports which are present.
func numberFaults[T number](v T, r bounds[T], set interface{ ProtoReflect() protoreflect.Message }, show func() string, isNaN bool) []string {
	if r.GetIgnoreEmpty() && v == 0 {
		return nil
	}
	m := set.ProtoReflect()
	has := func(name protoreflect.Name) bool { return m.Has(m.Descriptor().Fields().ByName(name)) }
	fault := func(format string, args ...any) []string {
		return []string{show() + " " + fmt.Sprintf(format, args...)}
	}
	_, isDouble := any(v).(float64)
	switch {
	case has("const") && v != r.GetConst():
		return fault("is not %v", r.GetConst())
	case has("gte") && has("lte") && isDouble && (isNaN || v < r.GetGte() || v > r.GetLte()):
		return fault("is not between %v and %v", r.GetGte(), r.GetLte())
	case has("gt") && (isNaN || v <= r.GetGt()):
		return fault("must be greater than %v", r.GetGt())
	case has("gte") && (isNaN || v < r.GetGte()):
		return fault("is below %v", r.GetGte())
	case has("lt") && (isNaN || v >= r.GetLt()):
		return fault("must be less than %v", r.GetLt())
	case has("lte") && (isNaN || v > r.GetLte()):
		return fault("exceeds %v", r.GetLte())
	case len(r.GetIn()) > 0 && !slices.Contains(r.GetIn(), v):
		return fault("is not one of %v", r.GetIn())
	case slices.Contains(r.GetNotIn(), v):
		return fault("is not allowed")
	}
	return nil
}

// enumFaults refuses numbers without a name in all fields, whatever their rules.
func enumFaults(v protoreflect.EnumNumber, fd protoreflect.FieldDescriptor, r *validate.EnumRules, show func() string) []string {
	allowed := func(n int32) bool {
		return (len(r.GetIn()) == 0 || slices.Contains(r.In, n)) && (r == nil || r.Const == nil || *r.Const == n) && !slices.Contains(r.GetNotIn(), n)
	}
	if fd.Enum().Values().ByNumber(v) != nil && allowed(int32(v)) {
		return nil
	}
	return []string{show() + " is not " + enumText(fd.Enum(), allowed)}
}

// The legal forms of header names and values; the loose ones for fields that
// say so.
var (
	headerName       = lazyregexp.New(`^:?[0-9a-zA-Z!#$%&'*+-.^_|~\x60]+$`)
	headerValue      = lazyregexp.New(`^[^\x00-\x08\x0A-\x1F\x7F]*$`)
	looseHeaderName  = lazyregexp.New(`^[^\x00\x0A\x0D]+$`)
	looseHeaderValue = lazyregexp.New(`^[^\x00\x0A\x0D]*$`)
)

func textFaults(s string, r *validate.StringRules, show func() string) []string {
	if s == "" && r.GetIgnoreEmpty() {
		return nil
	}
	var faults []string
	fault := func(format string, args ...any) {
		faults = append(faults, show()+" "+fmt.Sprintf(format, args...))
	}
	runes := uint64(utf8.RuneCountInString(s))
	size := uint64(len(s))
	switch {
	case s == "" && (r.GetMinLen() > 0 || r.GetMinBytes() > 0):
		return []string{"must not be empty"}
	case runes < r.GetMinLen():
		fault("is shorter than %d characters", r.GetMinLen())
	case size < r.GetMinBytes():
		fault("is shorter than %d bytes", r.GetMinBytes())
	case r.MaxLen != nil && runes > *r.MaxLen:
		fault("is longer than %d characters", *r.MaxLen)
	case r.MaxBytes != nil && size > *r.MaxBytes:
		fault("is longer than %d bytes", *r.MaxBytes)
	case r.Len != nil && runes != *r.Len:
		fault("is not %d characters long", *r.Len)
	case r.LenBytes != nil && size != *r.LenBytes:
		fault("is not %d bytes long", *r.LenBytes)
	}
	switch {
	case r.Const != nil && s != *r.Const:
		fault("is not %q", *r.Const)
	case !strings.HasPrefix(s, r.GetPrefix()):
		fault("does not begin with %q", r.GetPrefix())
	case !strings.HasSuffix(s, r.GetSuffix()):
		fault("does not end with %q", r.GetSuffix())
	case !strings.Contains(s, r.GetContains()):
		fault("does not contain %q", r.GetContains())
	case r.NotContains != nil && strings.Contains(s, *r.NotContains):
		fault("contains %q", *r.NotContains)
	case len(r.In) > 0 && !slices.Contains(r.In, s):
		fault("is not one of %s", strings.Join(r.In, ", "))
	case slices.Contains(r.NotIn, s):
		fault("is not allowed")
	}
	if r.Pattern != nil {
		if re, err := regexp.Compile(*r.Pattern); err == nil && !re.MatchString(s) {
			fault("does not match %s", *r.Pattern)
		}
	}
	if want := wellKnownFault(s, r); want != "" {
		fault("is not %s", want)
	}
	return faults
}

// wellKnownFault returns the expected format if s does not have it.
func wellKnownFault(s string, r *validate.StringRules) string {
	strict := r.GetStrict()
	switch k := r.GetWellKnown().(type) {
	case *validate.StringRules_WellKnownRegex:
		name, value := looseHeaderName, looseHeaderValue
		if strict {
			name, value = headerName, headerValue
		}
		if k.WellKnownRegex == validate.KnownRegex_HTTP_HEADER_NAME && !name().MatchString(s) {
			return "a legal header name"
		}
		if k.WellKnownRegex == validate.KnownRegex_HTTP_HEADER_VALUE && !value().MatchString(s) {
			return "a legal header value"
		}
	case *validate.StringRules_Ip, *validate.StringRules_Ipv4, *validate.StringRules_Ipv6:
		if _, err := netip.ParseAddr(s); err != nil {
			return "an IP address"
		}
	case *validate.StringRules_Uri:
		if u, err := url.Parse(s); err != nil || !u.IsAbs() {
			return "an absolute URI"
		}
	case *validate.StringRules_UriRef:
		if _, err := url.Parse(s); err != nil {
			return "a URI"
		}
	}
	return ""
}

func bytesFaults(b []byte, r *validate.BytesRules, show func() string) []string {
	size := uint64(len(b))
	switch {
	case size == 0 && r.GetIgnoreEmpty():
	case size == 0 && r.GetMinLen() > 0:
		return []string{"must not be empty"}
	case size < r.GetMinLen():
		return []string{fmt.Sprintf("%s is below %d bytes", show(), r.GetMinLen())}
	case r.MaxLen != nil && size > *r.MaxLen:
		return []string{fmt.Sprintf("%s exceeds %d bytes", show(), *r.MaxLen)}
	case r.Len != nil && size != *r.Len:
		return []string{fmt.Sprintf("%s is not %d bytes", show(), *r.Len)}
	}
	return nil
}
