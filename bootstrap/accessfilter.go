package bootstrap

import (
	"strings"

	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/server/accesslog"
	"go.yaml.in/yaml/v4"
)

// accessFilter decodes which requests an access log has.
func accessFilter(f *accesslog.Filter) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		seen := d.message(n, path, []field{
			{"status_code_filter", comparison(&f.Status)},
			{"duration_filter", comparison(&f.Duration)},
			{"header_filter", around("header", func(d *decoder, n *yaml.Node, path string) {
				f.Header = new(accesslog.HeaderTest)
				headerTest(f.Header)(d, n, path)
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
}

// around decodes a message of one required field.
func around(name string, set setter) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		d.require(n, path, d.message(n, path, []field{{name, set}}), name)
	}
}

func comparison(to **accesslog.Comparison) setter {
	return around("comparison", func(d *decoder, n *yaml.Node, path string) {
		c := new(accesslog.Comparison)
		*to = c
		seen := d.message(n, path, []field{
			{"op", enum(&c.Op, "EQ, GE, LE, NE", accesslog.Equal, accesslog.GreaterOrEqual, accesslog.LessOrEqual, accesslog.NotEqual)},
			{"value", nested(field{"default_value", whole(&c.Value, 0, 1<<32-1)}, field{"runtime_key", text(&c.RuntimeKey)})},
		})
		d.require(n, path, seen, "value")
	})
}

func filters(to *[]accesslog.Filter) setter {
	return around("filters", func(d *decoder, n *yaml.Node, path string) {
		list(to, accessFilter)(d, n, path)
		if n.Kind == yaml.SequenceNode && len(*to) < 2 {
			d.errorf(n, path, "has %d elements, must have at least 2", len(*to))
		}
	})
}

func headerTest(h *accesslog.HeaderTest) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		var m match.Matcher
		var pattern string
		before := len(d.errs)
		present := true
		seen := d.message(n, path, []field{
			{"name", nonEmpty(&h.Name)},
			{"exact_match", text(&pattern)},
			{"prefix_match", nonEmpty(&pattern)},
			{"suffix_match", nonEmpty(&pattern)},
			{"contains_match", nonEmpty(&pattern)},
			{"safe_regex_match", nested(field{"regex", regex(&pattern)}, field{"google_re2", ignored})},
			{"regex_match", regex(&pattern)}, // the older spelling
			{"string_match", matcher(&m)},
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
			if kind != "string_match" {
				d.compile(&m, matchKinds[strings.TrimSuffix(kind, "_match")], pattern, false, n, path, before)
			}
			h.Match = m.Match
		}
	}
}
