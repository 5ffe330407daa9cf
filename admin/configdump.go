package admin

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/statsd-admin/statsd-admin/internal/wire"
	"github.com/statsd-admin/statsd-admin/render"
)

// typePlain is the content type of /config_dump errors.
const typePlain = "text/plain"

// plain answers with a /config_dump error.
func (w *Response) plain(status int, body string) error {
	w.SetType(typePlain)
	return w.text(status, body)
}

// redactor removes secrets from responses.
func (s *Server) redactor(r *Request) wire.Redactor {
	return wire.Redactor{Untyped: !s.cfg.ShowUntyped || r.bundled}
}

func (s *Server) configDump(w *Response, r *Request) error {
	d := configDump{server: s, redactor: s.redactor(r)}
	if expr := r.query.Value("name_regex"); expr != "" {
		if !s.regexes.enter(s.session()) {
			return s.noFilter(w)
		}
		defer s.regexes.leave()
		names, err := newNameFilter(expr, s.filters.limits)
		if err != nil {
			return w.plain(400, "INVALID_ARGUMENT: Error while parsing name_regex from "+expr+": "+err.Error())
		}
		d.names = names
	}
	if s.src.ConfigDump != nil {
		d.sections = slices.Clone(s.src.ConfigDump(r.query.Has("include_eds")))
		d.sections = slices.DeleteFunc(d.sections, func(s ConfigSection) bool { return s.Message == nil })
		slices.SortStableFunc(d.sections, func(a, b ConfigSection) int { return cmp.Compare(a.Key, b.Key) })
	}
	d.mask, d.maskText = wire.ParseMask(r.query.Value("mask")), r.query.Value("mask")
	var err error
	if resource := r.query.Value("resource"); resource != "" {
		err = d.resource(w, resource)
	} else {
		err = d.all(w)
	}
	if errors.Is(err, render.ErrTooExpensive) {
		return badRequest("name_regex too expensive\n")
	}
	return err
}

// configDump writes one /config_dump response.
type configDump struct {
	server   *Server
	redactor wire.Redactor
	sections []ConfigSection
	mask     wire.Mask // without paths: all fields
	maskText string
	names    *nameFilter // nil: all names

	out    *wire.Writer
	opened bool // "configs" was begun
}

// begin starts the response.
func (d *configDump) begin(w *Response) {
	w.SetType(typeJSON)
	d.out = wire.To(w)
	d.out.BeginObject()
}

// config starts the list of configs, if it has not yet been started.
func (d *configDump) config() {
	if !d.opened {
		d.out.Key("configs").BeginList()
		d.opened = true
	}
}

func (d *configDump) finish() error {
	if d.opened {
		d.out.EndList()
	}
	d.out.EndObject()
	return d.out.Finish()
}

// all writes the sections that match the mask.
func (d *configDump) all(w *Response) error {
	masked := len(d.mask.Paths()) > 0
	if masked {
		d.sections = slices.DeleteFunc(d.sections, func(s ConfigSection) bool {
			return d.mask.Fits(s.Message.ProtoReflect().Descriptor()) != nil
		})
		if len(d.sections) == 0 {
			return w.plain(400, "FieldMask "+d.maskText+" could not be successfully applied to any configs.")
		}
	}
	d.begin(w)
	for i := range d.sections {
		d.config()
		if err := d.section(&d.sections[i], masked); err != nil {
			return err
		}
	}
	return d.finish()
}

// section writes one section: its lists of messages element by element, in between
// the other fields.
func (d *configDump) section(s *ConfigSection, masked bool) error {
	rest := withoutLists(s.Message)
	if masked {
		rest = proto.Clone(rest)
		if err := d.mask.Keep(rest); err != nil {
			return err
		}
	}
	rest = d.redactor.Redact(rest)
	if !hasMessageLists(rest) {
		d.out.Packed(rest, wire.OmitDefaults)
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
func (d *configDump) list(s *ConfigSection, fd protoreflect.FieldDescriptor) error {
	some := false
	for name, element := range s.Elements(fd) {
		if ok, err := d.names.match(name); err != nil {
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

// Elements returns the elements of a repeated field of messages with their names. The
// caller owns the elements.
func (s *ConfigSection) Elements(fd protoreflect.FieldDescriptor) iter.Seq2[string, proto.Message] {
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
		fd := fields.Get(i)
		if fd.Message() == nil || fd.IsList() || fd.IsMap() || !r.Has(fd) {
			continue
		}
		packed, ok := r.Get(fd).Message().Interface().(*anypb.Any)
		if !ok {
			continue
		}
		if content, err := packed.UnmarshalNew(); err == nil {
			if name := configName(content); name != "" {
				return name
			}
		}
	}
	return ""
}

// resource writes the elements of one field.
func (d *configDump) resource(w *Response, name string) error {
	for i := range d.sections {
		s := &d.sections[i]
		fd := s.Message.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(name))
		switch {
		case fd == nil:
			continue
		case !isMessageList(fd):
			return w.plain(400, name+" is not a repeated field. Use ?mask="+name+" to get only this field")
		}
		return d.elements(w, s, fd)
	}
	return w.plain(404, name+" not found in config dump")
}

func (d *configDump) elements(w *Response, s *ConfigSection, fd protoreflect.FieldDescriptor) error {
	masked := len(d.mask.Paths()) > 0
	if masked { // an answer under way cannot become an error
		for name, element := range s.Elements(fd) {
			if ok, err := d.names.match(name); err != nil {
				return err
			} else if ok && d.mask.FitsPacked(element) != nil {
				return w.plain(400, d.unfit())
			}
		}
	}
	d.begin(w)
	for name, element := range s.Elements(fd) {
		if ok, err := d.names.match(name); err != nil {
			return err
		} else if !ok {
			continue
		}
		if masked && d.mask.KeepPacked(element) != nil {
			return &Error{Status: 400, Msg: d.unfit()}
		}
		d.config()
		d.out.Packed(d.out.Redact(d.redactor, fd, element), wire.OmitDefaults)
		if err := d.out.Err(); err != nil {
			return err
		}
	}
	return d.finish()
}

// unfit returns the error for a mask with unknown fields. It shows the mask in the
// text format of its message.
func (d *configDump) unfit() string {
	var text strings.Builder
	for _, path := range d.mask.Paths() {
		fmt.Fprintf(&text, "paths: %q\n", path)
	}
	return "FieldMask " + text.String() + " could not be successfully used."
}

// nameFilter selects names that an expression matches as a whole. It serves one
// request and enforces its budget. If nil, it selects all names.
type nameFilter struct {
	filter *render.Filter
	now    func() time.Time
	budget time.Duration // what is left of it
	bound  bool          // there is a budget
}

// newNameFilter compiles an expression. The error text is only the reason.
func newNameFilter(expr string, l render.FilterLimits) (*nameFilter, error) {
	reason := func(err error) error {
		text := strings.TrimPrefix(err.Error(), "render: ")
		return errors.New(strings.TrimPrefix(text, "invalid regular expression: "))
	}
	// Compile it alone first: an invalid expression could become valid in brackets.
	if _, err := render.NewFilter(render.RE2, expr, l); err != nil {
		return nil, reason(err)
	}
	whole := l
	whole.Length, whole.Program = len(expr)+16, l.Program+16
	f, err := render.NewFilter(render.RE2, `\A(?:`+expr+`)\z`, whole)
	if err != nil { // an open \Q quotes the bracket
		f, err = render.NewFilter(render.RE2, `\A(?:`+expr+`\E)\z`, whole)
	}
	if err != nil {
		return nil, reason(err)
	}
	now := l.Now
	if now == nil {
		now = time.Now
	}
	return &nameFilter{f, now, l.Budget, l.Budget > 0}, nil
}

// match reports whether a name is selected. The error is
// [render.ErrTooExpensive] once matching took longer than the budget.
func (f *nameFilter) match(name string) (bool, error) {
	if f == nil {
		return true, nil
	}
	begin := f.now()
	ok, err := f.filter.Match(name)
	f.budget -= f.now().Sub(begin)
	if err == nil && f.bound && f.budget < 0 {
		err = render.ErrTooExpensive
	}
	return ok, err
}
