package bootstrap

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/statsd-admin/statsd-admin/match"
)

// matchKinds maps the fields of a matcher to its kinds. A regular expression
// must match the full text.
var matchKinds = map[string]match.Kind{
	"exact": match.KindExact, "prefix": match.KindPrefix, "suffix": match.KindSuffix, "contains": match.KindContains,
	"safe_regex": match.KindRegex, "regex": match.KindRegex, // regex is the older name of safe_regex
}

// matcher decodes a test of a text.
func matcher(to *match.Matcher) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		var pattern string
		var ignoreCase bool
		before := len(d.errs)
		seen := d.message(n, path, []field{
			{"exact", text(&pattern)},
			{"prefix", nonEmpty(&pattern)},
			{"suffix", nonEmpty(&pattern)},
			{"contains", nonEmpty(&pattern)},
			{"safe_regex", nested(
				field{"regex", regex(&pattern)},
				field{"google_re2", ignored},
			)},
			{"regex", regex(&pattern)},
			{"ignore_case", boolean(&ignoreCase)},
		})
		kind := matchKinds[d.oneOf(n, path, seen, true, "exact", "prefix", "suffix", "contains", "safe_regex", "regex")]
		if at, ok := seen["ignore_case"]; ok && kind == match.KindRegex && ignoreCase {
			d.errorf(at, join(path, "ignore_case"), "has no effect on a regular expression; write (?i) in it")
		}
		d.compile(to, kind, pattern, ignoreCase, n, path, before)
	}
}

// compile makes a matcher unless there were errors since before.
func (d *decoder) compile(to *match.Matcher, kind match.Kind, pattern string, ignoreCase bool, n *yaml.Node, path string, before int) {
	if len(d.errs) > before {
		return
	}
	var err error
	if *to, err = match.New(kind, pattern, ignoreCase); err != nil {
		d.errorf(n, path, "%v", err)
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
		} else if _, err := match.Compile(*to); err != nil {
			reason := strings.TrimPrefix(err.Error(), "match: regex "+strconv.Quote(*to))
			if strings.HasPrefix(reason, ": ") {
				reason = " is not a regular expression" + reason
			}
			d.errorf(n, path, "%s%s", d.show(n, path), reason)
		}
	}
}
