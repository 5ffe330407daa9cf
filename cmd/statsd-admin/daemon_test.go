package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/server"
)

// TestOptionsShowNoSecrets: a configuration on the command line is shown
// unless it holds a secret.
func TestOptionsShowNoSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"":              "",
		"node: {id: a}": "node: {id: a}",
		"admin: {auth: {tokens_file: /etc/tokens}}":                                                "admin: {auth: {tokens_file: /etc/tokens}}",
		"admin: {auth: {tokens: [{name: a, role: read, sha256: x}]}}":                              "[redacted]",
		"static_resources: {secrets: [{tls_certificate: {private_key: {inline_string: canary}}}]}": "[redacted]",
	} {
		if got := shownOptions(&Options{CommandLine: server.CommandLine{ConfigYAML: text}}).ConfigYAML; got != want {
			t.Errorf("%s is shown as %q", text, got)
		}
	}
}

// TestServerInfoShowsOptions: /server_info has each option as it was given, and the
// node as the command line leaves it. Between them the two lines set all options
// to other values than their defaults, which the first of the files shows.
func TestServerInfoShowsOptions(t *testing.T) {
	dir := t.TempDir()
	const config = `--config-yaml {"node":{"id":"n","cluster":"c","locality":{"region":"r","zone":"z","sub_zone":"s"},"metadata":{"a":"b"},"client_features":["f"]},"admin":{"address":{"socket_address":{"address":"127.0.0.1","port_value":0}}}}`
	for name, args := range map[string]string{
		"server-info-defaults": "",
		"server-info-epoch": "--mode init_only --base-id 7 --restart-epoch 2 --concurrency 3 --log-level warn --component-log-level admin:debug,main:trace " +
			"--log-format %v --log-path " + dir + "/log --admin-address-path " + dir + "/address --service-cluster cc --service-node nn --service-zone zz " +
			"--file-flush-interval-msec 250 --file-flush-min-size-kb 65 --drain-time-s 5 --drain-strategy immediate --parent-shutdown-time-s 6 " +
			"--socket-path " + dir + "/s --socket-mode 660 --base-id-path " + dir + "/base --skip-hot-restart-on-no-parent --stats-tag a:b --stats-tag c:d:e",
		"server-info-switches": "--use-dynamic-base-id --cpuset-threads --local-address-ip-version v6 --allow-unknown-static-fields --reject-unknown-dynamic-fields " +
			"--ignore-unknown-dynamic-fields --disable-extensions a/b,c/d --disable-hot-restart --enable-mutex-tracing --log-format-escaped " +
			"--enable-fine-grain-logging --enable-core-dump --skip-hot-restart-parent-stats --skip-deprecated-logs --log-stacktrace-single-entry --product-name envoy",
	} {
		d, _ := instanceOf(t, dir, strings.Fields(config+" "+args))
		reply := d.Admin().Request("GET", "/server_info", nil)
		const portable = `,
 "portable_counters": true` // under the race detector, for one
		golden.Check(t, name, []byte(strings.NewReplacer(dir, "DIR", buildVersion(), "VERSION", portable, "").Replace(string(reply.Body))))
	}
}

// TestDefaultOptions: the server knows what the options are without arguments.
func TestDefaultOptions(t *testing.T) {
	for _, product := range []string{"proxy", "envoy"} {
		d, log := instanceOf(t, t.TempDir(), []string{"--config-yaml", "{}", "--drain-time-s", "5", "--product-name", product})
		info := d.Info()
		want := info.DefaultCommandLine
		want.ConfigYAML, want.DrainTime, want.LogPath = "{}", 5*time.Second, log
		if diff := cmp.Diff(want, info.CommandLine); diff != "" || info.DefaultCommandLine.DrainTime != 10*time.Minute {
			t.Errorf("%s: %s", product, diff)
		}
	}
}

// instanceOf returns the daemon of a command line, which does not run, and where its
// log is: in dir unless the command line says otherwise.
func instanceOf(t *testing.T, dir string, args []string) (d instance, log string) {
	t.Helper()
	o, _, err := parseOptions(args, 4)
	if err != nil {
		t.Fatal(err)
	}
	if o.LogPath == "" {
		o.LogPath = filepath.Join(dir, "other")
	}
	c, err := loadConfig(o)
	if err != nil {
		t.Fatal(err)
	}
	made, err := newInstance(o, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return made.(instance), o.LogPath
}

// TestOptionsTakeEffect: what the command line asks for is what the daemon does.
func TestOptionsTakeEffect(t *testing.T) {
	layers := t.TempDir()
	if err := os.MkdirAll(filepath.Join(layers, "d", "cc"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(layers, "d", "cc", "key"), []byte("of cc"), 0o600); err != nil {
		t.Fatal(err)
	}
	const old = "static_resources: {clusters: [{name: a, type: STATIC, connect_timeout: 1s, hosts: [{socket_address: {address: 127.0.0.1, port_value: 1}}]}]}"
	disk := "layered_runtime: {layers: [{name: d, disk_layer: {symlink_root: " + layers + ", subdirectory: d, append_service_cluster: true}}]}"
	for _, tt := range []struct {
		args     string
		config   string
		requests []string // all answers together must have the wanted texts; log: the log
		want     []string
		not      []string
	}{
		{"", "", []string{"GET /stats/metrics?filter=server.concurrency"}, []string{"proxy_server_concurrency{} "}, nil},
		{"--stats-tag tier:web", "", []string{"GET /stats/metrics?filter=server.concurrency"}, []string{`proxy_server_concurrency{tier="web"} `}, nil},
		{"--product-name envoy", "", []string{"GET /stats/metrics?filter=server.concurrency", "GET /help"}, []string{"envoy_server_concurrency{} ", "  /stats/prometheus: "}, nil},
		{"", "", []string{"POST /stats/recentlookups/enable", "GET /stats/recentlookups"}, []string{"   Count Lookup\n"}, nil},
		{"--use-fake-symbol-table 1", "", []string{"POST /stats/recentlookups/enable", "GET /stats/recentlookups"}, []string{"Lookup tracking is not enabled."}, nil},
		{"-l error --component-log-level admin:debug,main:trace", "", []string{"POST /logging"}, []string{"  admin: debug\n", "  main: trace\n", "  runtime: error\n"}, nil},
		{"--enable-fine-grain-logging", "", []string{"POST /logging?level=info", "POST /logging"}, []string{"/admin/"}, []string{"  runtime: info\n"}},
		{"", "", []string{"GET /contention"}, []string{"Mutex contention tracing is not enabled."}, nil},
		{"--enable-mutex-tracing", "", []string{"GET /contention"}, []string{`"num_contentions": "`}, nil},
		{"", disk, []string{"GET /runtime"}, []string{`"cc.key": {`}, nil},
		{"--service-cluster cc", disk, []string{"GET /runtime"}, []string{`"key": {`, "of cc"}, []string{"cc.key"}},
		{"--allow-unknown-static-fields", "nothing: 1", []string{"GET /stats?filter=static_unknown", "log"}, []string{"server.static_unknown_fields: 1\n", "skipped unknown field: <config-yaml>:1:1: nothing"}, nil},
		{"--allow-unknown-fields", "tracing: {http: {}}", []string{"log"}, []string{"--allow-unknown-fields is deprecated", "tracing: accepted, but has no effect"}, nil},
		{"-l off --allow-unknown-fields", "tracing: {http: {}}", []string{"log"}, nil, []string{"deprecated", "tracing"}},
		{"--log-format <%n|%v>", "tracing: {http: {}}", []string{"log"}, []string{"<config|<config-yaml>:1:10: tracing: accepted, but has no effect>\n"}, nil},
		{"", "application_log_config: {log_format: {text_format: '<%n|%v>'}}\ntracing: {http: {}}", []string{"log"}, []string{"<config|<config-yaml>:2:10: tracing: accepted"}, nil},
		{"", old, []string{"log"}, []string{"option=envoy.api.v2.Cluster.hosts"}, nil},
		{"--skip-deprecated-logs", old, []string{"log"}, nil, []string{"option=envoy"}},
	} {
		const address = "admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}\n"
		d, log := instanceOf(t, t.TempDir(), append(strings.Fields(tt.args), "--config-yaml", tt.config+"\n"+address))
		var got string
		for _, r := range tt.requests {
			if r == "log" {
				b, err := os.ReadFile(log)
				if err != nil {
					t.Fatal(err)
				}
				got += string(b)
				continue
			}
			method, target, _ := strings.Cut(r, " ")
			got += string(d.Admin().Request(method, target, nil).Body)
		}
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s with %q: no %q in\n%s", tt.args, tt.config, want, got)
			}
		}
		for _, not := range tt.not {
			if strings.Contains(got, not) {
				t.Errorf("%s with %q: %q in\n%s", tt.args, tt.config, not, got)
			}
		}
	}
}

// TestDrainOptions checks the length of a drain and when connections are asked to
// close.
func TestDrainOptions(t *testing.T) {
	const config = `{"admin":{"address":{"socket_address":{"address":"127.0.0.1","port_value":0}}}}`
	for args, want := range map[string]bool{
		"--drain-time-s 4000000000":                            false, // nearly all of the time is to come
		"--drain-time-s 4000000000 --drain-strategy immediate": true,
		"--drain-time-s 0":                                     true,
	} {
		d, _ := instanceOf(t, t.TempDir(), append(strings.Fields(args), "--config-yaml", config))
		if reply := d.Admin().Request("POST", "/drain_listeners?graceful", nil); reply.Status != 200 {
			t.Errorf("%s: %d %s", args, reply.Status, reply.Body)
		}
		if got := d.Lifecycle().ShouldClose(true); got != want {
			t.Errorf("%s: connections are told to close: %t", args, got)
		}
	}
}

// TestInitOnlyEnds expects a daemon that only initializes to end by itself, and errors to
// prevent the start.
func TestInitOnlyEnds(t *testing.T) {
	dir := t.TempDir()
	d, _ := instanceOf(t, dir, []string{"--mode", "init_only", "--config-yaml", "admin: {" + onLoopback + "}"})
	if err := d.Run(context.Background()); err != nil {
		t.Error(err)
	}
	for text, want := range map[string][2]string{
		"stats_config: {stats_tags: [{tag_name: shoe_size}]}": {filepath.Join(dir, "log"), "stats_config.stats_tags: "},
		"node: {id: a}": {filepath.Join(dir, "none", "log"), "no such file or directory"},
	} {
		o, _, err := parseOptions([]string{"--config-yaml", text, "--log-path", want[0]}, 1)
		if err != nil {
			t.Fatal(err)
		}
		c, err := bootstrap.Load(bootstrap.Source{YAML: text}, bootstrap.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := newInstance(o, c, nil); err == nil || !strings.Contains(err.Error(), want[1]) {
			t.Errorf("%s: %v", text, err)
		}
		if err := check(o, c, io.Discard); err == nil || !strings.Contains(err.Error(), want[1]) {
			t.Errorf("check %s: %v", text, err)
		}
	}
	if _, err := newInstance(new(Options), mustLoad(t), []passedSocket{{name: "x"}}); err == nil {
		t.Error("a socket that nothing uses")
	}
}

func mustLoad(t *testing.T) *bootstrap.Config {
	t.Helper()
	c, err := bootstrap.Load(bootstrap.Source{YAML: "node: {id: a}"}, bootstrap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
