package bootstrap

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

// node parses one value.
func node(t *testing.T, text string) *yaml.Node {
	t.Helper()
	root, errs := parseYAML("a.yaml", []byte(text))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return root
}

// TestValuesAtTheBounds decodes values at the bounds of their range and next to them.
func TestValuesAtTheBounds(t *testing.T) {
	var (
		whole3to5, any64                   int64
		half                               float64
		most                               int
		message, own, unbounded, timeBound time.Duration
		bytes                              int
		mode                               int
	)
	for _, tt := range []struct {
		set    setter
		got    func() any
		legal  map[string]any
		beyond []string
	}{
		{whole(&whole3to5, 3, 5), func() any { return whole3to5 }, map[string]any{"3": int64(3), "5": int64(5), "'4'": int64(4), "4.0": int64(4), "5e0": int64(5)}, []string{"2", "6", "4.5", "true", "''", "[4]", "4x"}},
		{whole(&any64, math.MinInt64, math.MaxInt64), func() any { return any64 }, map[string]any{"9223372036854775807": int64(math.MaxInt64), "-9223372036854775808": int64(math.MinInt64), "9007199254740991.0": int64(1<<53 - 1), "-9007199254740991.0": int64(1 - 1<<53)},
			[]string{"9223372036854775808", "9007199254740992.0", "-9007199254740992.0", ".inf", ".nan"}},
		{number(&half, 0.5, 1.5), func() any { return half }, map[string]any{"0.5": 0.5, "1.5": 1.5, "'1'": 1.0}, []string{"0.49", "1.51", ".nan", "true", "{}", "x"}},
		{limitOf(&most, 7, integer, "a number up to %d"), func() any { return most }, map[string]any{"1": 1, "7": 7, "7.0": 7, "-1": -1, "-2": -1}, []string{"0", "8", "1B", "x", "true", "[1]", "0.5"}},
		{sizeLimit(&most, 1<<29), func() any { return most }, map[string]any{"1": 1, "512MiB": 512 << 20, "2 kB": 2000, "1e3": 1000, "-1": -1}, []string{"0", "0KiB", "513MiB", "-1KiB", "9223372036854775807KiB", "x", "true", "[1]"}},
		{duration(&message, time.Second, 3*time.Second), func() any { return message }, map[string]any{"1s": time.Second, "3s": 3 * time.Second, "1.000000001s": time.Second + 1}, []string{"0.999999999s", "3.000000001s", "-1s", "2", "1m", "1.0000000001s", "[]"}},
		{period(&own, time.Second, 2*time.Minute), func() any { return own }, map[string]any{"1s": time.Second, "2m": 2 * time.Minute, "1m30s": 90 * time.Second}, []string{"999ms", "2m1ns", "5", "{}"}},
		{period(&unbounded, time.Second, forever), func() any { return unbounded }, map[string]any{"1s": time.Second, "2562047h": 2562047 * time.Hour}, []string{"999ms"}},
		{timeLimit(&timeBound), func() any { return timeBound }, map[string]any{"1ms": time.Millisecond, "24h": 24 * time.Hour, "-1": time.Duration(-1), "-5s": time.Duration(-1)}, []string{"0s", "0", "999us", "24h1ns", "-x", "[-1]"}},
		{size(&bytes, 1024, 3<<20), func() any { return bytes }, map[string]any{"1024": 1024, "1KiB": 1024, "3MiB": 3 << 20, "2 kB": 2000, "3 MB": 3_000_000, "3145728B": 3 << 20}, []string{"1023", "1kB", "3145729", "4MiB", "1GiB", "9223372036854775807KiB", "9007199254740992GiB", "KiB", "-2KiB", "1.5KiB"}},
		{fileMode(&mode), func() any { return mode }, map[string]any{"0": 0, "0777": 0o777, "'777'": 0o777, "511": 0o777, "0o600": 0o600}, []string{"512", "01000", "'1000'", "-1", "'8'", "[0]"}},
	} {
		for text, want := range tt.legal {
			d := &decoder{doc: &document{}}
			if tt.set(d, node(t, text), "x"); len(d.errs) > 0 || tt.got() != want {
				t.Errorf("%s: %v, errors %v, want %v", text, tt.got(), d.errs, want)
			}
		}
		for _, text := range tt.beyond {
			d, before := &decoder{doc: &document{}}, tt.got()
			if tt.set(d, node(t, text), "x"); len(d.errs) != 1 {
				t.Errorf("%s is accepted as %v", text, tt.got())
			} else if tt.got() != before {
				t.Errorf("%s is refused, and changes %v to %v", text, before, tt.got())
			}
		}
	}
}

// TestSettingsAtTheirLimits has settings with limits of their own, at the limit and beyond.
func TestSettingsAtTheirLimits(t *testing.T) {
	percentiles := func(n int) string {
		return "sinks: [{json_lines: {path: /a, percentiles: [" + strings.TrimSuffix(strings.Repeat("1, ", n), ", ") + "]}}]"
	}
	layer := func(n int) string {
		return "layered_runtime: {layers: [{name: " + strings.Repeat("n", n) + ", static_layer: {}}]}"
	}
	pattern := func(n int) string {
		return "admin: {allow_paths: [{safe_regex: {regex: " + strings.Repeat("m", n) + "}}]}"
	}
	for _, tt := range []struct{ at, beyond, fault string }{
		{pattern(1024), pattern(1025), "regular expression of 1025 bytes is longer than 1024"},
		{percentiles(32), percentiles(33), "33 percentiles; at most 32 are allowed"},
		{"sinks: [{statsd: {address: 'a:1', max_packet_bytes: 65507}}]", "sinks: [{statsd: {address: 'a:1', max_packet_bytes: 65508}}]", "a datagram of UDP has at most 65507 bytes"},
		{"stats_sinks: [{name: dog_statsd, typed_config: {max_bytes_per_datagram: 1}}]", "stats_sinks: [{name: dog_statsd, typed_config: {max_bytes_per_datagram: 0}}]", "in [1, 1048576]"},
		{"sinks: [{statsd: {address: 'a:1', protocol: tcp, max_packet_bytes: 16MiB}}]", "sinks: [{statsd: {address: 'a:1', protocol: tcp, max_packet_bytes: 16777217}}]", "in [1, 16777216]"},
		{layer(1024), layer(1025), "name of 1025 bytes is longer than 1024"},
		{"statsd: {exposition: {max_age: 5s}}", "statsd: {exposition: {max_age: 4.999s}}", "4.999s is neither 0 nor 5 seconds or more"},
		{"statsd: {exposition: {max_age: 0s}}", "statsd: {exposition: {max_age: 1ns}}", "1ns is neither 0 nor 5 seconds or more"},
		{"stats_flush_interval: 0.001s", "stats_flush_interval: 0.000999999s", "is not a duration in seconds in [1ms, 4m59.999999999s]"},
		{"stats_flush_interval: 299.999999999s", "stats_flush_interval: 300s", "is not a duration in seconds in [1ms, 4m59.999999999s]"},
	} {
		if _, err := Parse("a.yaml", []byte(tt.at), Options{}); err != nil {
			t.Errorf("%.80s: %v", tt.at, err)
		}
		if _, err := Parse("a.yaml", []byte(tt.beyond), Options{}); err == nil || !strings.Contains(err.Error(), tt.fault) {
			t.Errorf("%.80s: %v, want %s", tt.beyond, err, tt.fault)
		}
	}
	for n, want := range map[int]int{60: 0, 61: 1} {
		if c := mustParse(t, layer(n)); len(c.Warnings) != want {
			t.Errorf("a name of %d bytes: %q", n, c.Warnings)
		}
	}
}

// TestErrorsAtTheLimit has 99 to 102 unknown fields. The first 100 are reported, in the order
// of the text.
func TestErrorsAtTheLimit(t *testing.T) {
	for field, parent := range map[string]string{"admin": "admin: {\n", "static_resources.clusters[0]": "static_resources: {clusters: [{name: a,\n"} {
		for _, n := range []int{99, 100, 101, 102} {
			text := parent
			for i := range n {
				text += fmt.Sprintf("  x%d: 1,\n", i)
			}
			text += strings.Repeat("}]", strings.Count(parent, "[")) + "}"
			_, err := Parse("a.yaml", []byte(text), Options{})
			var list *Errors
			if !errors.As(err, &list) || len(list.List) != min(n, 100) || list.Dropped != max(0, n-100) {
				t.Errorf("%d errors in %s: %v", n, field, err)
				continue
			}
			for i, e := range list.List {
				if want := fmt.Sprintf("%s.x%d", field, i); e.Field != want || e.Position.Line != i+2 {
					t.Errorf("error %d of %d: line %d, %s", i, n, e.Position.Line, e.Field)
				}
			}
		}
	}
}

func TestBuildNumbers(t *testing.T) {
	for version, want := range map[string][3]uint32{
		"rev/1.2.3/Clean/RELEASE/go1.26": {1, 2, 3}, "rev/v1.2.3-rc.1": {1, 2, 3}, "rev/1.2.3+a.b": {1, 2, 3}, "rev/0.0.4294967295": {0, 0, 4294967295},
		"": {}, "1.2.3": {}, "rev/": {}, "rev/1.2": {}, "rev/1.2.3.4": {}, "rev/1.2.x": {}, "rev/1.x.3": {}, "rev/4294967296.2.3": {}, "rev/unknown": {},
	} {
		major, minor, fix := buildNumbers(version)
		if got := [3]uint32{major, minor, fix}; got != want {
			t.Errorf("%q: %v, want %v", version, got, want)
		}
	}
}
