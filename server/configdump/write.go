package configdump

import (
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/statsd-admin/statsd-admin/admin/dump"
	"github.com/statsd-admin/statsd-admin/internal/wire"
)

// Source returns the sections of a dump in any order, with endpoints if requested. It
// is an admin.ConfigDump.
type Source func(endpoints bool) []Section

// Sections returns the lists of resources of each section in key order.
func (s Source) Sections(endpoints bool) []dump.Section {
	var out []dump.Section
	for _, of := range s.messages(endpoints) {
		whole := resource("", of.Message)
		shown := dump.Section{Key: of.Key, Version: whole.Version, Updated: whole.Updated}
		fields := of.Message.ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			fd := fields.Get(i)
			if !isMessageList(fd) {
				shown.Fields = append(shown.Fields, string(fd.Name()))
				continue
			}
			list := dump.List{Field: string(fd.Name()), Resources: func(yield func(dump.Resource) bool) {
				for name, element := range of.elements(fd) {
					if !yield(resource(name, element)) {
						return
					}
				}
			}}
			if fd.Message().Fields().ByName("error_state") != nil {
				list.Refused = of.refused(fd)
			}
			shown.Lists = append(shown.Lists, list)
		}
		out = append(out, shown)
	}
	return out
}

// resource describes a message of a dump, whose version and time have the same names in
// all of them.
func resource(name string, m proto.Message) dump.Resource {
	r := dump.Resource{Name: name}
	if v, ok := m.(interface{ GetVersionInfo() string }); ok {
		r.Version = v.GetVersionInfo()
	}
	if u, ok := m.(interface {
		GetLastUpdated() *timestamppb.Timestamp
	}); ok && u.GetLastUpdated() != nil {
		r.Updated = u.GetLastUpdated().AsTime()
	}
	return r
}

// messages returns the sections that have a message in key order.
func (s Source) messages(endpoints bool) []Section {
	out := slices.DeleteFunc(slices.Clone(s(endpoints)), func(s Section) bool { return s.Message == nil })
	slices.SortStableFunc(out, func(a, b Section) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// Write writes the dump for a query as JSON. It returns a [dump.Error] before
// it writes anything, or an error of to or of the filter of the query.
func (s Source) Write(to io.Writer, q dump.Query) error {
	d := writer{
		Query: q, to: to, sections: s.messages(q.Endpoints),
		mask: wire.ParseMask(q.Mask), redactor: wire.Redactor{Untyped: q.Untyped},
	}
	if q.Resource != "" {
		return d.resource()
	}
	return d.all()
}

// writer writes one dump.
type writer struct {
	dump.Query
	to       io.Writer
	sections []Section
	mask     wire.Mask // without paths: all fields
	redactor wire.Redactor

	out    *wire.Writer
	opened bool // "configs" was begun
}

// begin starts the response.
func (d *writer) begin() {
	d.out = wire.To(d.to)
	d.out.BeginObject()
}

// config starts the list of configs, if it has not yet been started.
func (d *writer) config() {
	if !d.opened {
		d.out.Key("configs").BeginList()
		d.opened = true
	}
}

func (d *writer) finish() error {
	if d.opened {
		d.out.EndList()
	}
	d.out.EndObject()
	return d.out.Finish()
}

// all writes the sections that match the mask.
func (d *writer) all() error {
	masked := len(d.mask.Paths()) > 0
	if masked {
		d.sections = slices.DeleteFunc(d.sections, func(s Section) bool {
			if settings, ok := s.Message.(*structpb.Struct); ok {
				return maskedSettings(settings, d.mask) == nil
			}
			return d.mask.Fits(s.Message.ProtoReflect().Descriptor()) != nil
		})
		if len(d.sections) == 0 {
			return dump.Unfit(d.Mask)
		}
	}
	d.begin()
	for i := range d.sections {
		d.config()
		if err := d.section(&d.sections[i], masked); err != nil {
			return err
		}
	}
	return d.finish()
}

// maskedSettings returns the settings below the paths of a mask, which start at the
// bootstrap file as for the message beside them: bootstrap has all of them,
// bootstrap.statsd a part. It is nil if there is nothing at a path.
func maskedSettings(settings *structpb.Struct, mask wire.Mask) *structpb.Struct {
	out := &structpb.Struct{}
	for _, path := range mask.Paths() {
		if path == "bootstrap" {
			return settings
		}
		rest, ok := strings.CutPrefix(path, "bootstrap.")
		if !ok {
			return nil
		}
		from, to := settings, out
		for deeper := true; deeper; {
			var key string
			key, rest, deeper = strings.Cut(rest, ".")
			value := from.GetFields()[key]
			if value == nil || deeper && value.GetStructValue() == nil {
				return nil
			}
			if to.Fields == nil {
				to.Fields = make(map[string]*structpb.Value)
			}
			switch to.Fields[key] {
			case value: // a shorter path keeps all of it
				deeper = false
			case nil:
				to.Fields[key] = structpb.NewStructValue(&structpb.Struct{})
			}
			if !deeper {
				to.Fields[key] = value
			}
			from, to = value.GetStructValue(), to.Fields[key].GetStructValue()
		}
	}
	return out
}

// section writes one section: its lists of messages element by element, in between
// the other fields.
func (d *writer) section(s *Section, masked bool) error {
	rest := withoutLists(s.Message)
	if settings, ok := rest.(*structpb.Struct); ok && masked {
		rest = maskedSettings(settings, d.mask)
	} else if masked {
		rest = proto.Clone(rest)
		if err := d.mask.Keep(rest); err != nil {
			return err
		}
	}
	rest = d.redactor.Redact(rest)
	if !hasMessageLists(rest) {
		d.out.Packed(rest)
		return d.out.Err()
	}
	d.out.BeginObject()
	d.out.Key("@type").String(wire.TypeURL(s.Message))
	var failed error
	d.out.Members(rest, wire.OmitDefaults, func(fd protoreflect.FieldDescriptor) bool {
		if !isMessageList(fd) {
			return failed != nil
		}
		if failed == nil && (!masked || d.mask.Has(fd.Name())) {
			failed = d.list(s, fd)
		}
		return true
	})
	d.out.EndObject()
	return failed
}

// withoutLists returns a message with the fields of m except lists of messages. It
// shares their values.
func withoutLists(m proto.Message) proto.Message {
	from := m.ProtoReflect()
	to := from.New()
	from.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if !isMessageList(fd) {
			to.Set(fd, v)
		}
		return true
	})
	return to.Interface()
}

func hasMessageLists(m proto.Message) bool {
	fields := m.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if isMessageList(fields.Get(i)) {
			return true
		}
	}
	return false
}

func isMessageList(fd protoreflect.FieldDescriptor) bool { return fd.IsList() && fd.Message() != nil }

// list writes a field with its elements, or nothing if there are none.
func (d *writer) list(s *Section, fd protoreflect.FieldDescriptor) error {
	some := false
	for name, element := range s.elements(fd) {
		if ok, err := d.Matches(name); err != nil {
			return err
		} else if !ok {
			continue
		}
		if !some {
			d.out.Key(string(fd.Name())).BeginList()
			some = true
		}
		d.out.Message(d.out.Redact(d.redactor, fd, element), wire.OmitDefaults)
		if err := d.out.Err(); err != nil {
			return err
		}
	}
	if some {
		d.out.EndList()
	}
	return nil
}

// elements returns the elements of a repeated field of messages with their names. The
// caller owns the elements.
func (s *Section) elements(fd protoreflect.FieldDescriptor) iter.Seq2[string, proto.Message] {
	if list := s.Lists[string(fd.Name())]; list != nil {
		return list
	}
	return func(yield func(string, proto.Message) bool) {
		list := s.Message.ProtoReflect().Get(fd).List()
		for i := range list.Len() {
			element := proto.Clone(list.Get(i).Message().Interface())
			if !yield(configName(element), element) {
				return
			}
		}
	}
}

// refused yields the names of the elements whose last update was refused, and why.
func (s *Section) refused(fd protoreflect.FieldDescriptor) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for name, element := range s.elements(fd) {
			e, ok := element.(interface {
				GetErrorState() *adminv3.UpdateFailureState
			})
			if ok && e.GetErrorState() != nil && !yield(name, e.GetErrorState().GetDetails()) {
				return
			}
		}
	}
}

// configName returns the name of a configuration message, or of the first message
// packed in it that has a name.
func configName(m proto.Message) string {
	r := m.ProtoReflect()
	fields := r.Descriptor().Fields()
	for _, name := range [...]protoreflect.Name{"name", "cluster_name"} {
		if fd := fields.ByName(name); fd != nil && fd.Kind() == protoreflect.StringKind && !fd.IsList() {
			return r.Get(fd).String()
		}
	}
	for i := range fields.Len() {
		field, ok := r.Get(fields.Get(i)).Interface().(protoreflect.Message)
		if !ok {
			continue
		}
		packed, _ := field.Interface().(*anypb.Any) // nil, which has no content, for other messages
		if content, err := packed.UnmarshalNew(); err == nil {
			if name := configName(content); name != "" {
				return name
			}
		}
	}
	return ""
}

// resource writes the elements of one field.
func (d *writer) resource() error {
	for i := range d.sections {
		s := &d.sections[i]
		fd := s.Message.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(d.Resource))
		switch {
		case fd == nil:
			continue
		case !isMessageList(fd):
			return dump.NotRepeated(d.Resource)
		}
		return d.elements(s, fd)
	}
	return dump.NotFound(d.Resource)
}

func (d *writer) elements(s *Section, fd protoreflect.FieldDescriptor) error {
	masked := len(d.mask.Paths()) > 0
	if masked { // a started response cannot become an error
		for name, element := range s.elements(fd) {
			if ok, err := d.Matches(name); err != nil {
				return err
			} else if ok && d.mask.FitsPacked(element) != nil {
				return dump.UnfitPaths(d.mask.Paths())
			}
		}
	}
	d.begin()
	for name, element := range s.elements(fd) {
		if ok, err := d.Matches(name); err != nil {
			return err
		} else if !ok {
			continue
		}
		if masked && d.mask.KeepPacked(element) != nil {
			return fmt.Errorf("configdump: %s changed its type during the dump", name)
		}
		d.config()
		d.out.Packed(d.out.Redact(d.redactor, fd, element))
		if err := d.out.Err(); err != nil {
			return err
		}
	}
	return d.finish()
}
