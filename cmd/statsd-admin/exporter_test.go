package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/server/logctl"
)

// TestExporterFlags: each flag of statsd_exporter has its effect on the options and
// the configuration.
func TestExporterFlags(t *testing.T) {
	for name, args := range map[string]string{
		"defaults": "--check-config",
		"listen": "--web.listen-address=127.0.0.1:1 --web.telemetry-path /m --web.enable-lifecycle --statsd.listen-udp 127.0.0.1:2 --statsd.listen-tcp [::1]:3 " +
			"--statsd.listen-unixgram /run/s --statsd.unixsocket-mode 700 --statsd.read-buffer 65536 --statsd.mapping-config /etc/m.yml",
		"relay":     "--statsd.relay.address relay.example:8125 --statsd.relay.packet-length 512",
		"one":       "--statsd.listen-udp= --statsd.listen-unixgram=@s --no-web.enable-lifecycle --web.allowed-hosts=statsd.example.com,*.test --log.level=debug --log.format=json --no-check-config",
		"dialects":  "--no-statsd.parse-dogstatsd-tags --statsd.parse-influxdb-tags=false --no-statsd.parse-librato-tags --statsd.parse-signalfx-tags",
		"no-effect": "--statsd.cache-size 1 --statsd.cache-type random --statsd.event-queue-size=2 --statsd.event-flush-threshold 3 --statsd.event-flush-interval 4s --statsd.udp-packet-queue-size 5 --statsd.relay.packet-length 512 --debug.dump-fsm /f",
	} {
		o, request, err := parseOptions(strings.Fields(args), 4)
		if err != nil || request != runServer {
			t.Errorf("%s: request %d, %v", name, request, err)
			continue
		}
		var b bytes.Buffer
		fmt.Fprintf(&b, "%s\n%s%+v\nmode %s, log level %s, hot restart %t, log format %s\n", args, o.ConfigYAML, *o.Exporter, o.Mode, o.LogLevel, !o.DisableHotRestart, o.LogFormat)
		for _, w := range o.Warnings {
			b.WriteString("warning: " + w + "\n")
		}
		golden.Check(t, "exporter-"+name, b.Bytes())
		o.ConfigYAML = strings.ReplaceAll(o.ConfigYAML, "/etc/m.yml", write(t, "m.yml", "mappings: []\n"))
		c, err := loadConfig(o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := check(o, c, io.Discard); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestExporterFlagErrors(t *testing.T) {
	for args, want := range map[string]string{
		"--statsd.listen-udp :1 -c f":                                   "--statsd.listen-udp is a flag of statsd_exporter and -c is not; use flags of one program",
		"--mode=validate --no-check-config":                             "--no-check-config is a flag of statsd_exporter and --mode is not",
		"--log.level info --log-level info":                             "--log.level is a flag of statsd_exporter and --log-level is not",
		"--statsd.listen-upd :1":                                        "Couldn't find match for argument: --statsd.listen-upd; did you mean --statsd.listen-udp?",
		"--check-config more":                                           "Couldn't find match for argument: more",
		"--statsd.mapping-config":                                       "Missing a value for this argument: --statsd.mapping-config",
		"--statsd.cache-size x":                                         "Couldn't read argument value: --statsd.cache-size: ",
		"--statsd.cache-type fifo":                                      `--statsd.cache-type: "fifo" is not one of lru, random`,
		"--log.level trace":                                             `--log.level: "trace" is not one of debug, info, warn, error`,
		"--log.format text":                                             `--log.format: "text" is not one of logfmt, json`,
		"--web.listen-address 9102":                                     `--web.listen-address: "9102" is not host:port`,
		"--web.listen-address :http":                                    `--web.listen-address: ":http": port "http" is not in [0, 65535]`,
		"--statsd.listen-tcp :65536":                                    `--statsd.listen-tcp: ":65536": port "65536" is not in [0, 65535]`,
		"--statsd.listen-tcp= --statsd.listen-udp=":                     "at least one of --statsd.listen-udp, --statsd.listen-tcp and --statsd.listen-unixgram must not be empty",
		"--statsd.listen-unixgram /s --statsd.unixsocket-mode 778":      `--statsd.unixsocket-mode: "778" is not an octal mode in [0, 777]`,
		"--statsd.read-buffer 1":                                        "--statsd.read-buffer: 1 is neither 0 nor in [1024, 1073741824]",
		"--statsd.relay.address h":                                      `--statsd.relay.address: "h" is not host:port`,
		"--statsd.relay.address " + strings.Repeat("h", 254) + ":1":     "--statsd.relay.address: a host of 254 bytes is longer than 253",
		"--statsd.relay.address h:0":                                    `--statsd.relay.address: "h:0": port 0 is not in [1, 65535]`,
		"--statsd.relay.address h:1 --statsd.relay.packet-length 63":    "--statsd.relay.packet-length: 63 is not in [64, 65507]",
		"--statsd.relay.address h:1 --statsd.relay.packet-length 65508": "--statsd.relay.packet-length: 65508 is not in [64, 65507]",
	} {
		_, _, err := parseOptions(strings.Fields(args), 4)
		if err == nil || !strings.HasPrefix(err.Error(), "error: "+want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// TestFlagFamilies: values of flags, and arguments after --, belong to no program.
func TestFlagFamilies(t *testing.T) {
	for args, want := range map[string][2]string{
		"":                                   {},
		"--help --version -h":                {},
		"-l debug --config-path --log.level": {"-l", ""},
		"--statsd.mapping-config -c":         {"", "--statsd.mapping-config"},
		"-ca.yaml --check-config=true":       {"-c", "--check-config"},
		"--unknown -z - --check-config":      {"", "--check-config"},
		"-- --check-config --mode":           {},
	} {
		if own, exporter := flagFamilies(strings.Fields(args)); own != want[0] || exporter != want[1] {
			t.Errorf("%s: %q and %q, want %q", args, own, exporter, want)
		}
	}
}

// FuzzExporterFlags: options that the parser accepts make a configuration that is
// read without an error, unless a file or an address is at fault.
func FuzzExporterFlags(f *testing.F) {
	f.Add("--statsd.listen-udp\n:1\n--log.level\ndebug")
	f.Add("--no-check-config\n--statsd.listen-unixgram=\"\\\xff\n-c")
	f.Add("--statsd.relay.address\nh\xff:8125\n--statsd.relay.packet-length=64")
	f.Add("--web.telemetry-path=\x00\n--\n--mode")
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, "\n")
		if strings.Contains(line, "listen") {
			flagFamilies(args) // a host name is not to be resolved
			return
		}
		o, _, err := parseOptions(args, 2)
		if err != nil || o.Exporter == nil || o.Exporter.MappingConfig != "" {
			return
		}
		if _, err := loadConfig(o); err != nil {
			t.Errorf("%q: %v\n%s", args, err, o.ConfigYAML)
		}
	})
}

func TestExporterModes(t *testing.T) {
	good, bad := write(t, "m.yml", "mappings: []\n"), write(t, "m.yml", "mappings: 1\n")
	for args, want := range map[string]string{
		"--check-config": "0 configuration 'command line' OK\n",
		"--check-config --statsd.mapping-config " + good: "0 configuration '" + good + "' OK\n",
		"--check-config --statsd.mapping-config " + bad:  "1 ",
		"--check-config --web.telemetry-path /stats":     "1 ",
		"--statsd.listen-udp :1 --version":               "0 statsd-admin  version: " + buildVersion() + "\n",
	} {
		status, stdout, stderr := invoke(nil, strings.Fields(args)...)
		if got := fmt.Sprint(status, " ", stdout); got != want {
			t.Errorf("%s: %q, %q; want %q", args, got, stderr, want)
		}
	}
	status, _, stderr := invoke(nil, "--statsd.mapping-config=/nowhere.yml")
	if want := "error: --statsd.mapping-config: stat /nowhere.yml: no such file or directory\n"; status != 1 || stderr != want {
		t.Errorf("status %d, %q; want %q", status, stderr, want)
	}
	if status, stdout, _ := invoke(nil, "--check-config", "--help"); status != 0 || !strings.Contains(stdout, "--statsd.mapping-config file") {
		t.Errorf("help: status %d\n%s", status, stdout)
	}
}

// TestExporterRuns: started with flags of statsd_exporter, the daemon has that
// program's paths, names, units and types.
func TestExporterRuns(t *testing.T) {
	for _, lifecycle := range []bool{true, false} {
		rules := write(t, "m.yml", "mappings: [{match: 'shop.*.time', name: shop_time, labels: {part: $1}}]\n")
		d := serving(t, strings.Fields(fmt.Sprintf("--web.listen-address=127.0.0.1:0 --statsd.listen-udp= --statsd.listen-tcp=127.0.0.1:0 --web.telemetry-path=/telemetry --web.enable-lifecycle=%t --statsd.mapping-config=%s", lifecycle, rules))...)
		request := func(method, path string) (int, string) {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), method, "http://"+d.Admin().Addr().String()+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			reply, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = reply.Body.Close() }()
			for name, values := range reply.Header {
				if len(values) != 1 {
					t.Errorf("%s: header field %s: %q", path, name, values)
				}
			}
			body, err := io.ReadAll(reply.Body)
			if err != nil {
				t.Fatal(err)
			}
			return reply.StatusCode, string(body)
		}
		if !lifecycle {
			for _, path := range []string{"/-/reload", "/-/quit"} {
				if status, body := request("POST", path); status != 404 {
					t.Errorf("%s without the flag: %d %s", path, status, body)
				}
			}
			if status, body := request("POST", "/quitquitquit"); status != 403 {
				t.Errorf("/quitquitquit without the flag: %d %s", status, body)
			}
			continue
		}
		conn, err := net.Dial("tcp", strings.TrimPrefix(d.StatsD().Listeners()[0].Address, "tcp://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte("shop.cart.time:250|ms\na-b:1|c\nc;d=e:1|c\n")); err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		// A series that begins during a scrape would make the answer depend on chance.
		waittest.Until(t, "three lines are applied and the connection has ended", func() bool {
			l := d.StatsD().Report().Listeners[0]
			return l.Applied == 3 && l.Connections == 0
		})
		d.Flusher().FlushNow()
		status, page := request("GET", "/telemetry")
		if status != 200 {
			t.Errorf("/telemetry: %d", status)
		}
		for _, want := range []string{
			"# TYPE shop_time summary\n", `shop_time_sum{part="cart"} 0.25` + "\n", "a_b{} 1\n", "c_d_e{} 1\n", "statsd_exporter_lines_total{} 3\n", "statsd_exporter_loaded_mappings{} 1\n",
			`statsd_exporter_build_info{goversion="` + runtime.Version() + `",goos="` + runtime.GOOS + `",goarch="` + runtime.GOARCH + `",version="unknown"`,
		} {
			if !strings.Contains(page, want) {
				t.Errorf("no %q in\n%s", want, page)
			}
		}
		if status, body := request("GET", "/metrics"); status != 200 || !strings.Contains(body, "shop_time_count") {
			t.Errorf("/metrics: %d %s", status, body)
		}
		for _, path := range []string{"/-/healthy", "/-/ready"} {
			if status, body := request("GET", path); status != 200 {
				t.Errorf("%s: %d %s", path, status, body)
			}
		}
		if status, body := request("GET", "/-/reload"); status != 400 {
			t.Errorf("GET /-/reload: %d %s", status, body)
		}
		if err := os.WriteFile(rules, []byte("mappings: [{match: a, name: b}, {match: c, name: d}]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if status, body := request("POST", "/-/reload"); status != 200 || len(d.StatsD().Mapping().Rules) != 2 {
			t.Errorf("/-/reload: %d %s", status, body)
		}
		if status, body := request("PUT", "/-/reload"); status != 200 {
			t.Errorf("PUT /-/reload: %d %s", status, body)
		}
		if status, body := request("PUT", "/quitquitquit"); status != 405 {
			t.Errorf("PUT /quitquitquit: %d %s", status, body)
		}
		if err := os.WriteFile(rules, []byte("mappings: 1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if status, body := request("POST", "/-/reload"); status != 400 || !strings.Contains(body, filepath.Base(rules)+":1:11") || len(d.StatsD().Mapping().Rules) != 2 {
			t.Errorf("/-/reload with a bad file: %d %s", status, body)
		}
		if status, body := request("PUT", "/-/quit"); status != 200 {
			t.Errorf("/-/quit: %d %s", status, body)
		}
	}
}

// TestExporterLogFormats: log lines are logfmt or JSON.
func TestExporterLogFormats(t *testing.T) {
	for format, want := range map[string]string{
		"logfmt": ` component=main msg="a \"b\""` + "\n",
		"json":   `,"component":"main","msg":"a \"b\""}` + "\n",
	} {
		o, _, err := parseOptions([]string{"--log.format", format}, 2)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		loggers, err := logctl.New(logctl.Config{Level: logctl.Info, Format: o.LogFormat, Output: &out})
		if err != nil {
			t.Fatal(err)
		}
		loggers.Logger("main").Warn(`a "b"`)
		if got := out.String(); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q, want %q at the end", format, got, want)
		}
	}
}
