package decode

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/envoyproxy/protoc-gen-validate/validate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/statsd-admin/statsd-admin/internal/conftree"
)

// ruleBook holds the rules of message fields. They come from the options in the
// descriptors, which both forms have, so one checker serves both and reports the
// names of the original form. adjust overrides rules that Envoy's own code relaxes or
// tightens.
//
// A ruleBook is safe for concurrent use.
type ruleBook struct {
	messages sync.Map             // protoreflect.FullName to *messageRules
	free     *validate.FieldRules // the rules of a field without any
}

func newRuleBook() *ruleBook { return &ruleBook{free: &validate.FieldRules{}} }

// messageRules are the rules of one message.
type messageRules struct {
	off    bool // nothing of the message is checked
	fields []fieldRules
}

// fieldRules are the rules of one field.
type fieldRules struct {
	fd     protoreflect.FieldDescriptor
	rules  *validate.FieldRules // never nil
	secret bool
	// needs is set on the first field of a oneof of which one must be set.
	needs protoreflect.OneofDescriptor
}

func (b *ruleBook) of(md protoreflect.MessageDescriptor) *messageRules {
	if r, ok := b.messages.Load(md.FullName()); ok {
		return r.(*messageRules)
	}
	r := &messageRules{}
	if off, ok := proto.GetExtension(md.Options(), validate.E_Disabled).(bool); ok && off {
		r.off = true
	}
	required := make(map[protoreflect.Name]bool)
	for i := range md.Oneofs().Len() {
		od := md.Oneofs().Get(i)
		if must, ok := proto.GetExtension(od.Options(), validate.E_Required).(bool); ok && must && !od.IsSynthetic() {
			required[od.Name()] = true
		}
	}
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		rules, _ := proto.GetExtension(fd.Options(), validate.E_Rules).(*validate.FieldRules)
		f := fieldRules{fd: fd, rules: adjust(shortName(md)+"."+string(fd.Name()), rules), secret: isSensitive(fd)}
		f.rules = cmp.Or(f.rules, b.free)
		r.fields = append(r.fields, f)
	}
	slices.SortFunc(r.fields, func(a, b fieldRules) int { return int(a.fd.Number()) - int(b.fd.Number()) })
	for i := range r.fields {
		f := &r.fields[i]
		if od := f.fd.ContainingOneof(); od != nil && required[od.Name()] {
			f.needs, required[od.Name()] = od, false
		}
	}
	actual, _ := b.messages.LoadOrStore(md.FullName(), r)
	return actual.(*messageRules)
}

func adjust(field string, rules *validate.FieldRules) *validate.FieldRules {
	switch field {
	case "Cluster.dns_refresh_rate", "DnsCluster.dns_refresh_rate":
		return &validate.FieldRules{Type: &validate.FieldRules_Duration{Duration: &validate.DurationRules{Gte: durationpb.New(time.Millisecond)}}}
	case "Cluster.RefreshRate.base_interval", "DnsCluster.RefreshRate.base_interval":
		must := true
		return &validate.FieldRules{Type: &validate.FieldRules_Duration{Duration: &validate.DurationRules{Required: &must, Gt: &durationpb.Duration{}}}}
	case "Cluster.RefreshRate.max_interval", "DnsCluster.RefreshRate.max_interval", // only bounded by base_interval
		"Cluster.health_checks": // only one is supported, which is checked elsewhere
		return nil
	}
	return rules
}

// fieldChecker checks one message against the rule book.
type fieldChecker struct {
	*report
	book *ruleBook
	at   trail
}

// fault adds an error about the current field.
func (c *fieldChecker) fault(format string, args ...any) {
	c.errorf(BadValue, c.at.path(), format, args...)
}

// message checks the fields of m in the order of their numbers. secret means that all
// of m is secret.
func (c *fieldChecker) message(m protoreflect.Message, secret bool, depth int) {
	if depth > conftree.MaxDepth {
		c.errorf(Malformed, c.at.path(), "nested deeper than %d levels", conftree.MaxDepth)
		return
	}
	rules := c.book.of(m.Descriptor())
	if rules.off {
		return
	}
	for i := range rules.fields {
		f := &rules.fields[i]
		if f.needs != nil && m.WhichOneof(f.needs) == nil {
			c.fault("needs one of %s", oneofNames(f.needs))
		}
		c.at.field(string(f.fd.Name()))
		switch {
		case f.fd.IsList():
			c.list(m.Get(f.fd).List(), f, secret || f.secret, depth)
		case f.fd.IsMap():
			c.mapping(m.Get(f.fd).Map(), f, secret || f.secret, depth)
		case m.Has(f.fd):
			c.value(m.Get(f.fd), f.fd, f.rules, secret || f.secret, depth)
		default:
			c.absent(f)
		}
		c.at.back()
	}
}

// oneofNames lists the fields of a oneof that a user should set.
func oneofNames(od protoreflect.OneofDescriptor) string {
	var names []string
	for i := range od.Fields().Len() {
		names = append(names, string(od.Fields().Get(i).Name()))
	}
	return strings.Join(names, ", ")
}

// absent checks an unset field. A field without presence has its zero value then,
// which must satisfy the rules.
func (c *fieldChecker) absent(f *fieldRules) {
	if od := f.fd.ContainingOneof(); od != nil && !od.IsSynthetic() {
		return // another one of them may be set
	}
	switch {
	case f.rules.GetMessage().GetRequired(), f.rules.GetDuration().GetRequired(), f.rules.GetAny().GetRequired(), f.rules.GetTimestamp().GetRequired():
		c.fault("must be set")
	case !f.fd.HasPresence():
		c.value(f.fd.Default(), f.fd, f.rules, f.secret, 0)
	}
}

func (c *fieldChecker) list(l protoreflect.List, f *fieldRules, secret bool, depth int) {
	rules := f.rules.GetRepeated()
	rules = cmp.Or(rules, &validate.RepeatedRules{})
	if l.Len() == 0 && rules.GetIgnoreEmpty() {
		return
	}
	c.size(l.Len(), rules.GetMinItems(), rules.MaxItems)
	items := cmp.Or(rules.GetItems(), c.book.free)
	if items == c.book.free && f.fd.Message() == nil && f.fd.Kind() != protoreflect.EnumKind && !rules.GetUnique() {
		return // plain values without rules
	}
	var seen map[any]bool
	if rules.GetUnique() && f.fd.Message() == nil {
		seen = make(map[any]bool, l.Len())
	}
	for i := range l.Len() {
		v := l.Get(i)
		c.at.item(i)
		if seen != nil {
			key := v.Interface()
			if b, ok := key.([]byte); ok {
				key = string(b)
			}
			if seen[key] {
				c.fault("%s is given twice", showValue(v, f.fd, secret))
			}
			seen[key] = true
		}
		c.value(v, f.fd, items, secret, depth+1)
		c.at.back()
	}
}

// size checks a number of elements.
func (c *fieldChecker) size(n int, lowest uint64, highest *uint64) {
	switch {
	case uint64(n) < lowest && lowest == 1:
		c.fault("must not be empty")
	case uint64(n) < lowest:
		c.fault("%d entries is below %d", n, lowest)
	case highest != nil && uint64(n) > *highest:
		c.fault("%d entries exceeds %d", n, *highest)
	}
}

func (c *fieldChecker) mapping(m protoreflect.Map, f *fieldRules, secret bool, depth int) {
	rules := f.rules.GetMap()
	rules = cmp.Or(rules, &validate.MapRules{})
	if m.Len() == 0 && rules.GetIgnoreEmpty() {
		return
	}
	c.size(m.Len(), rules.GetMinPairs(), rules.MaxPairs)
	keys := make([]protoreflect.MapKey, 0, m.Len())
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k)
		return true
	})
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int { return strings.Compare(a.String(), b.String()) })
	for _, k := range keys {
		c.at.key(k.String())
		if r := rules.GetKeys(); r != nil {
			c.value(k.Value(), f.fd.MapKey(), r, false, depth+1)
		}
		r := cmp.Or(rules.GetValues(), c.book.free)
		c.value(m.Get(k), f.fd.MapValue(), r, secret, depth+1)
		c.at.back()
	}
}

// value checks one value of the kind of fd.
func (c *fieldChecker) value(v protoreflect.Value, fd protoreflect.FieldDescriptor, rules *validate.FieldRules, secret bool, depth int) {
	md := fd.Message()
	if md == nil {
		for _, message := range scalarFaults(v, fd, rules, secret) {
			c.fault("%s", message)
		}
		return
	}
	if wrapped := wrappedField(md); wrapped != nil {
		for _, message := range scalarFaults(v.Message().Get(wrapped), wrapped, rules, secret) {
			c.fault("%s", message)
		}
		return
	}
	switch md.FullName() {
	case "google.protobuf.Duration":
		c.duration(v.Message(), rules.GetDuration())
	case "google.protobuf.Any":
		c.extension(v.Message(), rules.GetAny(), secret, depth+1)
	case "google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue":
		if !isJSON(v.Message()) {
			c.fault("holds a number that JSON cannot hold")
		}
	default:
		if shortName(md) == "Percent" {
			c.percent(v.Message())
			return
		}
		if fd.Name() == "source_address" && shortName(fd.ContainingMessage()) == "BindConfig" && isNowhere(v.Message()) {
			return // an empty source address disables binding
		}
		c.message(v.Message(), secret, depth+1)
	}
}

// isNowhere reports whether a socket address has neither an address nor a port.
func isNowhere(m protoreflect.Message) bool {
	fields := m.Descriptor().Fields()
	for _, name := range []protoreflect.Name{"address", "port_value", "named_port"} {
		if fd := fields.ByName(name); fd != nil {
			if v := m.Get(fd); v.IsValid() && v.String() != "" && v.String() != "0" {
				return false
			}
		}
	}
	return true
}

// isJSON reports whether free-form values are valid JSON, which has neither infinity
// nor NaN.
func isJSON(m protoreflect.Message) bool {
	ok := true
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap():
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				ok = isJSON(v.Message())
				return ok
			})
		case fd.IsList():
			for i := 0; ok && i < v.List().Len(); i++ {
				ok = isJSON(v.List().Get(i).Message())
			}
		case fd.Message() != nil:
			ok = isJSON(v.Message())
		case fd.Kind() == protoreflect.DoubleKind:
			ok = !math.IsNaN(v.Float()) && !math.IsInf(v.Float(), 0)
		}
		return ok
	})
	return ok
}

// percent checks a Percent message, which is reported as one value.
func (c *fieldChecker) percent(m protoreflect.Message) {
	fd := m.Descriptor().Fields().ByName("value")
	if fd == nil || fd.Kind() != protoreflect.DoubleKind {
		return
	}
	if v := m.Get(fd).Float(); !(v >= 0 && v <= 100) {
		c.fault("%v is not a percentage between 0 and 100", v)
	}
}

func (c *fieldChecker) duration(m protoreflect.Message, rules *validate.DurationRules) {
	d, ok := m.Interface().(*durationpb.Duration)
	if !ok {
		return
	}
	if d.CheckValid() != nil {
		c.fault("%ds and %dns is not a duration", d.Seconds, d.Nanos)
		return
	}
	rules = cmp.Or(rules, &validate.DurationRules{})
	v := d.AsDuration()
	above := func(limit *durationpb.Duration) bool { return limit != nil && v > limit.AsDuration() }
	below := func(limit *durationpb.Duration) bool { return limit != nil && v < limit.AsDuration() }
	switch {
	case rules.Gt != nil && !above(rules.Gt):
		c.fault("%s must be greater than %s", v, rules.Gt.AsDuration())
	case below(rules.Gte) && rules.Gte.AsDuration() == 0:
		c.fault("%s must not be negative", v)
	case below(rules.Gte) && rules.Gte.AsDuration() == time.Millisecond:
		c.fault("%s is below the minimum of 1ms", v)
	case below(rules.Gte):
		c.fault("%s is below %s", v, rules.Gte.AsDuration())
	case rules.Lt != nil && !below(rules.Lt):
		c.fault("%s must be less than %s", v, rules.Lt.AsDuration())
	case above(rules.Lte):
		c.fault("%s exceeds %s", v, rules.Lte.AsDuration())
	case v < 0: // no field of either form has a use for it
		c.fault("%s must not be negative", v)
	}
}

// extension checks the message inside an Any if its type is known.
func (c *fieldChecker) extension(m protoreflect.Message, rules *validate.AnyRules, secret bool, depth int) {
	a, ok := m.Interface().(*anypb.Any)
	if !ok {
		return
	}
	if allowed := rules.GetIn(); len(allowed) > 0 && !slices.Contains(allowed, a.TypeUrl) {
		c.fault("%s is not one of %v", quote(a.TypeUrl, false), allowed)
	}
	inner, err := unpack(a)
	switch {
	case err != nil:
		c.errorf(Malformed, c.at.path(), "the value is not a %s", quote(string(a.MessageName()), false))
	case inner != nil:
		c.message(inner.ProtoReflect(), secret, depth)
	}
}

// unpack returns the message inside a, nil if its type is not known.
func unpack(a *anypb.Any) (proto.Message, error) {
	if a.GetTypeUrl() == "" {
		return nil, nil
	}
	mt, err := protoregistry.GlobalTypes.FindMessageByURL(a.TypeUrl)
	if err != nil {
		return nil, nil // not linked in, kept unchanged
	}
	m := mt.New().Interface()
	if err := (proto.UnmarshalOptions{RecursionLimit: conftree.MaxDepth}).Unmarshal(a.Value, m); err != nil {
		return nil, err
	}
	return m, nil
}
