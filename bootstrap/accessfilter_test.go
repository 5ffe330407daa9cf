package bootstrap

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/server/accesslog"
)

// parseFilter parses one filter of an access log.
func parseFilter(filter string) (*accesslog.Filter, error) {
	const file = "typed_config: {'@type': type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog, path: /l}"
	c, err := Parse("a.yaml", []byte("admin:\n  address: {pipe: {path: /s}}\n  access_log:\n  - name: f\n    filter: "+filter+"\n    "+file+"\n"), Options{})
	if err != nil {
		return nil, err
	}
	return &c.Admin.AccessLog[0].Filter, nil
}

func TestAccessFilters(t *testing.T) {
	header := func(h accesslog.HeaderTest) accesslog.Filter { return accesslog.Filter{Header: &h} }
	text := func(kind match.Kind, pattern string, ignoreCase ...bool) func(string) bool {
		m, err := match.New(kind, pattern, len(ignoreCase) > 0)
		if err != nil {
			t.Fatal(err)
		}
		return m.Match
	}
	sameTest := cmp.Comparer(func(a, b func(string) bool) bool {
		if a == nil || b == nil {
			return (a == nil) == (b == nil)
		}
		return !slices.ContainsFunc([]string{"", "b", "bb", "B", "ab", "ba", "aba", "aBa", "/ready", "/ready/x", "x/ready"}, func(s string) bool { return a(s) != b(s) })
	})
	errs := accesslog.Filter{Status: &accesslog.Comparison{Op: accesslog.GreaterOrEqual, Value: 400, RuntimeKey: "log.from"}}
	for filter, want := range map[string]accesslog.Filter{
		"{status_code_filter: {comparison: {op: GE, value: {default_value: 400, runtime_key: log.from}}}}": errs,
		"{statusCodeFilter: {comparison: {op: GE, value: {defaultValue: 400, runtimeKey: log.from}}}}":     errs,
		"{duration_filter: {comparison: {value: {default_value: 9}}}}":                                     {Duration: &accesslog.Comparison{Op: accesslog.Equal, Value: 9}},
		"{not_health_check_filter: {}}": {},
		"{or_filter: {filters: [{not_health_check_filter: {}}, {duration_filter: {comparison: {op: NE, value: {}}}}]}}": {
			Or: []accesslog.Filter{{}, {Duration: &accesslog.Comparison{Op: accesslog.NotEqual}}}},
		"{and_filter: {filters: [{duration_filter: {comparison: {op: LE, value: {default_value: 1}}}}, {not_health_check_filter: {}}]}}": {
			And: []accesslog.Filter{{Duration: &accesslog.Comparison{Op: accesslog.LessOrEqual, Value: 1}}, {}}},
		"{header_filter: {header: {name: a}}}":                                                      header(accesslog.HeaderTest{Name: "a"}),
		"{header_filter: {header: {name: a, present_match: false, invert_match: true}}}":            header(accesslog.HeaderTest{Name: "a", Absent: true, Invert: true}),
		"{header_filter: {header: {name: a, present_match: true}}}":                                 header(accesslog.HeaderTest{Name: "a"}),
		"{header_filter: {header: {name: a, exact_match: b, treat_missing_header_as_empty: true}}}": header(accesslog.HeaderTest{Name: "a", Match: text(match.KindExact, "b"), MissingIsEmpty: true}),
		"{header_filter: {header: {name: a, exact_match: ''}}}":                                     header(accesslog.HeaderTest{Name: "a", Match: text(match.KindExact, "")}),
		"{header_filter: {header: {name: ':path', prefix_match: /ready}}}":                          header(accesslog.HeaderTest{Name: ":path", Match: text(match.KindPrefix, "/ready")}),
		"{header_filter: {header: {name: a, suffix_match: b}}}":                                     header(accesslog.HeaderTest{Name: "a", Match: text(match.KindSuffix, "b")}),
		"{header_filter: {header: {name: a, contains_match: b}}}":                                   header(accesslog.HeaderTest{Name: "a", Match: text(match.KindContains, "b")}),
		"{header_filter: {header: {name: a, safe_regex_match: {regex: 'b+'}}}}":                     header(accesslog.HeaderTest{Name: "a", Match: text(match.KindRegex, "b+")}),
		"{header_filter: {header: {name: a, regex_match: 'b+'}}}":                                   header(accesslog.HeaderTest{Name: "a", Match: text(match.KindRegex, "b+")}),
		"{header_filter: {header: {name: a, string_match: {contains: B, ignore_case: true}, invert_match: true}}}": header(accesslog.HeaderTest{Name: "a", Invert: true,
			Match: text(match.KindContains, "B", true)}),
	} {
		got, err := parseFilter(filter)
		if err != nil {
			t.Errorf("%s: %v", filter, err)
			continue
		}
		if d := cmp.Diff(&want, got, sameTest); d != "" {
			t.Errorf("%s:\n%s", filter, d)
		}
	}
}

func TestAccessFilterErrors(t *testing.T) {
	for filter, want := range map[string]string{
		"{}": "a.yaml:5:13: admin.access_log[0].filter: ",
		"{status_code_filter: {}, duration_filter: {}}":                           "only one of status_code_filter, ",
		"{runtime_filter: {runtime_key: a}}":                                      "a.yaml:5:30: admin.access_log[0].filter.runtime_filter: known, but not available",
		"{status_code_filter: {}}":                                                "admin.access_log[0].filter.status_code_filter.comparison: required field is not set",
		"{status_code_filter: {comparison: {op: GT, value: {default_value: 1}}}}": "filter.status_code_filter.comparison.op: \"GT\" is not one of EQ, GE, LE, NE",
		"{status_code_filter: {comparison: {op: EQ}}}":                            "comparison.value: required field is not set",
		"{status_code_filter: {comparison: {value: {default_value: -1}}}}":        "value.default_value: ",
		"{and_filter: {}}": "admin.access_log[0].filter.and_filter.filters: required field is not set",
		"{or_filter: {filters: [{not_health_check_filter: {}}]}}":          "or_filter.filters: has 1 elements, must have at least 2",
		"{or_filter: {filters: [{not_health_check_filter: {}}, {x: {}}]}}": "or_filter.filters[1].x: unknown field",
		"{header_filter: {}}":                                                                              "admin.access_log[0].filter.header_filter.header: required field is not set",
		"{header_filter: {header: {exact_match: a}}}":                                                      "header_filter.header.name: required field is not set",
		"{header_filter: {header: {name: a, exact_match: b, prefix_match: c}}}":                            "only one of exact_match, ",
		"{header_filter: {header: {name: a, regex_match: '('}}}":                                           "regex_match: \"(\" is not a regular expression",
		"{header_filter: {header: {name: a, range_match: {start: 1}}}}":                                    "range_match: known, but not available",
		"{header_filter: {header: {name: a, string_match: {}}}}":                                           "header.string_match: ",
		"{extension_filter: {name: a}, grpc_status_filter: {statuses: [OK]}, not_health_check_filter: {}}": "grpc_status_filter: known, but not available",
	} {
		_, err := parseFilter(filter)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", filter, err, want)
		}
	}
}
