package decode

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"sync"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/statsd-admin/statsd-admin/internal/conftree"
	"github.com/statsd-admin/statsd-admin/internal/product"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// typePrefix begins every type URL.
const typePrefix = "type.googleapis.com/"

// V2 holds constructors of the v2 messages. Package v2form provides one; without it
// the v2 form is refused.
type V2 struct {
	Cluster    func() proto.Message
	Assignment func() proto.Message
}

// Options configures a [Decoder]. The zero value accepts the v3 form and the
// extensions that this package knows.
type Options struct {
	Product string // product name in identifiers; default "proxy"
	V2      *V2    // nil refuses the v2 form

	AllowUnknown bool // count unknown fields in texts instead of refusing them
	Strict       bool // refuse host weights above 100 instead of warning

	// Unknown is called for a resource, such as `cluster "a"`, with n > 0 unknown
	// fields; an error refuses it. Nil accepts all.
	Unknown func(resource string, n int) error

	// ClusterTypes are the known custom cluster types; true means that the type
	// provides its own load balancer.
	ClusterTypes map[string]bool
	// ProtocolFilters are further filters that can have protocol options; false means
	// that the filter exists but has none.
	ProtocolFilters  map[string]bool
	HealthCheckers   []string // known custom health checkers
	TransportSockets []string // known transport sockets beside TLS and plain text

	// ReadFile reads the certificates and keys of TLS contexts so that missing and
	// broken files are reported by the decoder. If nil, files are not read.
	ReadFile func(name string) ([]byte, error)
}

// Decoder decodes and validates messages. It is safe for concurrent use.
type Decoder struct {
	opts    Options
	rules   *ruleBook
	v3Types func() map[protoreflect.FullName]protoreflect.MessageType // see findV3Types; nil without V2
}

// NewDecoder returns a decoder.
func NewDecoder(o Options) *Decoder {
	o.Product = cmp.Or(o.Product, product.Default)
	o.ClusterTypes = maps.Clone(o.ClusterTypes)
	o.ProtocolFilters = maps.Clone(o.ProtocolFilters)
	o.HealthCheckers = slices.Clone(o.HealthCheckers)
	o.TransportSockets = slices.Clone(o.TransportSockets)
	d := &Decoder{opts: o, rules: newRuleBook()}
	if o.V2 != nil {
		d.v3Types = sync.OnceValue(findV3Types)
	}
	return d
}

// WithUnknown returns a copy of d with another [Options].Unknown.
func (d *Decoder) WithUnknown(decide func(resource string, n int) error) *Decoder {
	other := *d
	other.opts.Unknown = decide
	return &other
}

// Source is the origin of a tree of nodes.
type Source struct {
	File string // name for error texts; can be empty
	// Index is the index of the resource in its list, for error texts about a
	// resource without a name.
	Index int
	// Locate returns the position of a node; nil takes it from the node.
	Locate func(*yaml.Node) Position
}

func (s *Source) position(n *yaml.Node) Position {
	if s.Locate != nil {
		return s.Locate(n)
	}
	return Position{File: s.File, Line: n.Line, Column: n.Column}
}

// Original is a message as received.
type Original struct {
	message  proto.Message
	raw      *anypb.Any
	unknown  int
	warnings []*Error
}

// Message returns the message in its original form. Callers must not change it.
func (o *Original) Message() proto.Message { return o.message }

// Any returns the message packed with its own type URL. Callers must not change it.
func (o *Original) Any() *anypb.Any { return o.raw }

// TypeURL returns the type URL of the message.
func (o *Original) TypeURL() string { return o.raw.GetTypeUrl() }

// Hash returns a hash that is equal for equal messages of one form, so that updates
// without changes can be detected.
func (o *Original) Hash() uint64 {
	h := fnv.New64a()
	h.Write([]byte(o.raw.GetTypeUrl()))
	h.Write(o.raw.GetValue())
	return h.Sum64()
}

// UnknownFields returns the number of unknown fields. They are kept in the message
// and otherwise ignored.
func (o *Original) UnknownFields() int { return o.unknown }

// Warnings returns problems that do not make the message invalid.
func (o *Original) Warnings() []*Error { return slices.Clone(o.warnings) }

// ParsedCluster is a validated cluster with its original message.
type ParsedCluster struct {
	Original
	Cluster *config.Cluster

	namePosition Position
}

// Config returns p.Cluster.
func (p *ParsedCluster) Config() *config.Cluster { return p.Cluster }

// Position returns the position of the cluster's name, the zero value if it is
// unknown.
func (p *ParsedCluster) Position() Position { return p.namePosition }

// Location returns Position as text, or "" if it is unknown.
func (p *ParsedCluster) Location() string {
	if p.namePosition.Line == 0 {
		return ""
	}
	return p.namePosition.String()
}

// ParsedAssignment is a validated load assignment with its original message.
type ParsedAssignment struct {
	Original
	Assignment *config.Assignment
}

// resourceKind describes a type of resources.
type resourceKind struct {
	noun           string
	v2Name, v3Name protoreflect.FullName
	nameField      protoreflect.Name
	newV3          func() proto.Message
	newV2          func(*Decoder) proto.Message
}

func clusterKind() *resourceKind {
	return &resourceKind{
		noun: "cluster", nameField: "name",
		v2Name: "envoy.api.v2.Cluster", v3Name: "envoy.config.cluster.v3.Cluster",
		newV3: func() proto.Message { return &clusterv3.Cluster{} },
		newV2: func(d *Decoder) proto.Message { return d.opts.V2.Cluster() },
	}
}

func assignmentKind() *resourceKind {
	return &resourceKind{
		noun: "load assignment", nameField: "cluster_name",
		v2Name: "envoy.api.v2.ClusterLoadAssignment", v3Name: "envoy.config.endpoint.v3.ClusterLoadAssignment",
		newV3: func() proto.Message { return &endpointv3.ClusterLoadAssignment{} },
		newV2: func(d *Decoder) proto.Message { return d.opts.V2.Assignment() },
	}
}

// label returns the name of a resource in error texts.
func (k *resourceKind) label(name string, index int) string {
	if name == "" {
		return fmt.Sprintf("%s #%d", k.noun, index)
	}
	return k.noun + " " + quote(name, false)
}

// noV2 is the error about a v2 message without [Options].V2.
const noV2 = "the v2 form is not part of this program"

// form returns the form of a message with the type URL, or its fault.
func (k *resourceKind) form(typeURL string) (form config.Form, fault string) {
	switch messageName(typeURL) {
	case k.v3Name:
		return config.FormV3, ""
	case k.v2Name:
		return config.FormV2, ""
	}
	return config.FormUnknown, fmt.Sprintf("%s is not %s or %s", quote(typeURL, false), k.v3Name, k.v2Name)
}

// empty returns a new message of a form.
func (k *resourceKind) empty(d *Decoder, form config.Form) proto.Message {
	if form == config.FormV2 {
		return k.newV2(d)
	}
	return k.newV3()
}

// ClusterText decodes one cluster in YAML or JSON. FormUnknown detects the form from
// "@type" or the names in use and defaults to v3. The error is an [*Errors].
func (d *Decoder) ClusterText(file string, text []byte, form config.Form) (*ParsedCluster, error) {
	return d.cluster(d.decodeText(clusterKind(), file, text, form))
}

// ClusterNode decodes one cluster from a tree of nodes, which it does not change. See
// [Decoder.ClusterText].
func (d *Decoder) ClusterNode(n *yaml.Node, s Source, form config.Form) (*ParsedCluster, error) {
	return d.cluster(d.decodeNode(clusterKind(), n, s, form))
}

// ClusterWire decodes one cluster from wire bytes with their type URL. index appears
// in error texts about a cluster without a name.
func (d *Decoder) ClusterWire(typeURL string, value []byte, index int) (*ParsedCluster, error) {
	return d.cluster(d.decodeWire(clusterKind(), typeURL, value, index))
}

// ClusterMessage validates a message of either form, which it neither changes nor
// keeps.
func (d *Decoder) ClusterMessage(m proto.Message, index int) (*ParsedCluster, error) {
	return d.cluster(d.adopt(clusterKind(), m, index))
}

// ClusterResource decodes a cluster. See [Decoder.ClusterText].
func (d *Decoder) ClusterResource(r *Resource) (*ParsedCluster, error) {
	return d.cluster(d.decodeResource(clusterKind(), r))
}

// AssignmentResource decodes a load assignment. See [Decoder.ClusterText].
func (d *Decoder) AssignmentResource(r *Resource) (*ParsedAssignment, error) {
	return d.assignment(d.decodeResource(assignmentKind(), r))
}

// decodeText decodes a text into a message.
func (d *Decoder) decodeText(k *resourceKind, file string, text []byte, form config.Form) (proto.Message, *report) {
	n, errs := conftree.Parse(text, conftree.Detect)
	return d.decodeTree(k, n, errs, Source{File: file}, form)
}

// decodeNode decodes a tree that can hold aliases into a message.
func (d *Decoder) decodeNode(k *resourceKind, n *yaml.Node, s Source, form config.Form) (proto.Message, *report) {
	n, errs := conftree.Resolve(n, conftree.MaxBytes)
	return d.decodeTree(k, n, errs, s, form)
}

// decodeTree decodes a tree into a message of its form. errs are the errors of the
// text.
func (d *Decoder) decodeTree(k *resourceKind, n *yaml.Node, errs []*conftree.Error, s Source, form config.Form) (proto.Message, *report) {
	r := &report{resource: k.label(nameIn(n, string(k.nameField)), s.Index), source: s}
	r.parsed(errs)
	if n == nil {
		return nil, r
	}
	if s.File == "" && s.Locate != nil {
		r.source.File = s.Locate(n).File
	}
	if form == config.FormUnknown {
		found, rest, ok := d.detectForm(n, k, r)
		if !ok {
			return nil, r
		}
		form, n = found, rest
	} else if conftree.Member(n, "@type") != nil {
		n = withoutType(n)
	}
	if form == config.FormV2 && d.opts.V2 == nil {
		r.errorf(Malformed, "", noV2)
		return nil, r
	}
	m := k.empty(d, form)
	fill(n, m, r, d.opts.AllowUnknown)
	if len(errs) > 0 { // of the text and of its values
		slices.SortStableFunc(r.errs, func(a, b *Error) int {
			return cmp.Or(cmp.Compare(a.Position.Line, b.Position.Line), cmp.Compare(a.Position.Column, b.Position.Column))
		})
	}
	return m, r
}

// nameIn returns the text under a key of a mapping.
func nameIn(n *yaml.Node, key string) string {
	if n == nil {
		return ""
	}
	_, v := find(n, func(k string) bool { return conftree.SnakeCase(k) == key })
	if v == nil || v.Kind != yaml.ScalarNode || conftree.IsNull(v) {
		return ""
	}
	return v.Value
}

// decodeWire decodes wire bytes into a message of their type.
func (d *Decoder) decodeWire(k *resourceKind, typeURL string, value []byte, index int) (proto.Message, *report) {
	r := &report{resource: k.label("", index)}
	form, fault := k.form(typeURL)
	switch {
	case fault != "":
		r.errorf(Malformed, "", "type URL %s", fault)
		return nil, r
	case form == config.FormV2 && d.opts.V2 == nil:
		r.errorf(Malformed, "", noV2)
		return nil, r
	}
	m := k.empty(d, form)
	if len(value) > conftree.MaxBytes {
		r.errorf(Malformed, "", "%d bytes are more than the limit of %d", len(value), conftree.MaxBytes)
		return nil, r
	}
	if err := (proto.UnmarshalOptions{RecursionLimit: conftree.MaxDepth}).Unmarshal(bytes.Clone(value), m); err != nil {
		r.errorf(Malformed, "", "the bytes are not a %s", m.ProtoReflect().Descriptor().FullName())
		return nil, r
	}
	name := m.ProtoReflect().Get(m.ProtoReflect().Descriptor().Fields().ByName(k.nameField))
	r.resource = k.label(name.String(), index)
	return m, r
}

// adopt copies a message that the caller built.
func (d *Decoder) adopt(k *resourceKind, m proto.Message, index int) (proto.Message, *report) {
	r := &report{resource: k.label("", index)}
	if m == nil || !m.ProtoReflect().IsValid() {
		r.errorf(Malformed, "", "no message")
		return nil, r
	}
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		r.errorf(Malformed, "", "the message cannot be encoded: %v", err)
		return nil, r
	}
	return d.decodeWire(k, typePrefix+string(m.ProtoReflect().Descriptor().FullName()), value, index)
}

// prepare checks the field rules of m, upgrades a copy to the v3 form and packs m.
// Errors are added to r.
func (d *Decoder) prepare(m proto.Message, r *report) (*upgraded, Original) {
	if len(r.errs) > 0 {
		return nil, Original{}
	}
	c := fieldChecker{report: r, book: d.rules}
	c.message(m.ProtoReflect(), false, 0)
	o := Original{message: m}
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		r.errorf(Malformed, "", "the message cannot be encoded: %v", err)
		return nil, o
	}
	o.raw = &anypb.Any{TypeUrl: typePrefix + string(m.ProtoReflect().Descriptor().FullName()), Value: value}
	l := d.upgrade(m, value, r)
	o.unknown = r.unknown + countUnknown(m.ProtoReflect())
	if o.unknown > 0 && d.opts.Unknown != nil {
		if err := d.opts.Unknown(r.resource, o.unknown); err != nil {
			r.errorf(UnknownField, "", "%v", err)
		}
	}
	return l, o
}

// countUnknown counts the unknown fields in m at any level, extensions excluded.
func countUnknown(m protoreflect.Message) int {
	n := len(unknownFields(m.GetUnknown()))
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap():
			if fd.MapValue().Message() != nil {
				v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
					n += countUnknown(v.Message())
					return true
				})
			}
		case fd.Message() == nil:
		case fd.IsList():
			for i := range v.List().Len() {
				n += countUnknown(v.List().Get(i).Message())
			}
		default:
			n += countUnknown(v.Message())
		}
		return true
	})
	return n
}

// cluster validates and compiles a decoded cluster.
func (d *Decoder) cluster(m proto.Message, r *report) (*ParsedCluster, error) {
	l, o := d.prepare(m, r)
	if l == nil {
		return nil, r.err()
	}
	c := d.checkCluster(d.builtinType(l.message.(*clusterv3.Cluster), &l.extra, r), l, r)
	if err := r.err(); err != nil {
		return nil, err
	}
	o.warnings = r.warnings
	return &ParsedCluster{Original: o, Cluster: c, namePosition: r.position("name")}, nil
}

// assignment validates and compiles a decoded load assignment.
func (d *Decoder) assignment(m proto.Message, r *report) (*ParsedAssignment, error) {
	l, o := d.prepare(m, r)
	if l == nil {
		return nil, r.err()
	}
	a := d.checkAssignment(l.message.(*endpointv3.ClusterLoadAssignment), l, r)
	if err := r.err(); err != nil {
		return nil, err
	}
	o.warnings = r.warnings
	return &ParsedAssignment{Original: o, Assignment: a}, nil
}
