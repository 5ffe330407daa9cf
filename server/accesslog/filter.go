package accesslog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// Filter selects the requests to log. A request must pass every test that is set; the
// zero value passes all requests.
type Filter struct {
	Status   *Comparison // response status
	Duration *Comparison // response time in milliseconds
	Header   *HeaderTest // request header
	And      []Filter    // all must pass
	Or       []Filter    // one must pass, unless empty
}

// Comparison compares a number with Value, or with the runtime value of a key if one
// is set when the request is logged.
type Comparison struct {
	Op         Op
	Value      uint64
	RuntimeKey string // optional
}

// Op is a comparison operator.
type Op uint8

// The comparison operators.
const (
	Equal Op = iota
	GreaterOrEqual
	LessOrEqual
	NotEqual
)

func (c *Comparison) passes(n uint64, rt config.Runtime) bool {
	value := c.Value
	if c.RuntimeKey != "" {
		value = rt.Uint(c.RuntimeKey, value)
	}
	switch c.Op {
	case GreaterOrEqual:
		return n >= value
	case LessOrEqual:
		return n <= value
	case NotEqual:
		return n != value
	}
	return n == value
}

// HeaderTest tests a header field. An empty field counts as absent.
type HeaderTest struct {
	// Name is the field name, or :method, :path, :authority or :scheme.
	Name string
	// Match tests the value. If nil, only the presence of the field is tested. An
	// absent field does not pass, regardless of Invert, unless MissingIsEmpty is set.
	Match          func(value string) bool
	Absent         bool // without Match: the field must be absent
	Invert         bool
	MissingIsEmpty bool
}

func (h *HeaderTest) passes(value string) bool {
	switch {
	case h.Match == nil:
		return (value == "") == h.Absent != h.Invert
	case value == "" && !h.MissingIsEmpty:
		return false
	}
	return h.Match(value) != h.Invert
}

// compile returns f as a function. It fails if a filter names a secret header.
func (f *Filter) compile(rt config.Runtime) (func(e *Entry) bool, error) {
	var tests []func(e *Entry) bool
	if c := f.Status; c != nil {
		tests = append(tests, func(e *Entry) bool { return c.passes(uint64(max(e.Status, 0)), rt) })
	}
	if c := f.Duration; c != nil {
		tests = append(tests, func(e *Entry) bool { return c.passes(uint64(max(e.Duration.Milliseconds(), 0)), rt) })
	}
	if h := f.Header; h != nil {
		if slices.Contains(secretHeaders, strings.ToLower(h.Name)) {
			return nil, fmt.Errorf("accesslog: filter: header %q is secret and cannot be used", h.Name)
		}
		value := header(h.Name, false)
		tests = append(tests, func(e *Entry) bool { return h.passes(value(e)) })
	}
	inner := make([]func(e *Entry) bool, len(f.And)+len(f.Or))
	for i, filter := range slices.Concat(f.And, f.Or) {
		var err error
		if inner[i], err = filter.compile(rt); err != nil {
			return nil, err
		}
	}
	tests = append(tests, inner[:len(f.And)]...)
	if either := inner[len(f.And):]; len(either) > 0 {
		tests = append(tests, func(e *Entry) bool {
			return slices.ContainsFunc(either, func(test func(*Entry) bool) bool { return test(e) })
		})
	}
	return func(e *Entry) bool {
		return !slices.ContainsFunc(tests, func(test func(*Entry) bool) bool { return !test(e) })
	}, nil
}
