package bootstrap

import "go.yaml.in/yaml/v4"

// AccessFilter says which requests an access log has. One field is set; without
// any it has all.
type AccessFilter struct {
	Status   *Comparison    // of the status of the answer
	Duration *Comparison    // of the milliseconds that the answer took
	Header   *HeaderMatcher // of the request
	And, Or  []AccessFilter // two or more
}

// CompareOp says how a number is compared.
type CompareOp string

// The comparisons.
const (
	CompareEqual          CompareOp = "EQ"
	CompareGreaterOrEqual CompareOp = "GE"
	CompareLessOrEqual    CompareOp = "LE"
	CompareNotEqual       CompareOp = "NE"
)

// Comparison compares a number with a value.
type Comparison struct {
	Op         CompareOp // default EQ
	Value      uint32
	RuntimeKey string // of a runtime value that goes before Value; empty: none
}

// HeaderMatcher describes a test of a header field. A field that is not there
// passes none but that for it being absent.
type HeaderMatcher struct {
	Name string // in lower case; :method, :path, :authority and :scheme stand for parts of the request
	// Match compares the value; nil: only whether the field is there counts.
	Match *StringMatcher
	// Absent, without Match, wants that the field is not there.
	Absent bool
	Invert bool // of the test of a field that is there, and of that for it being there
	// MissingIsEmpty takes a field that is not there for an empty one.
	MissingIsEmpty bool
}

func (f *AccessFilter) set(d *decoder, n *yaml.Node, path string) {
	seen := d.message(n, path, []field{
		{"status_code_filter", comparison(&f.Status)},
		{"duration_filter", comparison(&f.Duration)},
		{"header_filter", around("header", func(d *decoder, n *yaml.Node, path string) {
			f.Header = new(HeaderMatcher)
			f.Header.set(d, n, path)
		})},
		{"and_filter", filters(&f.And)},
		{"or_filter", filters(&f.Or)},
		{"not_health_check_filter", nested()}, // no request here is a health check
		{"traceable_filter", absent},
		{"runtime_filter", absent},
		{"response_flag_filter", absent},
		{"grpc_status_filter", absent},
		{"extension_filter", absent},
		{"metadata_filter", absent},
		{"log_type_filter", absent},
	})
	d.oneOf(n, path, seen, true, "status_code_filter", "duration_filter", "header_filter", "and_filter", "or_filter", "not_health_check_filter")
}

// around decodes a message of one required field.
func around(name string, set setter) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		d.require(n, path, d.message(n, path, []field{{name, set}}), name)
	}
}

func comparison(to **Comparison) setter {
	return around("comparison", func(d *decoder, n *yaml.Node, path string) {
		c := &Comparison{Op: CompareEqual}
		*to = c
		seen := d.message(n, path, []field{
			{"op", choice(&c.Op, CompareEqual, CompareGreaterOrEqual, CompareLessOrEqual, CompareNotEqual)},
			{"value", nested(field{"default_value", whole(&c.Value, 0, 1<<32-1)}, field{"runtime_key", text(&c.RuntimeKey)})},
		})
		d.require(n, path, seen, "value")
	})
}

func filters(to *[]AccessFilter) setter {
	return around("filters", func(d *decoder, n *yaml.Node, path string) {
		list(to, func(f *AccessFilter) setter { return f.set })(d, n, path)
		if n.Kind == yaml.SequenceNode && len(*to) < 2 {
			d.errorf(n, path, "has %d elements, must have at least 2", len(*to))
		}
	})
}

func (h *HeaderMatcher) set(d *decoder, n *yaml.Node, path string) {
	var m StringMatcher
	plain := func(kind MatchKind) setter {
		return func(d *decoder, n *yaml.Node, path string) {
			m.Kind = kind
			if kind == MatchExact {
				text(&m.Pattern)(d, n, path)
				return
			}
			nonEmpty(&m.Pattern)(d, n, path)
		}
	}
	expression := func(d *decoder, n *yaml.Node, path string) {
		m.Kind = MatchRegex
		regex(&m.Pattern)(d, n, path)
	}
	present := true
	seen := d.message(n, path, []field{
		{"name", nonEmpty(&h.Name)},
		{"exact_match", plain(MatchExact)},
		{"prefix_match", plain(MatchPrefix)},
		{"suffix_match", plain(MatchSuffix)},
		{"contains_match", plain(MatchContains)},
		{"safe_regex_match", nested(field{"regex", expression}, field{"google_re2", ignored})},
		{"regex_match", expression}, // the older spelling
		{"string_match", m.set},
		{"present_match", boolean(&present)},
		{"range_match", absent},
		{"invert_match", boolean(&h.Invert)},
		{"treat_missing_header_as_empty", boolean(&h.MissingIsEmpty)},
	})
	d.require(n, path, seen, "name")
	kind := d.oneOf(n, path, seen, false, "exact_match", "prefix_match", "suffix_match", "contains_match", "safe_regex_match", "regex_match", "string_match", "present_match")
	switch kind {
	case "":
	case "present_match":
		h.Absent = !present
	default:
		h.Match = &m
	}
}
