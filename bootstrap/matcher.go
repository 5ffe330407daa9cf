package bootstrap

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/statsd-admin/statsd-admin/match"
)

// MatchKind says how a [StringMatcher] compares.
type MatchKind string

// The kinds of string matchers. A regular expression must match the full text.
const (
	MatchExact    MatchKind = "exact"
	MatchPrefix   MatchKind = "prefix"
	MatchSuffix   MatchKind = "suffix"
	MatchContains MatchKind = "contains"
	MatchRegex    MatchKind = "safe_regex"
)

// StringMatcher describes a test of a text. Regular expressions have been
// compiled once, so they are valid.
type StringMatcher struct {
	Kind       MatchKind
	Pattern    string
	IgnoreCase bool // never with MatchRegex
}

func (m *StringMatcher) set(d *decoder, n *yaml.Node, path string) {
	seen := d.message(n, path, []field{
		{"exact", text(&m.Pattern)},
		{"prefix", nonEmpty(&m.Pattern)},
		{"suffix", nonEmpty(&m.Pattern)},
		{"contains", nonEmpty(&m.Pattern)},
		{"safe_regex", nested(
			field{"regex", regex(&m.Pattern)},
			field{"google_re2", ignored},
		)},
		{"regex", regex(&m.Pattern)}, // the older spelling of safe_regex
		{"ignore_case", boolean(&m.IgnoreCase)},
	})
	kind := d.oneOf(n, path, seen, true, "exact", "prefix", "suffix", "contains", "safe_regex", "regex")
	m.Kind = MatchKind(kind)
	if kind == "regex" {
		m.Kind = MatchRegex
	}
	if at, ok := seen["ignore_case"]; ok && m.Kind == MatchRegex && m.IgnoreCase {
		d.errorf(at, join(path, "ignore_case"), "has no effect on a regular expression; write (?i) in it")
	}
}

// nonEmpty decodes text that must not be empty.
func nonEmpty(to *string) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		before := len(d.errs)
		text(to)(d, n, path)
		if *to == "" && len(d.errs) == before {
			d.errorf(n, path, "must not be empty")
		}
	}
}

// regex decodes a regular expression and compiles it once as a check, within the
// limits that hold where it is used.
func regex(to *string) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		before := len(d.errs)
		nonEmpty(to)(d, n, path)
		if len(d.errs) > before {
			return
		}
		if len(*to) > match.MaxPatternBytes {
			d.errorf(n, path, "regular expression of %d bytes is longer than %d", len(*to), match.MaxPatternBytes)
			return
		}
		if _, err := match.Compile(*to); err != nil {
			reason := strings.TrimPrefix(err.Error(), "match: regex "+strconv.Quote(*to))
			if strings.HasPrefix(reason, ": ") {
				reason = " is not a regular expression" + reason
			}
			d.errorf(n, path, "%s%s", d.show(n, path), reason)
		}
	}
}
