package convert

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestDepth has values at the limit of nesting, and one level deeper.
func TestDepth(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, tt := range []struct {
		name        string
		from        Program
		fits, beats string
		want        string
	}{
		{"JavaScript", Statsd, "{a: " + nested(maxDepth) + "}", "{a: " + nested(maxDepth+1) + "}", "c:1:55: values nest deeper than 50"},
		{
			"TOML", Telegraf, "[[inputs.statsd]]\na = " + nested(maxDepth+1) + "\n", "[[inputs.statsd]]\na = " + nested(maxDepth+2) + "\n",
			"c:2:1: not valid TOML: values nest deeper than 50",
		},
		{
			"header", Telegraf, "[[inputs.statsd]]\n[a" + strings.Repeat(".a", maxDepth-1) + "]\n", "[[inputs.statsd]]\n[a" + strings.Repeat(".a", maxDepth) + "]\n",
			"c:2:102: not valid TOML: a key of more than 50 parts",
		},
		{
			"dotted key", Telegraf, "[[inputs.statsd]]\na" + strings.Repeat(".a", maxDepth-1) + " = 1\n", "[[inputs.statsd]]\na" + strings.Repeat(".a", maxDepth) + " = 1\n",
			"c:2:101: not valid TOML: a key of more than 50 parts",
		},
		{
			"brackets in text", Telegraf, "[[inputs.statsd]]\na = '" + nested(20*maxDepth) + "'\n", "[[inputs.statsd]]\na = '" + nested(20*maxDepth+1) + "'\n",
			"c:1:1: not valid TOML: a NUL byte, or values nested too deeply",
		},
	} {
		if _, err := Convert(tt.from, "c", []byte(tt.fits), nil); err != nil {
			t.Errorf("%s at the limit: %v", tt.name, err)
		}
		if _, err := Convert(tt.from, "c", []byte(tt.beats), nil); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s beyond the limit: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// TestTimeOfLargeFiles: a file of the greatest size takes seconds, not minutes.
func TestTimeOfLargeFiles(t *testing.T) {
	list := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for name, tt := range map[string]struct {
		from Program
		text string
	}{
		"keys":    {Telegraf, "[[inputs.statsd]]\n" + list(90_000, "k%d=1\n")},
		"tables":  {Telegraf, "[[inputs.statsd]]\n" + list(90_000, "[k%d]\n")},
		"targets": {Statsd, "{backends: ['repeater'], repeater: [" + list(50_000, "{host: 'h%d'},") + "]}"},
	} {
		begin := time.Now()
		if _, err := Convert(tt.from, "c", []byte(tt.text), nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := time.Since(begin); d > 20*time.Second {
			t.Errorf("%s: %d bytes take %v", name, len(tt.text), d)
		}
	}
}

// TestPrograms: Convert knows all programs.
func TestPrograms(t *testing.T) {
	if n := len(Programs()); n != 4 {
		t.Errorf("%d programs", n)
	}
	for _, p := range Programs() {
		if _, err := Convert(p, "c", []byte("{}"), nil); err != nil && strings.Contains(err.Error(), "unknown program") {
			t.Error(err)
		}
	}
}

// percentages returns the numbers below n, from 1 on.
func percentages(n int) (all []string) {
	for i := range n - 1 {
		all = append(all, strconv.Itoa(i+1))
	}
	return all
}

// TestSettings has what becomes of single settings. A - in front means: not in the output.
func TestSettings(t *testing.T) {
	longest := strings.Repeat("h", maxHostBytes)
	for _, tt := range []struct {
		from Program
		text string
		want []string
	}{
		{Statsd, "{address_ipv6: true}", []string{"udp://[::]:8125"}},
		{Statsd, "{address_ipv6: false}", []string{"udp://0.0.0.0:8125"}},
		{Statsd, "{\u00a0port\u00a0:\u00a08126\u00a0}", []string{"udp://0.0.0.0:8126"}},
		{Statsd, "{server: './servers/tcp', socket: '/run/s', socket_mod: '0777'}", []string{"unixlines:///run/s", "mode: \"0777\""}},
		{Statsd, "{server: './servers/tcp', socket: '/run/s'}", []string{"unixlines:///run/s", "-mode:"}},
		{Statsd, "{server: './servers/tcp'}", []string{"tcp://0.0.0.0:8125"}},
		{Statsd, "{nodes: [{host: 'a', port: 1}]}", []string{"udp://0.0.0.0:8125", "udp://a:1"}},
		{Statsd, "{udp_version: 'udp6', nodes: [{host: '" + longest + "', port: 1}]}", []string{"udp://[::]:8125", "udp://" + longest + ":1"}},
		{Statsd, "{nodes: [{host: 'a', port: 1}, {host: 'a', port: 1}, {host: 'b', port: 1}]}", []string{"udp://a:1 is a target already", "udp://b:1"}},
		{Statsd, "{backends: ['repeater'], repeater: [{host: 'fe80::1%eth0', port: 1}]}", []string{"udp://[fe80::1%eth0]:1"}},
		{Statsd, "{nodes: [{host: 'a', port: 1}, {host: 'a', port: 1, adminport: 2}]}", []string{"udp://a:1 is a target already", "-a:2"}},
		{Statsd, "{checkInterval: 99, nodes: [{host: 'a', adminport: 2}]}", []string{"99ms is not from 100ms to 1h", "interval: 10s"}},
		{Statsd, "{checkInterval: 100, nodes: [{host: 'a', adminport: 2}]}", []string{"-is not from", "interval: 100ms"}},
		{Statsd, "{checkInterval: 3600000, nodes: [{host: 'a', adminport: 2}]}", []string{"-is not from", "interval: 1h0m0s"}},
		{Statsd, "{checkInterval: 3600001, nodes: [{host: 'a', adminport: 2}]}", []string{"1h0m0.001s is not from 100ms to 1h", "interval: 10s"}},
		{Statsd, "{flushInterval: 299999}", []string{"stats_flush_interval: 299.999s", "-is not from"}},
		{Statsd, "{flushInterval: 300000}", []string{"stats_flush_interval: 299.999s", "5m0s is not from 1ms to 4m59.999s"}},
		{Statsd, "{flushInterval: 0.1}", []string{"stats_flush_interval: 0.001s", "100µs is not from"}},
		{Statsd, "{graphiteHost: 'h', percentThreshold: []}", []string{"percentiles: []"}},
		{Statsd, "{graphiteHost: 'h', graphiteProtocol: 'pickle'}", []string{"h:2003", "lines are sent as plain text"}},
		{Statsd, "{graphiteHost: 'h', graphiteProtocol: 'text'}", []string{"h:2003", "-lines are sent"}},
		{Statsd, "{keyNameSanitize: false}", []string{"keyNameSanitize (line 1): has no equivalent: each sink replaces"}},
		{Statsd, "{keyNameSanitize: true}", []string{"-keyNameSanitize"}},
		{Statsd, "{server: './servers/tcp', socket: '/" + strings.Repeat("s", maxSocketPath-1) + "'}", []string{"unixlines:///s"}},
		{Telegraf, "[[inputs.statsd]]\nprotocol = ''", []string{"udp://0.0.0.0:8125"}},
		{Telegraf, "[[inputs.statsd]]\nprotocol = 'tcp'\n", []string{"tcp://0.0.0.0:8125", "max_connections: 250"}},
		{Telegraf, "[[inputs.statsd]]\nread_buffer_size = 1024\n", []string{"rcvbuf: 1024"}},
		{Telegraf, "[[inputs.statsd]]\nread_buffer_size = 1073741824\n", []string{"rcvbuf: 1073741824"}},
		{Telegraf, "[[inputs.statsd]]\nread_buffer_size = 1073741825\n", []string{"-rcvbuf", "1073741825 is not in [1024, 1073741824]"}},
		{Telegraf, "[[inputs.statsd]]\ndatadog_extensions = false\n", []string{"dogstatsd: false"}},
		{Telegraf, "[[inputs.statsd]]\ndatadog_extensions = false\nparse_data_dog_tags = true\n", []string{"-dogstatsd"}},
		{Telegraf, "[[inputs.statsd]]\nservice_address = 'localhost:1'\n", []string{"udp://127.0.0.1:1"}},
		{Telegraf, "[[inputs.statsd]]\n[[outputs.file]]\nfiles = ['stdout', '/a/b']\ndata_format = 'json'\n", []string{"path: /dev/stdout", "path: /a/b", "-the format is JSON"}},
		{
			Telegraf, "[[inputs.statsd]]\n[[outputs.opentelemetry]]\nservice_address = 'h:1'\n[outputs.opentelemetry.attributes]\n'' = 'x'\nregion = 'e'\n",
			[]string{"region: e", "-: x"},
		},
		{
			Telegraf, "[[inputs.statsd]]\n[[outputs.http]]\nurl = 'http://h/'\ndata_format = 'prometheusremotewrite'\n[outputs.http.headers]\nX-Good_1 = 'a ~'\n'X Bad' = 'b'\nX-Late = ' c'\nX-Control = \"d\\u0001\"\n",
			[]string{"X-Good_1: \"a ~\"", "-X Bad: b", "-X-Late:", "-X-Control:", "is not a header"},
		},
		{
			Telegraf, "[[inputs.statsd]]\n[[outputs.http]]\nurl = 'http://h/'\ndata_format = 'prometheusremotewrite'\ntls_cert = '/c'\ntls_ca = '/ca'\n",
			[]string{"ca: /ca", "-certificate_chain"},
		},
		{Gostatsd, "metrics-addr = ':1'\nmax-readers = 1\nconn-per-reader = true\n", []string{"readers: 1"}},
		{Gostatsd, "metrics-addr = ':1'\nmax-readers = 1\n", []string{"not needed without conn-per-reader", "-readers: 1"}},
		{Gostatsd, "ignore-host = false\n", []string{"ignore-host (line 1): has no equivalent: no tag has the sender of a line"}},
		{Gostatsd, "ignore-host = true\n", []string{"-ignore-host"}},
		{Gostatsd, "filters = 'f'\n[filter.f]\nmatch-metrics = ['a', '!b']\ndrop-metric = true\n", []string{"an inverted match has no equivalent: the filter is left out", "-deny"}},
		{Gostatsd, "backends = 'statsdaemon'\n[statsdaemon]\naddress = 'h:1'\ntcp_transport = true\ndisable_tags = true\n", []string{"protocol: tcp", "-format"}},
		{Gostatsd, "backends = 'statsdaemon'\n[statsdaemon]\naddress = 'h:1'\n", []string{"-protocol: tcp", "format: dogstatsd"}},
		{Gostatsd, "flush-interval = '1.0015s'\n", []string{"stats_flush_interval: 1.001s"}},
		{Gostatsd, "default-tags = 'bare'\n", []string{"the tag bare has no value", "-only sinks that send tags"}},
		{Gostatsd, "default-tags = 'a:b'\n", []string{"only sinks that send tags"}},
		{Gostatsd, "filters = 'f'\n[filter.f]\nmatch-metrics = '*'\ndrop-metric = true\n", []string{"filter.f (line 2): drops every metric: it is left out", "-deny"}},
		{Gostatsd, "receive-buffer-size = 512\n", []string{"max_packet_bytes: 512\n"}},
		{Gostatsd, "receive-buffer-size = 1048576\n", []string{"max_packet_bytes: 1048576\n"}},
		{Gostatsd, "receive-buffer-size = 511\n", []string{"511 is not in [512, 1048576]", "-max_packet_bytes: "}},
		{Gostatsd, "receive-buffer-size = 1048577\n", []string{"1048577 is not in [512, 1048576]", "-max_packet_bytes: "}},
		{Gostatsd, "metrics-addr = ':1'\n", []string{"udp://0.0.0.0:1", "-max_packet_bytes: "}},
		{Statsd, "{deleteTimers: true}", []string{"-idle timers"}},
		{Statsd, "{deleteTimers: false}", []string{"a sink sends no zeros for idle timers"}},
		{Brubeck, `{"samplers": [{"type": "secure", "port": 1, "zz": 2}]}`, []string{"the sampler has no equivalent", "-zz", "listeners: []"}},
		{Gostatsd, "backends = 'graphite'\n[graphite]\nmode = 'legacy'\n", []string{"layout: legacy", "-tagged"}},
		{Gostatsd, "backends = 'graphite'\n[graphite]\nmode = 'basic'\n", []string{"layout: modern", "-tagged"}},
		{Gostatsd, "backends = 'graphite'\n[graphite]\nmode = 'tags'\n", []string{"layout: modern", "tagged: true"}},
		{Gostatsd, "backends = 'graphite'\n[graphite]\nwrite_timeout = '1h'\n", []string{"timeout: 1h0m0s", "-is not from"}},
		{Gostatsd, "backends = 'graphite'\n[graphite]\nwrite_timeout = '1ms'\n", []string{"timeout: 1ms", "-is not from"}},
		{Gostatsd, "backends = 'graphite'\n[graphite]\nwrite_timeout = '3601s'\n", []string{"-timeout: ", "1h0m1s is not from 1ms to 1h"}},
		{Gostatsd, "backends = 'graphite'\n[graphite]\nwrite_timeout = '0s'\n", []string{"-timeout: ", "-is not from"}},
		{Gostatsd, "backends = 'otlp'\n[otlp]\nmetrics_endpoint = 'http://h'\ncompress_payload = true\n", []string{"compression: gzip"}},
		{Gostatsd, "backends = 'otlp'\n[otlp]\nmetrics_endpoint = 'http://h'\ncompress_payload = false\n", []string{"-compression"}},
		{Gostatsd, "filters = 'f'\n[filter.f]\nmatch-metrics = 'regex:" + strings.Repeat("a", 986) + "'\ndrop-metric = true\n", []string{"regex: \"(?s:.*?(?:aaa"}},
		{Gostatsd, "percent-threshold = [" + strings.Join(percentages(33), ", ") + "]\n", []string{"32]", "-more than"}},
		{Gostatsd, "percent-threshold = [" + strings.Join(percentages(34), ", ") + "]\n", []string{"32]", "more than 32 percentiles"}},
		{Statsd, "{backends: ['repeater'], repeaterProtocol: 'tcp', repeater: [{host: 'h', port: 1}]}", []string{"tcp://h:1"}},
		{Statsd, "{backends: ['repeater'], repeaterProtocol: 'udp4', repeater: [{host: 'h', port: 1}]}", []string{"udp://h:1"}},
		{Statsd, "{backends: ['repeater'], repeater: []}", []string{"-relay"}},
		{Statsd, "{server: './servers/tcp', nodes: [{host: 'a', port: 1}]}", []string{"tcp://0.0.0.0:8125", "udp://a:1"}},
		{Telegraf, "[[inputs.statsd]]\nprotocol = 'tcp'\nmax_tcp_connections = 0\n", []string{"max_connections: 250", "0 is not in [1, 1048576]"}},
		{Telegraf, "[agent]\nhostname = 'a'\n[[inputs.statsd]]\n[[outputs.graphite]]\nservers = ['h:1']\ngraphite_tag_support = true\n", []string{"host: a"}},
		{Telegraf, "[agent]\nhostname = 'a'\nomit_hostname = true\n[[inputs.statsd]]\n[[outputs.graphite]]\nservers = ['h:1']\ngraphite_tag_support = true\n", []string{"-host:"}},
		{Telegraf, "[[inputs.statsd]]\n[[outputs.graphite]]\nservers = ['h:1']\ngraphite_tag_support = true\n", []string{"-host:"}},
		{Brubeck, `{"samplers": [{"type": "statsd", "workers": 1}]}`, []string{"-readers", "workers (line 1): not needed without multisock"}},
		{Brubeck, `{"samplers": [], "backends": [{"type": "carbon", "address": "a", "frequency": 20}, {"type": "carbon", "address": "b", "frequency": 5}]}`, []string{"stats_flush_interval: 5s", "interval: 20s"}},
		{Statsd, "{backends: ['./backends/graphite']}", []string{"without graphiteHost there is no sink for Graphite"}},
		{Telegraf, "[agent]\nhostname = 'a'\n[[inputs.statsd]]\n[[outputs.graphite]]\ntemplate = 'measurement'\n", []string{"paths are prefix and name"}},
		{Telegraf, "[[inputs.statsd]]\n[[outputs.graphite]]\ntemplate = 'measurement'\n", []string{"-paths are prefix and name"}},
		{Telegraf, "[[inputs.statsd]]\n[[outputs.graphite]]\n", []string{"paths are prefix and name"}},
		{Statsd, "{port: 0x1aA}", []string{"udp://0.0.0.0:426"}},
		{Statsd, "{1: 2, port: 3} // the end", []string{"udp://0.0.0.0:3", "1 (line 1): has no equivalent"}},
		{Telegraf, "[[inputs.statsd]]\nmetric_separator = '.'\n", []string{"metric_separator"}},
		{Telegraf, "[[inputs.statsd]]\nmetric_separator = '_'\n", []string{"-metric_separator"}},
		{Telegraf, "[[inputs.statsd]]\n[[outputs.discard]]\n", []string{"-the output has no equivalent"}},
		{Telegraf, "[[inputs.statsd]]\n[[outputs.prometheus_client]]\nlisten = ':1'\npath = '/x'\n", []string{"port_value: 1", "metrics are at /metrics"}},
		{Telegraf, "[[inputs.statsd]]\n[[outputs.prometheus_client]]\nlisten = ':1'\npath = '/metrics'\n", []string{"port_value: 1", "-metrics are at"}},
		{
			Telegraf, "[[inputs.statsd]]\n[[outputs.prometheus_client]]\nlisten = ':1'\n[[outputs.prometheus_client]]\nlisten = ':2'\n",
			[]string{"port_value: 1\n", "there is one administration interface"},
		},
		{Brubeck, `{"samplers": [{"type": "statsd", "workers": 4, "multisock": true}]}`, []string{"readers: 4"}},
		{Brubeck, `{"samplers": [{"type": "statsd", "workers": 4}]}`, []string{"-readers: 4", "workers (line 1): not needed without multisock"}},
		{Brubeck, `{"samplers": [], "backends": [{"type": "carbon", "address": "a", "frequency": 10}, {"type": "carbon", "address": "b", "frequency": 86400}]}`, []string{"interval: 24h0m0s", "-is not a multiple"}},
		{Brubeck, `{"samplers": [], "backends": [{"type": "carbon", "address": "a", "frequency": 10}, {"type": "carbon", "address": "b", "frequency": 86410}]}`, []string{"-interval: 24h", "24h0m10s is not a multiple of 10s"}},
		{Brubeck, `{"samplers": [{"type": "statsd", "address": "localhost", "port": 1}], "backends": [{"type": "carbon", "address": "a", "port": 2}]}`, []string{"udp://127.0.0.1:1", "-a relay with mode hash"}},
		{Brubeck, `{"samplers": [{"type": "statsd", "address": "", "port": 1}], "backends": [{"type": "carbon", "address": "a", "port": 2}, {"type": "carbon", "address": "b", "port": 2}]}`, []string{"udp://0.0.0.0:1", "a relay with mode hash"}},
	} {
		file := "c"
		if tt.from == Gostatsd {
			file = "c.toml"
		}
		r, err := Convert(tt.from, file, []byte(tt.text), nil)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		for _, want := range tt.want {
			text, absent := strings.CutPrefix(want, "-")
			if strings.Contains(string(r.YAML), text) == absent {
				t.Errorf("%s: want %q in\n%s", tt.text, want, r.YAML)
			}
		}
	}
}

// TestRefusedSettings has values that have to be corrected.
func TestRefusedSettings(t *testing.T) {
	for _, tt := range []struct {
		from       Program
		text, want string
	}{
		{Statsd, "{a: }", "c:1:5: want a value"},
		{Statsd, "{a: b c}", `c:1:5: "b c" is an expression`},
		{Statsd, "{a: 1e5+1}", `c:1:5: "1e5+1" is an expression`},
		{Statsd, "{a: 0x1-2}", `c:1:5: "0x1-2" is an expression`},
		{Statsd, "{a: 0z}", `c:1:5: "0z" is an expression`},
		{Statsd, "{a: 0Z}", `c:1:5: "0Z" is an expression`},
		{Statsd, "{a: 'b\\n", "c:1:5: the string does not end"},
		{Statsd, "{a: 'b\\", "c:1:7: the string does not end"},
		{Statsd, "{graphiteHost: 'h', percentThreshold: ['-inf']}", "is not a number"},
		{Statsd, "{nodes: [{host: 'a', port: 65536}]}", "65536"},
		{Telegraf, "[[inputs.statsd]]\nservice_address = ':65536'\n", "an IP address and a port to listen on"},
		{Telegraf, "[[inputs.statsd]]\n[[outputs.graphite]]\nservers = ['h:65536']\n", "is not host:port"},
		{Telegraf, "[[inputs.statsd]]\n[outputs]\nprometheus_client = [1, {listen = 'x'}]\n", `c:3:35: outputs.prometheus_client[1].listen: "x" is not host:port`},
		{Statsd, "{a: -}", `c:1:5: "-" is an expression`},
		{Statsd, "{a: 1+2}", `c:1:5: "1+2" is an expression`},
		{Statsd, `{a: "\xZZ"}`, "an escape without a hexadecimal number"},
		{Statsd, "{a: '\xff'}", "c:1:1: not valid UTF-8"},
		{Statsd, "{a: '\\9'}", "an octal escape is not allowed"},
		{Statsd, "{server: './servers/tcp', socket: '/run/s', socket_mod: '0888'}", "an octal mode, such as 0755"},
		{Statsd, "{server: './servers/tcp', socket: '/run/s', socket_mod: '1755'}", "an octal mode, such as 0755"},
		{Statsd, "{nodes: [{host: '" + strings.Repeat("h", maxHostBytes+1) + "', port: 1}]}", "is not a host name or IP address"},
		{Statsd, "{server: './servers/tcp', socket: '/run/s', socket_mod: '00755'}", "an octal mode, such as 0755"},
		{Statsd, "{a: 08.5}", `c:1:5: "08.5" is an expression`},
		{Statsd, "{a: 00}", `c:1:5: "00" is an expression`},
		{Statsd, "{nodes: [{host: 'ä', port: 1}]}", "is not a host name or IP address"},
		{Statsd, "{nodes: [{host: 'a/b', port: 1}]}", "is not a host name or IP address"},
		{Statsd, "{server: './servers/tcp', socket: '/" + strings.Repeat("s", maxSocketPath) + "'}", "is not an absolute path of at most 107 bytes"},
		{Telegraf, "[[inputs.statsd]]\n[[outputs.http]]\ndata_format = 'prometheusremotewrite'\n", "c:2:11: outputs.http[0].url: is required"},
		{Telegraf, "[[inputs.statsd]]\nservice_address = ':0'\n", "an IP address and a port to listen on"},
		{Telegraf, "[[inputs.statsd]]\nservice_address = 'x'\n", "is not host:port"},
		{Telegraf, "a.b = 1\na.b.c = 2\n[[inputs.statsd]]\n", "b is not a table"},
		{Telegraf, "[a.b]\nc = 1\n[a]\nb.d = 2\n", "b has a header of its own"},
		{Telegraf, "a = []\n[[a]]\n", "a is defined twice"},
		{Telegraf, "[[a]]\n[a]\n", "a is defined twice"},
		{Telegraf, "[[inputs.statsd]]\nprotocol = [[]]\n", "c:2:1: inputs.statsd[0].protocol: a list is not a string"},
		{Telegraf, "[[inputs.statsd]]\nprotocol = {}\n", "c:2:12: inputs.statsd[0].protocol: a mapping is not a string"},
		{Gostatsd, "backends = 'graphite'\n[graphite]\nmode = 'odd'\n", "is not legacy, basic or tags"},
		{Gostatsd, "filters = 'f'\n[filter.f]\nmatch-metrics = 'regex:('\n", "is not a regular expression"},
		{Gostatsd, "filters = 'f'\n[filter.f]\nmatch-metrics = 'regex:" + strings.Repeat("a", 987) + "'\n", "is not a regular expression"},
		{Gostatsd, "backends = 'statsdaemon'\n[statsdaemon]\naddress = 'h:0'\n", "is not host:port"},
		{Gostatsd, "receive-buffer-size = 'x'\n", "is not an integer"},
		{Gostatsd, "percent-threshold = ['x']\n", "is not a number"},
		{Statsd, "{graphiteHost: 'h', percentThreshold: [{}]}", "is not a number"},
		{Telegraf, "[[inputs.statsd]]\n[[outputs.opentelemetry]]\nservice_address = 'h:0'\n", "is not host:port"},
		{Gostatsd, "metrics-addr = ''\nconn-per-reader = 'often'\nmax-readers = 1\n", `"often" is not a boolean (true or false)`},
	} {
		file := "c"
		if tt.from == Gostatsd {
			file = "c.toml"
		}
		if r, err := Convert(tt.from, file, []byte(tt.text), nil); err == nil {
			t.Errorf("%s: no error, but\n%s", tt.text, r.YAML)
		} else if !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.text, err, tt.want)
		}
	}
}

// TestOneErrorForAValue: a value that is not a text is not refused a second time for the text.
func TestOneErrorForAValue(t *testing.T) {
	_, err := Convert(Gostatsd, "c.toml", []byte("backends = 'graphite'\n[graphite]\nmode = []\n"), nil)
	if want := "c.toml:3:1: graphite.mode: a list is not a string"; err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
}
