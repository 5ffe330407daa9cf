package convert

import (
	"fmt"
	"strings"
	"testing"
)

// convertText converts a file that is right, with the name that its program uses.
func convertText(t *testing.T, from Program, text string) *Result {
	t.Helper()
	file := "c"
	if from == Gostatsd {
		file = "c.toml"
	}
	r, err := Convert(from, file, []byte(text), nil)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return r
}

// TestUnknownSettings has an unknown setting in every group, among settings that are
// known: each of them gets a note.
func TestUnknownSettings(t *testing.T) {
	for _, tt := range []struct {
		from Program
		text string
		want string // paths of the unknown settings
	}{
		{Statsd, "{zz: 1, graphiteHost: 'h', graphite: {zz: 1, legacyNamespace: false}, port: 1}", "zz graphite.zz"},
		{Statsd, "{servers: [{zz: 1, port: 1}, {port: 2, zz: 1}]}", "servers[0].zz servers[1].zz"},
		{Statsd, "{backends: ['repeater', 'console'], repeater: [{zz: 1, host: 'a', port: 1}, {host: 'b', port: 1, zz: 1}]}", "repeater[0].zz repeater[1].zz"},
		{Statsd, "{nodes: [{zz: 1, host: 'a'}, {host: 'b', zz: 1}], zz: 1}", "nodes[0].zz nodes[1].zz zz"},
		{
			Telegraf, "zz = 1\n[agent]\nzz = 1\ninterval = '1s'\n[[inputs.statsd]]\nzz = 1\n[[inputs.statsd]]\nzz = 1\n[[inputs.cpu]]\n[[outputs.file]]\nzz = 1\nfiles = ['/f']\n" +
				"[[outputs.graphite]]\nservers = ['h:1']\nzz = 1\n[[outputs.opentelemetry]]\nzz = 1\n[[outputs.http]]\nurl = 'http://h/'\ndata_format = 'prometheusremotewrite'\nzz = 1\n" +
				"[[outputs.prometheus_client]]\nzz = 1\n",
			"zz agent.zz inputs.statsd[0].zz inputs.statsd[1].zz inputs.cpu outputs.file[0].zz outputs.graphite[0].zz outputs.opentelemetry[0].zz outputs.http[0].zz outputs.prometheus_client[0].zz",
		},
		{
			Gostatsd, "zz = 1\nbackends = 'graphite statsdaemon otlp'\nfilters = 'f'\n[graphite]\nzz = 1\n[statsdaemon]\naddress = 'h:1'\nzz = 1\n[otlp]\nzz = 1\nmetrics_endpoint = 'http://h/'\n" +
				"[filter.f]\nzz = 1\ndrop-metric = true\nmatch-metrics = 'a'\n",
			"zz graphite.zz statsdaemon.zz otlp.zz filter.f.zz",
		},
		{
			Brubeck, `{"zz": 1, "samplers": [{"type": "statsd", "zz": 1, "port": 1}, {"type": "statsd", "port": 2, "zz": 1}], "backends": [{"type": "carbon", "address": "a", "zz": 1}]}`,
			"zz samplers[0].zz samplers[1].zz backends[0].zz",
		},
	} {
		r := convertText(t, tt.from, tt.text)
		var notes strings.Builder
		for _, n := range r.Notes {
			fmt.Fprintln(&notes, n)
		}
		want := strings.Fields(tt.want)
		for _, path := range want {
			if n := strings.Count(notes.String(), ": "+path+": has no equivalent"); n != 1 {
				t.Errorf("%s: %d notes about %s in\n%s", tt.text, n, path, notes.String())
			}
		}
		if n := strings.Count(notes.String(), "zz: "); n != strings.Count(tt.want, "zz") {
			t.Errorf("%s: %d notes about zz in\n%s", tt.text, n, notes.String())
		}
	}
}

// TestNothingIsLeftOut has the skipped element, with a note, first in its list: what stands
// behind it is converted.
func TestNothingIsLeftOut(t *testing.T) {
	for _, tt := range []struct {
		from Program
		text string
		note string
		want string
	}{
		{Brubeck, `{"samplers": [{"type": "secure", "port": 1}, {"type": "statsd", "port": 2}]}`, "sampler", "udp://0.0.0.0:2"},
		{Brubeck, `{"samplers": [{"port": 1}, {"type": null}, {"type": "statsd", "port": 2}]}`, "the sampler has no type", "udp://0.0.0.0:2"},
		{Brubeck, `{"backends": [{}, {"type": "carbon", "address": "a"}]}`, "the backend has no type", "a:2003"},
		{Brubeck, `{"backends": [{"type": "odd"}, {"type": "carbon", "address": "a"}]}`, "backend", "a:2003"},
		{Statsd, "{backends: ['odd', 'console']}", "the backend odd", "/dev/stdout"},
		{Gostatsd, "backends = 'odd stdout'", "the backend odd", "/dev/stdout"},
		{Gostatsd, "backends = 'odd null stdout'\n[odd]\na = 1\n", "the backend", "/dev/stdout"},
		{Gostatsd, "default-tags = 'odd a:b'\n", "the tag odd has no value", "a: b"},
		{Gostatsd, "filters = 'none f'\n[filter.f]\ndrop-metric = true\nmatch-metrics = 'a'\n", "there is no filter none", "exact: a"},
		{Gostatsd, "filters = 'none f'\n[filter.none]\nmatch-tags = 'x'\n[filter.f]\ndrop-metric = true\nmatch-metrics = 'a'\n", "a filter with match-tags", "exact: a"},
		{Gostatsd, "filters = 'f'\n[filter.f]\nmatch-metrics = ['*', 'a']\ndrop-metric = true\n", "", "exact: a"},
		{Gostatsd, "filters = 'f'\n[filter.f]\nmatch-metrics = ['a']\ndrop-tags = ['odd', 'b:*']\n", "only all values", "drop: [b]"},
		{Gostatsd, "percent-threshold = [0, 90]", "0 is not in", "[90]"},
		{Telegraf, "[[inputs.statsd]]\ntemplates = ['odd*', 'measurement.x']\n", "has no equivalent: write", "but a mapping rule may do"},
		{Gostatsd, "namespace = 'n'\nfilters = 'f'\n[filter.f]\nmatch-metrics = 'n.a* n.a'\ndrop-metric = true\n", "", "- prefix: a\n    - exact: a\n"},
		{Gostatsd, "namespace = 'n'\nfilters = 'f g'\n[filter.f]\nmatch-metrics = 'a*'\ndrop-tags = 'x:*'\n[filter.g]\nmatch-metrics = 'n*'\ndrop-tags = 'b:*'\n", "a* matches no name with the namespace", "tags:\n    - drop: [b]"},
		{Gostatsd, "namespace = 'n'\nfilters = 'f g'\n[filter.f]\nmatch-metrics = 'regex:^n.a'\ndrop-metric = true\n[filter.g]\nmatch-metrics = 'a n.b'\ndrop-metric = true\n", "without the namespace here", "    - exact: b"},
		{Telegraf, "[[inputs.statsd]]\n[[outputs.odd]]\n[[outputs.file]]\nfiles = ['stdout']\n", "the output has no equivalent", "/dev/stdout"},
		{Telegraf, "[[inputs.statsd]]\n[[outputs.http]]\nurl = 'http://h/'\ndata_format = 'prometheusremotewrite'\n[outputs.http.headers]\nContent-Type = 'x'\nA = 'b'\n", "", "A: b"},
		{Telegraf, "[[inputs.statsd]]\n[[outputs.http]]\nurl = 'http://h/'\ndata_format = 'prometheusremotewrite'\n[outputs.http.headers]\n'' = 'x'\nA = 'b'\n", "is not a header", "A: b"},
	} {
		r := convertText(t, tt.from, tt.text)
		if !strings.Contains(string(r.YAML), tt.want) {
			t.Errorf("%s: want %q in\n%s", tt.text, tt.want, r.YAML)
		}
		if !strings.Contains(fmt.Sprint(r.Notes), tt.note) {
			t.Errorf("%s: want a note with %q in %v", tt.text, tt.note, r.Notes)
		}
	}
}

// TestDefaults has what the programs do without a setting.
func TestDefaults(t *testing.T) {
	for _, tt := range []struct {
		from Program
		text string
		want []string
	}{
		{Statsd, "{}", []string{"address: 127.0.0.1", "port_value: 9901", "stats_flush_interval: 10s", "udp://0.0.0.0:8125"}},
		{Statsd, "{graphiteHost: 'h'}", []string{"h:2003", "layout: legacy", "zero_deltas: true", "origin: received"}},
		{Statsd, "{backends: ['repeater'], repeater: [{host: 'h'}]}", []string{"udp://h:8125", "invalid: true"}},
		{Statsd, "{nodes: [{host: 'h', adminport: 8126}]}", []string{"udp://0.0.0.0:8125", "udp://h:8125", "relay_only: true", "mode: hash", "h:8126", "expect: up", "interval: 10s"}},
		{Telegraf, "[[inputs.statsd]]\n", []string{"udp://0.0.0.0:8125", "gauge: 10s"}},
		{Telegraf, "[[inputs.statsd]]\n[[outputs.prometheus_client]]\n", []string{"address: 0.0.0.0", "port_value: 9273", "mode: read_only"}},
		{Telegraf, "[[inputs.statsd]]\n[[outputs.graphite]]\n", []string{"localhost:2003"}},
		{Telegraf, "[[inputs.statsd]]\n[[outputs.opentelemetry]]\n", []string{"http://localhost:4317", "protocol: grpc", "compression: gzip"}},
		{Gostatsd, "backends = 'graphite'", []string{"udp://0.0.0.0:8125", "stats_flush_interval: 1s", "localhost:2003", "counter: 5m0s", "tagged: true"}},
		{Gostatsd, "backends = 'statsdaemon'\n[statsdaemon]\naddress = 'h'\n", []string{"h:8125", "format: dogstatsd"}},
		{Gostatsd, "backends = 'otlp'\n[otlp]\nmetrics_endpoint = 'https://h/x'\n", []string{"https://h/x", "temporality: delta"}},
		{Brubeck, `{"samplers": [{"type": "statsd"}], "backends": [{"type": "carbon"}]}`, []string{"stats_flush_interval: 10s", "udp://0.0.0.0:8126", "127.0.0.1:2003", "[75, 95, 98, 99, 99.9]"}},
	} {
		r := convertText(t, tt.from, tt.text)
		for _, want := range tt.want {
			if !strings.Contains(string(r.YAML), want) {
				t.Errorf("%s: want %q in\n%s", tt.text, want, r.YAML)
			}
		}
	}
}

// TestTelegrafTLS: each file of TLS comes where it belongs, and any of them turns TLS on for
// a receiver without a URL. A certificate without its key, which Telegraf ignores, gets a note.
func TestTelegrafTLS(t *testing.T) {
	for _, tt := range []struct {
		settings string
		tls      string // lines below tls
		secure   bool
		note     string
	}{
		{"", "", false, ""},
		{"tls_ca = ''\ntls_cert = ''\ntls_key = ''\ntls_enable = false", "", false, ""},
		{"tls_enable = true", "", true, ""},
		{"tls_ca = '/a'", "ca: /a", true, ""},
		{"tls_cert = '/c'\ntls_key = '/k'", "certificate_chain: /c private_key: /k", true, ""},
		{"tls_ca = '/a'\ntls_cert = '/c'\ntls_key = '/k'", "ca: /a certificate_chain: /c private_key: /k", true, ""},
		{"tls_ca = '/a'\ntls_cert = '/c'", "ca: /a", true, "tls_cert: has no effect without tls_key"},
		{"tls_cert = '/c'", "", true, "tls_cert: has no effect without tls_key"},
		{"tls_key = '/k'", "", true, "tls_key: has no effect without tls_cert"},
		{"insecure_skip_verify = true", "", false, "insecure_skip_verify: has no equivalent"},
	} {
		for _, output := range []string{"opentelemetry", "http"} {
			text := "[[inputs.statsd]]\n[[outputs." + output + "]]\n" + tt.settings + "\n"
			if output == "http" {
				text += "url = 'http://h/'\ndata_format = 'prometheusremotewrite'\n"
			}
			r := convertText(t, Telegraf, text)
			_, tls, _ := strings.Cut(string(r.YAML), "    tls:\n")
			var got []string
			for line := range strings.Lines(tls) {
				field, ok := strings.CutPrefix(line, "      ")
				if !ok {
					break
				}
				got = append(got, strings.TrimSpace(field))
			}
			if s := strings.Join(got, " "); s != tt.tls {
				t.Errorf("%s: tls has %q, want %q", text, s, tt.tls)
			}
			if secure := strings.Contains(string(r.YAML), "https://"); secure != (tt.secure && output != "http") {
				t.Errorf("%s: https: %t in\n%s", text, secure, r.YAML)
			}
			if (len(r.Notes) > 0) != (tt.note != "") || !strings.Contains(fmt.Sprint(r.Notes), tt.note) {
				t.Errorf("%s: notes %v, want %q", text, r.Notes, tt.note)
			}
		}
	}
}

// TestURLs has URLs of sinks at the borders of what can be sent to.
func TestURLs(t *testing.T) {
	for url, ok := range map[string]bool{
		"http://h": true, "https://h:1/x": true, "HTTP://h/": true, "": false, "h": false, "http:///x": false, "http:x": false, "ftp://h/": false,
		"http://user@h/": false, "http://ä/": false, "http://h/%zz": false,
	} {
		r, err := Convert(Gostatsd, "c.toml", fmt.Appendf(nil, "backends = 'otlp'\n[otlp]\nmetrics_endpoint = %q\n", url), nil)
		if (err == nil) != ok {
			t.Errorf("%q: %v", url, err)
		} else if ok && !strings.Contains(string(r.YAML), url) {
			t.Errorf("%q is not in\n%s", url, r.YAML)
		}
	}
}

// TestTemplates has the draft of a mapping rule for each form of Telegraf's templates, ""
// for those without one.
func TestTemplates(t *testing.T) {
	for template, want := range map[string]string{
		"measurement.region":                    `{match: "*.*", name: "${1}", labels: {"region": "${2}"}}`,
		"measurement.region zone=a":             `{match: "*.*", name: "${1}", labels: {"region": "${2}"}}`,
		"cpu.* measurement.region":              `{match: "cpu.*", name: "cpu", labels: {"region": "${1}"}}`,
		"cpu.* measurement.region zone=a":       `{match: "cpu.*", name: "cpu", labels: {"region": "${1}"}}`,
		"*.cpu region.measurement..field":       `{match: "*.cpu.*.*", name: "cpu_${3}", labels: {"region": "${1}"}}`,
		"measurement.measurement":               `{match: "*.*", name: "${1}_${2}", labels: {}}`,
		"":                                      "",
		"region.host":                           "",
		"measurement*":                          "",
		"a b=c d":                               "",
		"measurement" + strings.Repeat(".", 31): `{match: "` + strings.Repeat("*.", 31) + `*", name: "${1}", labels: {}}`,
		"measurement" + strings.Repeat(".", 32): "",
	} {
		if got, ok := templateRule(template); got != want || ok != (want != "") {
			t.Errorf("%q: %s, want %s", template, got, want)
		}
	}
}
