package tap

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/matcher/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tapv3 "github.com/envoyproxy/go-control-plane/envoy/config/tap/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"

	"github.com/statsd-admin/statsd-admin/match"
)

// event is the input of matchers.
type event struct {
	received          []byte
	request, response func(name string) (value string, ok bool) // header fields; nil without headers
}

// matcher selects events.
type matcher func(*event) bool

func compileMatch(c *tapv3.TapConfig) (matcher, error) {
	if m := c.GetMatch(); m != nil {
		return predicate(m, 0)
	}
	//lint:ignore SA1019 requests of older clients have the deprecated field
	old := c.GetMatchConfig()
	if old == nil {
		return nil, errors.New("tap_config: one of match and match_config must be set")
	}
	// Both messages have the same fields.
	b, err := proto.Marshal(old)
	if err != nil {
		return nil, err
	}
	var m commonv3.MatchPredicate
	if err := proto.Unmarshal(b, &m); err != nil {
		return nil, err
	}
	return predicate(&m, 0)
}

// predicate compiles one rule.
func predicate(m *commonv3.MatchPredicate, depth int) (matcher, error) {
	const deepest = 32
	if depth > deepest {
		return nil, fmt.Errorf("tap_config.match: nested deeper than %d levels", deepest)
	}
	set := func(rules []*commonv3.MatchPredicate) (all []matcher, err error) {
		for _, r := range rules {
			m, err := predicate(r, depth+1)
			if err != nil {
				return nil, err
			}
			all = append(all, m)
		}
		return all, nil
	}
	switch r := m.GetRule().(type) {
	case *commonv3.MatchPredicate_AnyMatch:
		return func(*event) bool { return r.AnyMatch }, nil
	case *commonv3.MatchPredicate_OrMatch:
		all, err := set(r.OrMatch.GetRules())
		return func(e *event) bool {
			return slices.ContainsFunc(all, func(m matcher) bool { return m(e) })
		}, err
	case *commonv3.MatchPredicate_AndMatch:
		all, err := set(r.AndMatch.GetRules())
		return func(e *event) bool {
			return !slices.ContainsFunc(all, func(m matcher) bool { return !m(e) })
		}, err
	case *commonv3.MatchPredicate_NotMatch:
		m, err := predicate(r.NotMatch, depth+1)
		return func(e *event) bool { return !m(e) }, err
	case *commonv3.MatchPredicate_HttpRequestHeadersMatch:
		all, err := headers(r.HttpRequestHeadersMatch.GetHeaders())
		return func(e *event) bool { return e.request != nil && all(e.request) }, err
	case *commonv3.MatchPredicate_HttpResponseHeadersMatch:
		all, err := headers(r.HttpResponseHeadersMatch.GetHeaders())
		return func(e *event) bool { return e.response != nil && all(e.response) }, err
	case *commonv3.MatchPredicate_HttpRequestGenericBodyMatch:
		return body(r.HttpRequestGenericBodyMatch), nil
	}
	return nil, fmt.Errorf("tap_config.match: %T is not supported; use any_match, or_match, and_match, not_match, "+
		"http_request_headers_match, http_response_headers_match or http_request_generic_body_match", m.GetRule())
}

// body matches a body that contains all patterns.
func body(m *commonv3.HttpGenericBodyMatch) matcher {
	var patterns [][]byte
	for _, p := range m.GetPatterns() {
		if b := p.GetBinaryMatch(); len(b) > 0 {
			patterns = append(patterns, b)
		} else {
			patterns = append(patterns, []byte(p.GetStringMatch()))
		}
	}
	limit := int(m.GetBytesLimit())
	return func(e *event) bool {
		text := e.received
		if limit > 0 && len(text) > limit {
			text = text[:limit]
		}
		return !slices.ContainsFunc(patterns, func(p []byte) bool { return !bytes.Contains(text, p) })
	}
}

type fields func(name string) (string, bool)

// headers matches header fields that satisfy all matchers.
func headers(all []*routev3.HeaderMatcher) (func(fields) bool, error) {
	var tests []func(fields) bool
	for _, h := range all {
		t, err := header(h)
		if err != nil {
			return nil, err
		}
		tests = append(tests, t)
	}
	return func(f fields) bool {
		return !slices.ContainsFunc(tests, func(t func(fields) bool) bool { return !t(f) })
	}, nil
}

// header compiles the matcher of one field.
func header(h *routev3.HeaderMatcher) (func(fields) bool, error) {
	name, invert := h.GetName(), h.GetInvertMatch()
	if _, ok := h.GetHeaderMatchSpecifier().(*routev3.HeaderMatcher_PresentMatch); ok || h.GetHeaderMatchSpecifier() == nil {
		want := (h.GetHeaderMatchSpecifier() == nil || h.GetPresentMatch()) != invert
		return func(f fields) bool { _, ok := f(name); return ok == want }, nil
	}
	m, ok := h.GetHeaderMatchSpecifier().(*routev3.HeaderMatcher_StringMatch)
	if !ok {
		return nil, fmt.Errorf("tap_config.match: header %q: %T is not supported; use string_match or present_match",
			name, h.GetHeaderMatchSpecifier())
	}
	var kind match.Kind
	var pattern string
	switch p := m.StringMatch.GetMatchPattern().(type) {
	case *typev3.StringMatcher_Exact:
		kind, pattern = match.KindExact, p.Exact
	case *typev3.StringMatcher_Prefix:
		kind, pattern = match.KindPrefix, p.Prefix
	case *typev3.StringMatcher_Suffix:
		kind, pattern = match.KindSuffix, p.Suffix
	case *typev3.StringMatcher_Contains:
		kind, pattern = match.KindContains, p.Contains
	case *typev3.StringMatcher_SafeRegex:
		kind, pattern = match.KindRegex, p.SafeRegex.GetRegex()
	default:
		return nil, fmt.Errorf("tap_config.match: header %q: %T is not supported", name, p)
	}
	compiled, err := match.New(kind, pattern, m.StringMatch.GetIgnoreCase())
	if err != nil {
		return nil, fmt.Errorf("tap_config.match: header %q: %w", name, err)
	}
	return func(f fields) bool {
		v, ok := f(name)
		return ok && compiled.Match(v) != invert || !ok && h.GetTreatMissingHeaderAsEmpty() && compiled.Match("") != invert
	}, nil
}
