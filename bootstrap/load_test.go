package bootstrap

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v4"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/internal/conftree"
	"github.com/statsd-admin/statsd-admin/internal/descriptors"
	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/internal/redact"
	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/server/layers"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

func mustParse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("a.yaml", []byte(text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDefaultConfiguration(t *testing.T) {
	c, err := Load(Source{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Admin.Address.String(), "127.0.0.1:9901"; got != want {
		t.Errorf("admin address %q, want %q", got, want)
	}
	var listeners []string
	for _, l := range c.StatsD.Listeners {
		listeners = append(listeners, l.Address)
	}
	if diff := cmp.Diff([]string{"udp://127.0.0.1:8125", "tcp://127.0.0.1:8125"}, listeners); diff != "" {
		t.Error(diff)
	}
	if c.Stats.FlushInterval != 5*time.Second {
		t.Errorf("flush interval %v", c.Stats.FlushInterval)
	}
	if diff := cmp.Diff([]RuntimeLayer{newLayer("admin", layers.Admin)}, c.Runtime); diff != "" {
		t.Error(diff)
	}
}

// TestDefaultFileSpellsOutDefaults: a copy of the default file without
// the parts of the statsd section has the same values.
func TestDefaultFileSpellsOutDefaults(t *testing.T) {
	bytes := func(n int) int {
		if n == 0 {
			return 65535 // the default of package statsd
		}
		return n
	}
	written := mustParse(t, Default()).StatsD
	short := mustParse(t, "statsd: {}").StatsD
	if diff := cmp.Diff(short, written, cmp.Comparer(func(a, b StatsDListener) bool {
		return a.Address == b.Address && bytes(a.PacketBytes) == bytes(b.PacketBytes) && a.Port == b.Port
	}), cmpopts.IgnoreTypes(Raw{})); diff != "" {
		t.Errorf("(-defaults +default.yaml)\n%s", diff)
	}
}

func TestFullConfiguration(t *testing.T) {
	c, err := Load(Source{Path: "testdata/full.yaml"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "full", []byte(dump(c)))
}

// probes are names that matchers of tests are tried with.
var probes = []string{"edge.x", "a.debug", "a.tmp.b", "other", "jobs.running", "pool.a"}

// passed returns the probes that match.
func passed(match func(string) bool) (out []string) {
	for _, name := range probes {
		if match(name) {
			out = append(out, name)
		}
	}
	return out
}

// sameMessages compares clusters and secrets by their messages, and matchers and
// tokens by the credentials they accept.
func sameMessages() cmp.Option {
	return cmp.Options{
		cmp.Comparer(func(a, b match.Matcher) bool {
			var texts [2]strings.Builder
			dumpValue(&texts[0], "", reflect.ValueOf(a))
			dumpValue(&texts[1], "", reflect.ValueOf(b))
			return texts[0].String() == texts[1].String()
		}),
		cmp.Comparer(func(a, b func(string) bool) bool {
			return (a == nil) == (b == nil) && (a == nil || slices.Equal(passed(a), passed(b)))
		}),
		cmp.Transformer("tokens", func(t *admin.Tokens) []admin.Token { return t.List() }),
		cmp.Comparer(func(a, b *decode.ParsedCluster) bool { return a.Hash() == b.Hash() }),
		cmp.Comparer(func(a, b *decode.ParsedSecret) bool { return a.Hash() == b.Hash() }),
	}
}

// dump prints every value that is not zero, one per line with its path; raw
// parts as YAML.
func dump(c *Config) string {
	var b strings.Builder
	dumpValue(&b, "", reflect.ValueOf(*c))
	return b.String()
}

func dumpValue(b *strings.Builder, path string, v reflect.Value) {
	switch value := v.Interface().(type) {
	case Raw:
		if value.Node != nil && value.Path != "" {
			out, err := yaml.Dump(value.Node)
			fmt.Fprintf(b, "%s = %s %s%v\n", path, value.Path, strings.ReplaceAll(string(out), "\n", "; "), err)
		}
		return
	case *decode.ParsedCluster:
		fmt.Fprintf(b, "%s = cluster %q of %s\n", path, value.Cluster.Name, value.TypeURL())
		return
	case *decode.ParsedSecret:
		fmt.Fprintf(b, "%s = secret %q of %s\n", path, value.Secret.Name, value.TypeURL())
		return
	case config.AddressSpec:
		if !value.IsZero() {
			fmt.Fprintf(b, "%s = %v\n", path, value)
		}
		return
	case match.Matcher:
		fmt.Fprintf(b, "%s = %v %q ignore case %v\n", path, match.Kind(v.FieldByName("kind").Uint()), v.FieldByName("pattern").String(), v.FieldByName("fold").Bool())
		return
	case *admin.Tokens:
		dumpValue(b, path, reflect.ValueOf(value.List()))
		return
	case func(string) bool:
		if value != nil {
			fmt.Fprintf(b, "%s = of %q: %q\n", path, probes, passed(value))
		}
		return
	case Address, netip.Addr, netip.Prefix, time.Duration, fs.FileMode:
		if !v.IsZero() {
			fmt.Fprintf(b, "%s = %v\n", path, value)
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				dumpValue(b, strings.TrimPrefix(path+"."+field.Name, "."), v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			dumpValue(b, fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			dumpValue(b, path+"*", v.Elem())
		}
	default:
		if !v.IsZero() {
			fmt.Fprintf(b, "%s = %#v\n", path, v.Interface())
		}
	}
}

func TestErrorsAllAtOnce(t *testing.T) {
	_, err := Load(Source{Path: "testdata/wrong.yaml"}, Options{})
	var errs *Errors
	if !errors.As(err, &errs) {
		t.Fatalf("err = %v", err)
	}
	golden.Check(t, "wrong", []byte(err.Error()+"\n"))
	for _, e := range errs.List {
		if e.Position.Line == 0 || e.Position.Column == 0 || e.Position.File != "testdata/wrong.yaml" || e.Field == "" {
			t.Errorf("incomplete position or field: %v", e)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Error("the text shows a password")
	}
	var one *Error
	if !errors.As(err, &one) || one != errs.List[0] {
		t.Error("errors.As does not find the first Error")
	}
}

func TestErrorsAreBounded(t *testing.T) {
	_, err := Parse("a.yaml", []byte(unknownFields(150)), Options{})
	var errs *Errors
	if !errors.As(err, &errs) || len(errs.List) != maxErrors || errs.Dropped != 50 {
		t.Fatalf("err = %v", err)
	}
	if !strings.HasSuffix(err.Error(), "\n  and 50 more") || !strings.HasPrefix(err.Error(), "bootstrap: 150 errors in the configuration:\n") {
		t.Errorf("text: %.60s … %s", err, err.Error()[len(err.Error())-40:])
	}
}

func unknownFields(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("x" + strings.Repeat("y", i) + ": 1\n")
	}
	return b.String()
}

// TestOneTimeToLive checks that a duration as ttl holds for all kinds of series.
func TestOneTimeToLive(t *testing.T) {
	var all []*Config
	for _, ttl := range []string{"24h", "{counter: 24h, gauge: 24h, histogram: 24h, set: 24h}"} {
		c, err := Parse("a.yaml", []byte("statsd: {ttl: "+ttl+"}"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	if one, each := all[0].StatsD.TTL, all[1].StatsD.TTL; one != each || one.Set != 24*time.Hour {
		t.Errorf("%+v, want %+v", one, each)
	}
}

// TestMisspelledField checks that an unknown field that is spelled like a known one is
// the only error: the known one is not reported as missing.
func TestMisspelledField(t *testing.T) {
	for text, want := range map[string]string{
		"sinks: [{statsd: {adress: 'localhost:1'}}]":                               "1:19: sinks[0].statsd.adress: unknown field; did you mean address? allowed: address, ",
		"sinks: [{statd: {address: 'localhost:1'}}]":                               "1:10: sinks[0].statd: unknown field; did you mean statsd? allowed: ",
		"layered_runtime: {layers: [{name: a, adminLayr: {}}]}":                    "1:38: layered_runtime.layers[0].adminLayr: unknown field; did you mean admin_layer? allowed: ",
		"admin: {access_log: [{typed_config: {'@type': FileAccessLog, pth: /a}}]}": "1:62: admin.access_log[0].typed_config.pth: unknown field; did you mean path? allowed: ",
		"layered_runtime: {layers: [{name: a, nam: b, admin_layer: {}}]}":          "1:38: layered_runtime.layers[0].nam: unknown field; allowed: ",
	} {
		_, err := Parse("a.yaml", []byte(text), Options{Product: "statsd-admin"})
		var errs *Errors
		if !errors.As(err, &errs) || len(errs.List) != 1 || !strings.HasPrefix(errs.List[0].Error(), "a.yaml:"+want) {
			t.Errorf("%s: %v, want only %s", text, err, want)
		}
	}
}

// TestSingleErrors expects one error of each text, or others too if its name ends with
// "-first".
func TestSingleErrors(t *testing.T) {
	tests := []struct{ name, file, text, want string }{
		{"duplicate", "a.yaml", "admin: {}\nadmin: {}\n", `a.yaml:2:1: duplicate key "admin", first used in line 1`},
		{"duplicate-deep", "a.yaml", "static_resources:\n  clusters:\n  - name: a\n    name: b\n", `a.yaml:4:5: duplicate key "name", first used in line 3`},
		{"duplicate-spelling", "a.yaml", "flags_path: a\nflagsPath: b\n", `a.yaml:2:1: flags_path: set twice, as "flagsPath" and in another spelling`},
		{"duplicate-spelling-first", "a.yaml", "flags_path: a\nflagsPath: b\nadmin: {mode: x}\n", "a.yaml:3:15: admin.mode: "},
		{"sinks-header-first", "a.yaml", "sinks: [{remote_write: {url: 'http://a', headers: {'a b': c, 'd e': f}}}]\n", "sinks[0].remote_write.headers.d e: not a header with a value on one line"},
		{"headers-list", "a.yaml", "sinks: [{remote_write: {url: 'http://a', headers: ['a b', c]}}]\n", "sinks[0].remote_write.headers: a list is not a mapping of names to values"},
		{"headers-text", "a.yaml", "sinks: [{remote_write: {url: 'http://a', headers: hunter2}}]\n", "sinks[0].remote_write.headers: [redacted] is not a mapping of names to values"},
		{"tags-list", "a.yaml", "sinks: [{tags: ['', b], statsd: {address: 'a:1', format: dogstatsd}}]\n", "sinks[0].tags: a list is not a mapping of names to values"},
		{"labels-list", "a.yaml", "statsd: {mapping: {rules: {mappings: [{match: a, name: b, labels: ['', c]}]}}}\n", "statsd.mapping.rules.mappings[0].labels: a list is not a mapping"},
		{"list-mapping", "a.yaml", "admin: {allowed_hosts: {a: [b]}}\n", "admin.allowed_hosts: a mapping is not a list"},
		{"empty-ip", "a.yaml", "admin: {address: {socket_address: {address: '', port_value: 1}}}\n", `a.yaml:1:45: admin.address.socket_address.address: must not be empty`},
		{"null-in-list", "a.yaml", "node: {client_features: [null]}\n", `a.yaml:1:26: node.client_features[0]: null is not a string; put it in quotes`},
		{"null-header", "a.yaml", "sinks: [{otlp: {url: 'http://a', headers: {x: null}}}]\n", `a.yaml:1:44: sinks[0].otlp.headers.x: not a header with a value on one line`},
		{"null-tag", "a.yaml", "sinks: [{json_lines: {path: /x}, tags: {env: }}]\n", `a.yaml:1:46: sinks[0].tags.env: null is not a string; put it in quotes`},
		{"no-ip", "a.yaml", "admin: {address: {socket_address: {address: here, port_value: 1}}}\n", `a.yaml:1:45: admin.address.socket_address.address: "here" is not an IP address such as 127.0.0.1 or ::1`},
		{"duplicate-json", "a.json", "{\"admin\": {},\n \"admin\": {}}", `a.json:2:2: duplicate key "admin", first used in line 1`},
		{"unknown", "a.yaml", "admin:\n  adress: {}\n", `a.yaml:2:3: admin.adress: unknown field; did you mean address? allowed: access_log, access_log_path, address,`},
		{"outer", "a.yaml", "sinks: [{remote_write: {url: 'http://a', filters: {}}}]\n", "sinks[0].remote_write.filters: unknown field; it is a field of sinks[0]; allowed: batch_samples,"},
		{"outermost", "a.yaml", "admin:\n  statsd: {}\n", "admin.statsd: unknown field; it is a field of the top level; allowed: access_log,"},
		{"host-port", "a.yaml", "admin: {address: '[::1]:9901'}\n", "bootstrap: 1 error in the configuration:\n  " + `a.yaml:1:18: admin.address: "[::1]:9901" is not a mapping; want {socket_address: {address: "::1", port_value: 9901}}`},
		{"one-of-text", "a.yaml", "statsd: {filters: {allow: [app.]}}\n", "bootstrap: 1 error in the configuration:\n  " + `a.yaml:1:28: statsd.filters.allow[0]: "app." is not a mapping; allowed fields: contains,`},
		{"ttl", "a.yaml", "statsd: {ttl: 1d}\n", `a.yaml:1:15: statsd.ttl: "1d" is not a duration of at least 0s, written like 250ms, 90s or 24h`},
		{"no-scheme", "a.yaml", "sinks: [{remote_write: {url: '127.0.0.1:9090'}}]\n", "sinks[0].remote_write.url: not a URL such as https://host/path"},
		{"tab", "a.yaml", "admin:\n\taddress: {}\n", "a.yaml:2:1: not valid YAML: a tab cannot indent YAML; use spaces"},
		{"no-tab", "a.yaml", "admin:\n  a: @b\n", "a.yaml:2:6: not valid YAML: found character that cannot start any token"},
		{"syntax", "a.yaml", "admin: [\n", "a.yaml:2:1: not valid YAML: did not find expected node content"},
		{"syntax-json", "a.json", "{\"admin\": {},}", "a.json:1:14: not valid JSON: invalid character '}'"},
		{"cut-json", "a.json", "{\"admin\": {\n", "a.json:2:1: not valid JSON: unexpected end of file"},
		{"rest-json", "a.json", "{} {}", "a.json:1:4: not valid JSON: more text after the value"},
		{"json-by-default", "a.conf", "admin: {}", "a.conf:1:1: not valid JSON: invalid character 'a'"},
		{"two-documents", "a.yaml", "admin: {}\n---\nnode: {}\n", "a.yaml: not valid YAML: "},
		{"not-a-mapping", "a.yaml", "- a\n", "a.yaml:1:1: a list is not a mapping"},
		{"key-list", "a.yaml", "? [a]\n: b\n", "a.yaml:1:3: a key must be text"},
		{"anchor", "a.yaml", "node: *nothing\n", "a.yaml:1:7: not valid YAML: unknown anchor"},
		{"anchor-cycle", "a.yaml", "node: &n\n  metadata: {self: *n}\n", `a.yaml:2:20: alias "n" contains itself`},
		{"tag", "a.yaml", "node: {id: !!binary aGk=}\n", `a.yaml:1:12: tag "!!binary" is not supported`},
		{"tag-own", "a.yaml", "node: !env HOME\n", `a.yaml:1:7: tag "!env" is not supported`},
		{"forged-line", "a.yaml", "\"a\\nb.yaml:1:1: x\": 1\n", `a.yaml:1:1: "a\nb.yaml:1:1: x": unknown field`},
		{"number-text", "a.yaml", "node: {id: [1]}\n", "node.id: a list is not a string"},
		{"metadata", "a.yaml", "node: {metadata: 5}\n", `node.metadata: "5" is not a mapping`},
		{"null-list", "a.yaml", "stats_sinks: [null]\n", "stats_sinks[0]: null is not a mapping"},
		{"long-value", "a.yaml", "admin: {mode: " + strings.Repeat("m", 200) + "}\n", strings.Repeat("m", 80) + `"… is not one of`},
		{"regex-large", "a.yaml", "admin: {allow_paths: [{safe_regex: {regex: '" + strings.Repeat("m{1000}", 11) + "'}}]}\n", "a.yaml:1:44: admin.allow_paths[0].safe_regex.regex: \"" + strings.Repeat("m{1000}", 11) + "\" compiles to more than 10000 instructions"},
		{"regex-large-tag", "a.yaml", "stats_config: {stats_tags: [{tag_name: a, regex: '(" + strings.Repeat("m{1000}", 11) + ")'}]}\n", "a.yaml:1:50: stats_config.stats_tags[0].regex: "},
		{"regex-long", "a.yaml", "admin: {allow_paths: [{safe_regex: {regex: " + strings.Repeat("m", 1025) + "}}]}\n", "regular expression of 1025 bytes is longer than 1024"},
		{"regex-case", "a.yaml", "admin: {allow_paths: [{safe_regex: {regex: a}, ignore_case: true}]}\n", "has no effect on a regular expression; write (?i) in it"},
		{"eviction-admin", "a.yaml", "stats_flush_on_admin: true\nstats_eviction_interval: 5s\n", "cannot be used with stats_flush_on_admin"},
		{"group", "a.yaml", "admin: {socket_group: adm, address: {socket_address: {address: '::', port_value: 1}}}\n", "admin.socket_group: only for an address of kind pipe"},
		{"num-buckets", "a.yaml", "stats_sinks: [{name: hystrix, typed_config: {num_buckets: -4}}]\n", "a.yaml:1:59: stats_sinks[0].typed_config.num_buckets: "},
		{"circuit-stream", "a.yaml", "stats_sinks: [{name: circuit_stream, typed_config: {buckets: 4}}]\n", "stats_sinks[0].typed_config.buckets: unknown field; allowed: @type, num_buckets"},
		{"negative-counters", "a.yaml", "statsd: {parse: {negative_counters: gauge}}\n", "a.yaml:1:37: statsd.parse.negative_counters: gauge is only for the counters that gauge_counters names, and it names none"},
		{"filter-of-no-tags", "a.yaml", "statsd: {filters: {tags: [{names: [{prefix: a}]}]}}\n", "a.yaml:1:27: statsd.filters.tags[0]: needs drop or keep: keys of tags"},
		{"filter-limit", "a.yaml", "statsd: {filters: {tag_values: [{key: a, max: 0}]}}\n", "a.yaml:1:47: statsd.filters.tag_values[0].max: "},
		{"filter-without-limit", "a.yaml", "statsd: {filters: {tag_values: [{key: a}]}}\n", "a.yaml:1:33: statsd.filters.tag_values[0].max: required field is not set"},
		{"gauge-counters", "a.yaml", "statsd: {parse: {gauge_counters: [{prefix: a}]}}\n", "a.yaml:1:34: statsd.parse.gauge_counters: has no effect unless negative_counters is gauge"},
		{"listener-port", "a.yaml", "statsd: {listeners: [{address: 'udp://here:65536'}]}", "is not a listener address: port not in [0, 65535]"},
		{"listener-no-scheme", "a.yaml", "statsd: {listeners: [{address: '127.0.0.1:8125'}]}\n", "is not a listener address: no ://"},
		{"listener-no-port", "a.yaml", "statsd: {listeners: [{address: 'udp://127.0.0.1'}]}\n", "is not a listener address: no host:port"},
		{"listener-list", "a.yaml", "statsd: {listeners: [{address: []}]}\n", "a list is not a listener address: not a string"},
		{"json-format", "a.yaml", "application_log_config: {log_format: {}}\n", "one of text_format, json_format must be set"},
		{"merge-key", "a.yaml", "node:\n  <<: text\n", "a.yaml:2:7: a merge key (<<) needs a mapping"},
		{"nested-deep", "a.yaml", "node: {metadata: " + strings.Repeat("{a: ", 120) + "1" + strings.Repeat("}", 120) + "}", "nested deeper than 100 levels"},
		{"nested-deep-json", "a.json", `{"node": ` + strings.Repeat(`{"a": `, 120) + "1" + strings.Repeat("}", 120) + "}", "nested deeper than 100 levels"},
		{"own-prefix", "a.yaml", "stats_config: {own_prefix: a..b}\n", "a.yaml:1:28: stats_config.own_prefix: \"a..b\" is not a prefix of names; want letters, digits, '_' and '-', with single dots between"},
		{"own-prefix-space", "a.yaml", "stats_config: {own_prefix: a b}\n", "is not a prefix of names"},
		{"own-prefix-empty", "a.yaml", "stats_config: {own_prefix: \"\"}\n", "must not be empty"},
		{"mapping-rules", "a.yaml", "defaults: {ttl: 0}\nmappings: [{match: a, name: b}]\n", "1 error in the configuration:\n  a.yaml:2:1: mappings: these are mapping rules of statsd_exporter, not a configuration: name the file in statsd.mapping.file, or use it with --statsd.mapping-config"},
		{"flush-both", "a.yaml", "stats_flush_interval: 1s\nstats_flush_on_admin: true\n", "a.yaml:2:23: stats_flush_on_admin: Only one of stats_flush_interval or stats_flush_on_admin should be set!"},
		{"flush-low", "a.yaml", "stats_flush_interval: 0.0009s\n", `stats_flush_interval: "0.0009s" is not a duration in seconds in [1ms, 4m59.999999999s]`},
		{"flush-unit", "a.yaml", "stats_flush_interval: 5m\n", `"5m" is not a duration in seconds`},
		{"eviction", "a.yaml", "stats_eviction_interval: 7s\n", "stats_eviction_interval: 7s is not a multiple of the flush interval 5s"},
		{"layer-duplicate", "a.yaml", "layered_runtime: {layers: [{name: a, static_layer: {}}, {name: a, static_layer: {}}]}", "Duplicate layer name: a"},
		{"layer-admins", "a.yaml", "layered_runtime: {layers: [{name: a, admin_layer: {}}, {name: b, admin_layer: {}}]}", "Too many admin layers specified in LayeredRuntime, at most one may be specified"},
		{"layer-kind", "a.yaml", "layered_runtime: {layers: [{name: a}]}", "layer specifier not set"},
		{"layer-kinds", "a.yaml", "layered_runtime: {layers: [{name: a, static_layer: {}}, {name: b, static_layer: {}, disk_layer: {}}]}",
			"layered_runtime.layers[1].disk_layer: only one of static_layer, disk_layer, admin_layer, rtds_layer may be set"},
		{"layer-second-kind", "a.yaml", "layered_runtime: {layers: [{name: a, static_layer: {}, disk_layre: {}}]}", "layered_runtime.layers[0].disk_layre: unknown field; did you mean disk_layer? allowed: admin_layer, disk_layer, name, rtds_layer, static_layer"},
		{"layer-first-kind", "a.yaml", "layered_runtime: {layers: [{name: a}, {name: b, admin_layer: {}}]}", "layered_runtime.layers[0]: layer specifier not set"},
		{"layer-second-name", "a.yaml", "layered_runtime: {layers: [{name: a, static_layer: {}}, {admin_layer: {}}]}", "layered_runtime.layers[1].name: required field is not set"},
		{"layer-value", "a.yaml", "layered_runtime: {layers: [{name: a, static_layer: {k: {l: []}}}]}", "Invalid runtime entry value for k.l"},
		{"layers-twice", "a.yaml", "runtime: {}\nlayered_runtime: {}\n", "only one of runtime, layered_runtime may be set"},
		{"layers-twice-fewer", "a.yaml", "runtime: {symlink_root: /r}\nlayered_runtime: {layers: [{name: a, static_layer: {}}]}\n", "only one of runtime, layered_runtime may be set"},
		{"watchdogs", "a.yaml", "watchdog: {}\nwatchdogs: {}\n", "only one of watchdog, watchdogs may be set"},
		{"name-long", "a.yaml", "layered_runtime: {layers: [{name: " + strings.Repeat("n", 1025) + ", static_layer: {}}]}", "name of 1025 bytes is longer than 1024"},
		{"relay", "a.yaml", "statsd:\n  relay: [{to: b, targets: [{address: 'udp://a:1'}]}]\n", "a.yaml:2:12: statsd.relay[0].to: unknown field; allowed: hash_on, invalid, match, mode, targets"},
		{"relay-targets", "a.yaml", "statsd: {relay: [{targets: []}]}", "statsd.relay[0].targets: 0 targets; 1 to 256 are allowed"},
		{"relay-address", "a.yaml", "statsd: {relay: [{targets: [{address: '10.0.0.1:8125'}]}]}", `a.yaml:1:39: statsd.relay[0].targets[0].address: "10.0.0.1:8125": want udp://host:port`},
		{"relay-port", "a.yaml", "statsd: {relay: [{targets: [{address: 'tcp://a:0'}]}]}", "statsd.relay[0].targets[0].address: \"tcp://a:0\" is not host:port"},
		{"relay-secret", "a.yaml", "statsd: {relay: [{targets: [{address: 'tcp://me:hunter2@a:1'}]}]}", `targets[0].address: [redacted]: want`},
		{"relay-path", "a.yaml", "statsd: {relay: [{targets: [{address: 'unixgram://@'}, {address: 'unixgram://x'}]}]}", `"unixgram://x": want`},
		{"relay-hash-on", "a.yaml", "statsd: {relay: [{hash_on: name, targets: [{address: 'tcp://a:1'}]}]}", "statsd.relay[0].hash_on: has no effect unless mode is hash"},
		{"relay-twice", "a.yaml", "statsd: {relay: [{targets: [{address: 'tcp://a:1'}]}, {targets: [{address: 'tcp://a:1'}]}]}", `a.yaml:1:66: statsd.relay[1].targets[0]: second target named "tcp://a:1"; set different names`},
		{"relay-health", "a.yaml", "statsd: {relay: [{targets: [{address: 'udp://a:1', health_check: {expect: up}}]}]}", "statsd.relay[0].targets[0].health_check.address: required field is not set"},
		{"relay-loop", "a.yaml", "statsd:\n  relay: [{targets: [{address: 'udp://localhost:8125'}]}]\n", `a.yaml:2:32: statsd.relay[0].targets[0].address: "udp://localhost:8125" is the listener udp://127.0.0.1:8125 of this server: every line would loop; want the address of another server`},
		{"relay-loop-family", "a.yaml", "statsd: {relay: [{targets: [{address: 'udp://[::1]:81'}, {address: 'udp://127.0.0.1:81'}]}], listeners: [{address: 'udp4://:81'}]}", `a.yaml:1:68: statsd.relay[0].targets[1].address: "udp://127.0.0.1:81" is the listener udp4://:81 of this server`},
		{"relay-loop-wildcard", "a.yaml", "statsd: {relay: [{targets: [{address: 'tcp://10.0.0.1:1'}, {address: 'tcp://127.0.0.9:81'}]}], listeners: [{address: 'udp://:81'}, {address: 'tls://:81', tls: {certificate_chain: a, private_key: b}}]}", `a.yaml:1:70: statsd.relay[0].targets[1].address: "tcp://127.0.0.9:81" is the listener tls://:81 of this server`},
		{"relay-loop-own-address", "a.yaml", "statsd: {listeners: [{address: 'udp://0.0.0.0:81'}], relay: [{targets: [{address: 'udp://0.0.0.0:81'}]}]}", `"udp://0.0.0.0:81" is the listener udp://0.0.0.0:81 of this server`},
		{"relay-loop-path", "a.yaml", "statsd: {listeners: [{address: 'unixgram:///a'}], relay: [{targets: [{address: 'unixlines:///a'}]}]}", `"unixlines:///a" is the listener unixgram:///a of this server`},
		{"sink-loop", "a.yaml", "statsd: {}\nsinks: [{statsd: {address: 'localhost:8125'}}]\n", `a.yaml:2:28: sinks[0].statsd.address: "localhost:8125" is the listener udp://127.0.0.1:8125 of this server: it would receive and send the same stats at each flush; want the address of another server, or filters: {origin: own}`},
		{"sink-loop-path", "a.yaml", "sinks: [{filters: {origin: received}, statsd: {protocol: unixgram, address: /a}}]\nstatsd: {listeners: [{address: 'unixgram:///a'}]}\n", `sinks[0].statsd.address: "/a" is the listener unixgram:///a of this server`},
		{"relay-only", "a.yaml", "statsd: {relay_only: true}", "a.yaml:1:22: statsd.relay_only: every line would be dropped: relay is not set"},
		{"sinks", "a.yaml", "sinks: [{statsd: {}}]\n", "a.yaml:1:18: sinks[0].statsd.address: "},
		{"sinks-empty", "a.yaml", "sinks: [{name: a}]\n", "a.yaml:1:9: sinks[0]: one of statsd"},
		{"sinks-interval", "a.yaml", "sinks: [{interval: 7s, statsd: {address: 'a:1'}}]\n", "a.yaml:1:20: sinks[0].interval: 7s is not a multiple of the flush interval 5s"},
		{"sinks-tags", "a.yaml", "sinks: [{tags: {a: b}, statsd: {address: 'a:1'}}]\n", "a.yaml:1:16: sinks[0].tags: the format plain has no tags"},
		{"sinks-two", "a.yaml", "sinks: [{statsd: {address: 'a:1'}, remote_write: {url: 'http://a'}}]\n", "sinks[0].remote_write: only one of statsd, remote_write"},
		{"sinks-url-query", "a.yaml", "sinks: [{remote_write: {url: 'ftp://a/w?x=hunter2'}}]\n", `sinks[0].remote_write.url: "ftp://a/w" is not http://host or https://host`},
		{"sinks-url", "a.yaml", "sinks: [{remote_write: {url: 'http://me:hunter2@a/'}}]\n", "sinks[0].remote_write.url: the URL has user information; use a header"},
		{"sinks-header", "a.yaml", "sinks: [{remote_write: {url: 'http://a', headers: {'a b': c}}}]\n", "sinks[0].remote_write.headers.a b: not a header with a value on one line"},
		{"sinks-tls", "a.yaml", "sinks: [{remote_write: {url: 'https://a', tls: {private_key: k}}}]\n", "sinks[0].remote_write.tls: certificate_chain and private_key need each other"},
		{"sinks-kinds", "a.yaml", "sinks: [{filters: {kinds: [text]}, statsd: {address: 'a:1'}}]\n", `sinks[0].filters.kinds[0]: "text" is not one of counter, gauge, histogram`},
		{"sinks-transport", "a.yaml", "sinks: [{statsd: {address: 'udp://127.0.0.1:8125'}}]\n", `sinks[0].statsd.address: "udp://127.0.0.1:8125" is not host:port, such as 127.0.0.1:8125; the transport is not part of it`},
		{"sinks-address", "a.yaml", "sinks: [{statsd: {address: here}}]\n", `a.yaml:1:28: sinks[0].statsd.address: "here" is not host:port, such as 127.0.0.1:8125`},
		{"sinks-path", "a.yaml", "sinks: [{statsd: {protocol: unixgram, address: here}}]\n", "a.yaml:1:48: sinks[0].statsd.address: "},
		{"sinks-datagram", "a.yaml", "sinks: [{statsd: {address: 'a:1', max_packet_bytes: 65508}}]\n", "a.yaml:1:53: sinks[0].statsd.max_packet_bytes: a datagram of UDP has at most 65507 bytes"},
		{"relay-datagram", "a.yaml", "statsd: {relay: [{targets: [{max_packet_bytes: 64KiB, address: 'udp://a:1'}]}]}\n", "a.yaml:1:48: statsd.relay[0].targets[0].max_packet_bytes: a datagram of UDP has at most 65507 bytes"},
		{"sinks-events", "a.yaml", "sinks: [{statsd: {address: 'a:1', events: true}}]\n", "a.yaml:1:43: sinks[0].statsd.events: lines of the format plain have no events; only dogstatsd has"},
		{"sinks-format", "a.yaml", "sinks: [{statsd: {address: 'a:1', format: csv}}]\n", `a.yaml:1:43: sinks[0].statsd.format: "csv" is not one of plain, dogstatsd, graphite, influx, librato, signalfx`},
		{"sinks-envoy", "a.yaml", "stats_sinks: [{name: envoy.stat_sinks.statsd, typed_config: {max_bytes_per_datagram: 9}}]\n",
			"a.yaml:1:62: stats_sinks[0].typed_config.max_bytes_per_datagram: unknown field; allowed: @type, address, prefix, tcp_cluster_name"},
		{"control-ads", "a.yaml", "dynamic_resources:\n  ads_config: {api_type: GRPC, grpc_services: [{envoy_grpc: {cluster_name: a}}]}\n", `a.yaml:2:15: dynamic_resources.ads_config: "a" is not a static cluster`},
		{"control-cds", "a.yaml", "dynamic_resources: {cds_config: {api_config_source: {api_type: GRPC, grpc_services: [{envoy_grpc: {cluster_name: a}}]}}}\n", `a.yaml:1:33: dynamic_resources.cds_config: "a" is not a static cluster`},
		{"header-prefix", "a.yaml", `header_prefix: "x y"`, `a.yaml:1:16: header_prefix: "x y" is not the name of a header`},
		{"header-lines", "a.yaml", `header_prefix: "x\r\ny"`, `header_prefix: "x\r\ny" is not the name of a header`},
		{"metrics-address", "a.yaml", "admin: {metrics_address: {socket_address: {address: 127.0.0.1, port_value: 9102}}}", "a.yaml:1:26: admin.metrics_address: only with address"},
		{"metrics-pipe", "a.yaml", "admin: {address: {pipe: {path: /a}}, metrics_address: {pipe: {path: /b}}}", "a.yaml:1:55: admin.metrics_address: only of kind socket_address"},
		{"secret-value", "a.yaml", "admin: {mode: '-----BEGIN PRIVATE KEY-----abc'}", "admin.mode: [redacted] is not one of full, read_only, metrics_only"},
		{"secret-scalar", "a.yaml", "static_resources: {secrets: [hunter2]}", "static_resources.secrets[0]: secret #0: [redacted] is not a mapping with fields of Secret"},
		{"secret-in-key", "a.yaml", "sinks: [{otlp: {url: 'http://a', api_token:hunter2}}]", "sinks[0].otlp.api_token:[redacted]: unknown field"},
		{"secret-in-header", "a.yaml", "sinks: [{otlp: {url: 'http://a', headers: {authorization=hunter2}}}]", "sinks[0].otlp.headers.authorization=[redacted]: not a header"},
		{"secret-field-first", "a.yaml", "admin: {limits: hunter2, auth: {token: hunter2}}", `admin.limits: "hunter2" is not a mapping`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse(tt.file, []byte(tt.text), Options{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.HasPrefix(err.Error(), "bootstrap: 1 error ") == strings.HasSuffix(tt.name, "-first") {
				t.Errorf("Parse(%q)\n got %v\nwant %s", tt.text, err, tt.want)
			}
		})
	}
}

func TestSecretsAreMasked(t *testing.T) {
	d := &decoder{doc: &document{file: "a.yaml"}}
	for _, path := range []string{
		"a.private_key", "a.private_key.inline_string", "tls.password", "x.tokens[3]", "generic_secret.secret.inline_string", "backend_token", "db_password",
	} {
		var to string
		choice(&to, "x")(d, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "canary"}, path)
		var whole32 int
		whole(&whole32, 0, 1)(d, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "canary"}, path)
	}
	for _, e := range d.errs {
		if strings.Contains(e.Error(), "canary") || !strings.Contains(e.Error(), "[redacted]") {
			t.Errorf("not masked: %v", e)
		}
	}
	if len(d.errs) != 14 {
		t.Errorf("%d errors, want 14", len(d.errs))
	}
	if redact.Path("admin.tokens_per_second") || redact.Path("statsd.listeners[0].address") {
		t.Error("a harmless field counts as sensitive")
	}
}

func TestUnknownFieldsAllowed(t *testing.T) {
	c, err := Parse("a.yaml", []byte("new: 1\nadmin:\n  newer: {x: 2}\n"), Options{AllowUnknownFields: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a.yaml:1:1: new", "a.yaml:3:3: admin.newer"}, c.UnknownFields); diff != "" {
		t.Error(diff)
	}
	c, err = Parse("a.yaml", []byte("static_resources:\n  clusters:\n  - {name: c, new: 1, newer: 2}\n"), Options{AllowUnknownFields: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a.yaml:3:15: static_resources.clusters[0].new", "a.yaml:3:23: static_resources.clusters[0].newer"}, c.UnknownFields); diff != "" {
		t.Error(diff)
	}
	if _, err := Parse("a.yaml", []byte("new: 1\nadmin: {mode: x}\n"), Options{AllowUnknownFields: true}); err == nil {
		t.Error("a wrong value passes when unknown fields are allowed")
	}
}

func TestMergeOverFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "boot.yaml")
	file := `
node: {id: a, cluster: c, metadata: {x: 1, y: 2}}
admin:
  address: {socket_address: {address: 127.0.0.1, port_value: 1}}
  allowed_hosts: [one]
stats_config: {stats_matcher: {reject_all: true}}
layered_runtime: {layers: [{name: base, static_layer: {}}]}
`
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	over := `
node: {id: b, metadata: {y: 3}}
admin:
  address: {pipe: {path: /tmp/x.sock}}
  allowedHosts: [two]
  mode: null
stats_config: {stats_matcher: {inclusion_list: {patterns: [{exact: e}]}}}
layered_runtime: {layers: [{name: admin, admin_layer: {}}]}
`
	c, err := Load(Source{Path: path, YAML: over}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Node.ID != "b" || c.Node.Cluster != "c" {
		t.Errorf("node %+v", c.Node)
	}
	if diff := cmp.Diff(map[string]any{"x": 1.0, "y": 3.0}, c.Node.Metadata); diff != "" {
		t.Error(diff)
	}
	if c.Admin.Address.Pipe != "/tmp/x.sock" || c.Admin.Address.IP.IsValid() {
		t.Errorf("address %+v: the pipe must replace the socket address", c.Admin.Address)
	}
	if diff := cmp.Diff([]string{"one", "two"}, c.Admin.AllowedHosts); diff != "" {
		t.Error(diff)
	}
	if reject := c.Stats.Reject; reject == nil || reject("e") || !reject("x") {
		t.Errorf("the matcher is not the one of the overlay")
	}
	if len(c.Runtime) != 2 || c.Runtime[1].Kind != layers.Admin {
		t.Errorf("layers %+v", c.Runtime)
	}

	_, err = Load(Source{Path: path, YAML: "node: {id: 5}\nbad: 1"}, Options{})
	if err == nil || !strings.Contains(err.Error(), "<config-yaml>:1:12: node.id: ") || !strings.Contains(err.Error(), "<config-yaml>:2:1: bad: ") {
		t.Errorf("err = %v", err)
	}
	_, err = Load(Source{Path: path, YAML: "a: [\n"}, Options{})
	if err == nil || !strings.Contains(err.Error(), "<config-yaml>:") {
		t.Errorf("err = %v", err)
	}
}

// TestMergePushesOut puts the field that another one takes the place of before, between
// and behind the fields that stay.
func TestMergePushesOut(t *testing.T) {
	for _, tt := range []struct{ name, base, over, want string }{
		{"socket_address", "{port_value: 1, address: a}", "{namedPort: http}", "{address: a, namedPort: http}"},
		{"socket_address", "{address: a, port_value: 1, protocol: TCP}", "{named_port: http}", "{address: a, protocol: TCP, named_port: http}"},
		{"socket_address", "{port_value: 1, address: a}", "{address: b, named_port: http}", "{address: b, named_port: http}"},
		{"socket_address", "{port_value: 1, address: a}", "{named_port: null, address: b, x: 1, protocol: TCP}", "{port_value: 1, address: b, named_port: null, x: 1, protocol: TCP}"},
		{"cds_config", "{path: /p, ads: {}, resource_api_version: V3}", "{self: {}}", "{resource_api_version: V3, self: {}}"},
		{"other", "{port_value: 1, address: a}", "{named_port: http, address: b}", "{port_value: 1, address: b, named_port: http}"},
		{"other", "[a]", "[b]", "[a, b]"},
		{"other", "{a: b}", "[c, d]", "[c, d]"},
		{"other", "[a, b]", "{c: d}", "{c: d}"},
		{"other", "{a: b}", "c", "c"},
		{"other", "a", "{b: c}", "{b: c}"},
		{"other", "a", "[b]", "[b]"},
		{"other", "[a]", "b", "b"},
		{"other", "[a]", "null", "[a]"},
	} {
		got, err := yaml.Marshal(mergeNodes(tt.name, node(t, tt.base), node(t, tt.over)))
		if err != nil || strings.TrimSpace(string(got)) != tt.want {
			t.Errorf("%s: %s over %s: %s, %v, want %s", tt.name, tt.over, tt.base, got, err, tt.want)
		}
	}
}

func TestOverlayAlone(t *testing.T) {
	c, err := Load(Source{YAML: `{"node": {"id": "only"}}`}, Options{})
	if err != nil || c.Node.ID != "only" || !c.Admin.Address.IsZero() || c.StatsD.Enabled {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestFileErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(Source{Path: filepath.Join(dir, "none.yaml")}, Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("err = %v", err)
	}
	sub := filepath.Join(dir, "d.yaml")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(Source{Path: sub}, Options{}); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("err = %v", err)
	}
	big := filepath.Join(dir, "big.pb")
	if err := os.WriteFile(big, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(big, conftree.MaxBytes+1); err != nil {
		t.Fatal(err)
	}
	descriptors.Check(t, "configuration file", func() {
		if _, err := readFile("testdata/full.yaml"); err != nil {
			t.Error(err)
		}
	})
	if _, err := Load(Source{Path: big}, Options{}); err == nil || !strings.Contains(err.Error(), "more than the limit") {
		t.Errorf("err = %v", err)
	}
}

// TestJSONAndYAMLAgree reads one configuration in both forms.
func TestJSONAndYAMLAgree(t *testing.T) {
	data, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	fromYAML, err := Parse("a.yaml", data, Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := &decoder{doc: &document{}}
	asJSON := jsonText(t, d.plain(fromYAML.Root.Node, ""))
	fromJSON, err := Parse("a.json", asJSON, Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, asJSON)
	}
	ignore := cmpopts.IgnoreTypes(Raw{})
	if diff := cmp.Diff(fromYAML, fromJSON, ignore, sameMessages(), cmpopts.IgnoreFields(Config{}, "Warnings"), cmpopts.IgnoreUnexported(Config{}), cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, netip.Prefix{})); diff != "" {
		t.Errorf("(-yaml +json)\n%s", diff)
	}
	if len(fromYAML.Warnings) == 0 || len(fromYAML.Warnings) != len(fromJSON.Warnings) {
		t.Errorf("warnings differ:\n%q\n%q", fromYAML.Warnings, fromJSON.Warnings)
	}
}

func TestLowerCamelCase(t *testing.T) {
	c := mustParse(t, "flagsPath: /f\nstatsFlushInterval: 1s\nadmin: {profilePath: /p}\n")
	if c.FlagsPath != "/f" || c.Stats.FlushInterval != time.Second || c.Admin.ProfilePath != "/p" {
		t.Errorf("%+v", c)
	}
}

func TestAliasesAndMergeKeys(t *testing.T) {
	c := mustParse(t, `
node: &n {id: a, cluster: c, metadata: {limit: &l 5}}
layered_runtime:
  layers:
  - {name: a, static_layer: &w {miss: 1, kill: *l}}
  - {name: b, static_layer: {<<: *w, miss: 2}}
`)
	if diff := cmp.Diff(map[string]any{"miss": 2.0, "kill": 5.0}, c.Runtime[1].Values); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestAliasBombs: whatever aliases multiply to, the answer is quick and small.
func TestAliasBombs(t *testing.T) {
	// chain makes lists or mappings that each repeat the one before.
	chain := func(levels, fan int, mapping bool) string {
		var b strings.Builder
		b.WriteString("node:\n  metadata:\n    a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
		for i := 1; i <= levels; i++ {
			fmt.Fprintf(&b, "    a%d: &a%d [", i, i)
			for j := range fan {
				if mapping {
					fmt.Fprintf(&b, "{k%d: *a%d}, ", j, i-1)
				} else {
					fmt.Fprintf(&b, "*a%d, ", i-1)
				}
			}
			b.WriteString("]\n")
		}
		return b.String()
	}
	// merging makes mappings that each copy the keys of a large one.
	merging := func(keys, copies int) string {
		var b strings.Builder
		b.WriteString("node:\n  metadata:\n    a: &a {")
		for i := range keys {
			fmt.Fprintf(&b, "k%d: 1, ", i)
		}
		b.WriteString("}\n")
		for i := range copies {
			fmt.Fprintf(&b, "    b%d: {<<: *a}\n", i)
		}
		return b.String()
	}
	bombs := map[string]string{
		"merge-1000x1000": merging(1000, 1000), "merge-100x10000": merging(100, 10000), "merge-10000x1000": merging(10000, 1000),
		"self": "node: &n {metadata: {a: *n, b: *n}}", "self-list": "node: &n [*n, *n]", "merge-self": "node: &n {<<: *n}",
	}
	for _, mapping := range []bool{false, true} {
		for _, size := range [][2]int{{9, 9}, {30, 2}, {60, 2}, {95, 2}, {12, 5}, {7, 20}, {6, 50}, {5, 100}, {4, 2000}, {3, 5000}} {
			bombs[fmt.Sprintf("chain-%d-%d-%v", size[0], size[1], mapping)] = chain(size[0], size[1], mapping)
		}
	}
	for name, bomb := range bombs {
		t.Run(name, func(t *testing.T) {
			bytes := uint64(math.MaxUint64)
			for range 3 { // the machine may be busy with something else
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				if _, err := Parse("a.yaml", []byte(bomb), Options{}); err == nil {
					t.Fatal("accepted")
				}
				runtime.ReadMemStats(&after)
				bytes = min(bytes, after.TotalAlloc-before.TotalAlloc)
			}
			if bytes > 64<<20 {
				t.Errorf("%d bytes took %d MiB", len(bomb), bytes>>20)
			}
		})
	}
}

func TestRawKeepsPositions(t *testing.T) {
	c := mustParse(t, "node: {}\nstatic_resources:\n  clusters:\n  - name: a\n")
	clusters := c.StaticResources.Node.Content[1]
	if got := c.StaticResources.Position(clusters.Content[0]).String(); got != "a.yaml:4:5" {
		t.Errorf("position %s", got)
	}
	if c.StaticResources.Path != "static_resources" || c.DynamicResources.Node != nil {
		t.Errorf("%+v %+v", c.StaticResources, c.DynamicResources)
	}
	if got := (Raw{}).Position(nil); got != (Position{}) {
		t.Errorf("zero Raw has a position: %v", got)
	}
}

func TestRuntimeForms(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"absent", "", []string{"admin admin_layer"}},
		{"empty", "layered_runtime: {}", []string{" admin_layer"}},
		{"older", "runtime: {base: {a: 1}}", []string{"base static_layer", "admin admin_layer"}},
		{"older-disk", "runtime: {symlink_root: /s, subdirectory: p, override_subdirectory: o}",
			[]string{"base static_layer", "root disk_layer /s p false", "override disk_layer /s o true", "admin admin_layer"}},
		{"no-admin", "layered_runtime: {layers: [{name: s, static_layer: {}}]}", []string{"s static_layer"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, l := range mustParse(t, tt.text).Runtime {
				line := l.Name + " " + map[layers.Kind]string{layers.Static: staticLayer, layers.Disk: diskLayer, layers.Admin: adminLayer}[l.Kind]
				if l.Kind == layers.Disk {
					line += " " + l.SymlinkRoot + " " + l.Subdirectory
					if l.AppendServiceCluster {
						line += " true"
					} else {
						line += " false"
					}
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAccessLogPathDevNull(t *testing.T) {
	c := mustParse(t, "admin: {access_log_path: /dev/null}")
	if len(c.Admin.AccessLog) != 0 {
		t.Errorf("%+v", c.Admin.AccessLog)
	}
}

func TestProductNames(t *testing.T) {
	c, err := Parse("a.yaml", []byte("stats_sinks: [{name: edge.stat_sinks.hystrix}, {name: envoy.dog_statsd}]"), Options{Product: "edge"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Stats.Sinks[0].Kind != "hystrix" || c.Stats.Sinks[1].Kind != "dog_statsd" || c.Admin.ProfilePath != "/var/log/edge/edge.prof" {
		t.Errorf("%+v %s", c.Stats.Sinks, c.Admin.ProfilePath)
	}
	want := []string{"a.yaml:1:55: stats_sinks[1].name: accepted, but nothing is sent: there is no such sink in this build"}
	if !slices.Equal(c.Warnings, want) {
		t.Errorf("warnings %q, want %q: who relies on a sink is to know", c.Warnings, want)
	}
}

func TestRefusedFieldsAreNotOffered(t *testing.T) {
	_, err := Parse("a.yaml", []byte("admin: {address: {socket_address: {named_prt: a}}}"), Options{})
	_, allowed, _ := strings.Cut(fmt.Sprint(err), "allowed: ")
	if allowed == "" || slices.Contains(strings.Split(allowed, ", "), "named_port") {
		t.Errorf("%v", err)
	}
}

// TestOwnPrefixAlphabet tries each character as a prefix, alone and between others.
func TestOwnPrefixAlphabet(t *testing.T) {
	valid := regexp.MustCompile(`^[A-Za-z0-9_-]$`)
	for c := range 128 {
		for _, around := range []string{"", "x"} {
			prefix := around + string(rune(c)) + around
			_, err := Parse("a.json", fmt.Appendf(nil, `{"stats_config": {"own_prefix": %q}}`, prefix), Options{})
			if want := valid.MatchString(string(rune(c))) || c == '.' && around != ""; (err == nil) != want {
				t.Errorf("%q: %v", prefix, err)
			}
		}
	}
}

// TestCollectVisitsSharedNodesOnce has 2^60 ways to the last node.
func TestCollectVisitsSharedNodesOnce(t *testing.T) {
	n := &yaml.Node{}
	for range 60 {
		n = &yaml.Node{Content: []*yaml.Node{n, n}}
	}
	set := make(map[*yaml.Node]struct{})
	if collect(n, set); len(set) != 61 {
		t.Errorf("%d nodes, want 61", len(set))
	}
}
