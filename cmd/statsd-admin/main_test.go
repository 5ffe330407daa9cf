package main

import (
	"bytes"
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/server"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestExitStatus(t *testing.T) {
	good := write(t, "good.yaml", "admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}\n")
	bad := write(t, "bad.yaml", "admin:\n  mode: x\nextra: 1\n")
	format := write(t, "format.yaml", "application_log_config: {log_format: {text_format: '%v'}}\n")
	dir := t.TempDir()
	inDir := func(name string) string { return filepath.Join(dir, name) }
	logs := write(t, "logs.yaml", "admin: {access_log_path: "+inDir("a")+", address: {socket_address: {address: 127.0.0.1, port_value: 0}}}\n"+
		"cluster_manager: {outlier_detection: {event_log_path: "+inDir("b")+"}}\n"+
		"static_resources: {clusters: [{name: c, hosts: [{pipe: {path: /x}}], health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}, event_log_path: "+inDir("c")+"}]}]}\n")
	const (
		noAdmin  = "warning: no administration interface: admin.address is not set\n"
		noStatsD = "warning: no StatsD listener: the section statsd is missing\n"
	)
	tests := []struct {
		name           string
		args           []string
		status         int
		stdout, stderr string // exact, or a part when it begins with …
	}{
		{"help", []string{"--help"}, 0, "…usage: statsd-admin", ""},
		{"version", []string{"--version"}, 0, "…statsd-admin  version: ", ""},
		{"hot-restart-version", []string{"--hot-restart-version"}, 0, "", server.HotRestartVersion() + "\n"},
		{"hot-restart-disabled", []string{"--hot-restart-version", "--disable-hot-restart"}, 0, "", "disabled\n"},
		{"bad-flag", []string{"--mode", "x"}, 1, "", "error: unknown mode 'x'\n"},
		{"unknown-flag", []string{"--x"}, 1, "", "error: Couldn't find match for argument: --x\n"},
		{"validate", []string{"--mode", "validate", "-c", good}, 0, "configuration '" + good + "' OK\n", noStatsD},
		{"validate-complete", []string{"--mode", "validate", "-c", good, "--config-yaml", "statsd: {}"}, 0, "configuration '" + good + "' OK\n", ""},
		{"validate-default", []string{"--mode", "validate"}, 0, "configuration 'embedded default' OK\n", ""},
		{"validate-yaml", []string{"--mode", "validate", "--config-yaml", "{}"}, 0, "configuration '--config-yaml' OK\n", noAdmin + noStatsD},
		{"validate-clusters-only", []string{"--mode", "validate", "--config-yaml", "static_resources: {}"}, 0, "configuration '--config-yaml' OK\n", noAdmin},
		{"validate-bad", []string{"--mode", "validate", "-c", bad}, 1, "", "…" + bad + ":2:9: admin.mode: \"x\" is not one of full, read_only, metrics_only\n"},
		{"validate-clusters", []string{"--mode", "validate", "--config-yaml", "static_resources:\n  clusters:\n  - {name: a, connect_timeout: -1s}\n  - name: b\n    lb_policy: NO\nadmin: {mode: x}"}, 1, "",
			"warning: <config-yaml>:6:15: admin.mode: has no effect without admin.address\n" +
				"bootstrap: 3 errors in the configuration:\n" +
				"  <config-yaml>:3:15: static_resources.clusters[0].connect_timeout: cluster \"a\": -1s must be greater than 0s\n" +
				"  <config-yaml>:5:16: static_resources.clusters[1].lb_policy: cluster \"b\": \"NO\" is not a load balancing policy (ROUND_ROBIN, LEAST_REQUEST, RING_HASH, RANDOM, MAGLEV, CLUSTER_PROVIDED, LOAD_BALANCING_POLICY_CONFIG)\n" +
				"  <config-yaml>:6:15: admin.mode: \"x\" is not one of full, read_only, metrics_only\n"},
		{"validate-unknown", []string{"--mode", "validate", "--config-yaml", "extra: 1"}, 1, "", "…<config-yaml>:1:1: extra: unknown field"},
		{"validate-unknown-allowed", []string{"--mode", "validate", "--allow-unknown-static-fields", "--config-yaml", "extra: 1"}, 0, "configuration '--config-yaml' OK\n", noAdmin + noStatsD},
		{"validate-warns", []string{"--mode", "validate", "--allow-unknown-fields", "--config-yaml", "tracing: {a: 1}"}, 0, "configuration '--config-yaml' OK\n",
			"warning: --allow-unknown-fields is deprecated, use --allow-unknown-static-fields instead.\n" + noAdmin + noStatsD + "warning: <config-yaml>:1:10: tracing: accepted, but has no effect\n"},
		{"validate-refused-cluster", []string{"--mode", "validate", "--config-yaml", "static_resources:\n  clusters:\n  - {name: c, filters: [{name: f}]}"}, 1, "",
			noAdmin + "warning: <config-yaml>:3:5: static_resources.clusters[0].load_assignment: cluster \"c\": type STATIC without endpoints\n" +
				"<config-yaml>:3:6: upstream: cluster \"c\": filters: no network filter runs on upstream connections here\n"},
		{"validate-control-plane", []string{"--mode", "validate", "--config-yaml", "node: {id: a, cluster: b}\nlayered_runtime: {layers: [{name: x, rtds_layer: {name: x, rtds_config: " +
			"{api_config_source: {api_type: GRPC, grpc_services: [{envoy_grpc: {cluster_name: c}}]}}}}]}"}, 1, "", noAdmin + noStatsD + "xds: runtime layer \"x\": there is no static cluster \"c\"\n"},
		{"validate-access-log", []string{"--mode", "validate", "--config-yaml", "admin: {address: {pipe: {path: /nowhere/s}}, access_log: [{name: f, typed_config: {'@type': x.FileAccessLog, path: /dev/null, format: '%NOPE%'}}]}"},
			1, "", "…admin.access_log[0].typed_config: format: operator \"NOPE\""},
		{"validate-tokens", []string{"--mode", "validate", "--config-yaml", "admin: {address: {pipe: {path: /nowhere/s}}, auth: {tokens_file: /nowhere/tokens}}"}, 1, "", "…admin.auth.tokens_file: \"/nowhere/tokens\": no such file"},
		{"validate-logs", []string{"--mode", "validate", "-c", logs, "--log-path", inDir("d"), "--skip-deprecated-logs"}, 0, "configuration '" + logs + "' OK\n", ""},
		{"validate-log-path", []string{"--mode", "validate", "--log-path", inDir("none/log")}, 1, "", "error: log path \"" + inDir("none/log") + "\": its directory: no such file or directory\n"},
		{"validate-deprecated", []string{"--mode", "validate", "--config-yaml", "static_resources: {clusters: [{name: c, dns_refresh_rate: 1s, load_assignment: {cluster_name: c, endpoints: [{}]}}]}"}, 0,
			"configuration '--config-yaml' OK\n", "…option=envoy.config.cluster.v3.Cluster.dns_refresh_rate cluster=c"},
		{"no-file", []string{"--mode", "validate", "-c", "/nowhere.yaml"}, 1, "", "bootstrap: open /nowhere.yaml: no such file or directory\n"},
		{"two-log-formats", []string{"--mode", "validate", "-c", format, "--log-format", "%v"}, 1, "",
			"error: Only one of ApplicationLogConfig.log_format or CLI option --log-format can be specified.\n"},
		{"bad-config-serve", []string{"-c", bad}, 1, "", "…admin.mode"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			p := program{stdout: &stdout, stderr: &stderr, hardware: 2}
			if got := p.run(context.Background(), tt.args); got != tt.status {
				t.Errorf("status %d, want %d", got, tt.status)
			}
			for _, out := range []struct{ name, got, want string }{{"stdout", stdout.String(), tt.stdout}, {"stderr", stderr.String(), tt.stderr}} {
				part, isPart := strings.CutPrefix(out.want, "…")
				if isPart && !strings.Contains(out.got, part) || !isPart && out.got != out.want {
					t.Errorf("%s:\n%s\nwant:\n%s", out.name, out.got, out.want)
				}
			}
		})
	}
	if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
		t.Errorf("a check left %v, %v", made, err)
	}
}

// fakeDaemon runs until its context is done and counts calls.
type fakeDaemon struct {
	calls chan string
	hang  chan struct{} // closed: Run may return after its context is done
	err   error
	log   *slog.Logger
}

func (f *fakeDaemon) Logger(string) *slog.Logger { return f.log }

func (f *fakeDaemon) Run(ctx context.Context) error {
	<-ctx.Done()
	f.calls <- "stop"
	<-f.hang
	return f.err
}
func (f *fakeDaemon) ReopenLogs() { f.calls <- "reopen" }
func (f *fakeDaemon) Reload()     { f.calls <- "reload" }
func (f *fakeDaemon) Upgrade()    { f.calls <- "upgrade" }

func TestSignals(t *testing.T) {
	tests := []struct {
		name    string
		signals []os.Signal
		calls   string
		hang    bool
		status  int
		stderr  string
	}{
		{"term", []os.Signal{syscall.SIGTERM}, "stop", false, 0, ""},
		{"interrupt", []os.Signal{syscall.SIGINT}, "stop", false, 0, ""},
		{"all", []os.Signal{reopenSignal, syscall.SIGHUP, reopenSignal, syscall.SIGTERM}, "reopen reload reopen stop", false, 0, ""},
		{"twice", []os.Signal{syscall.SIGTERM, syscall.SIGINT}, "stop", true, 1, errForced.Error() + "\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := &fakeDaemon{calls: make(chan string, 10), hang: make(chan struct{})}
			if !tt.hang {
				close(d.hang)
			} else {
				defer close(d.hang)
			}
			signals := make(chan os.Signal)
			go func() { // each after the call that the one before leads to
				calls := strings.Fields(tt.calls)
				for i, s := range tt.signals {
					signals <- s
					if i < len(calls) {
						if got := <-d.calls; got != calls[i] {
							t.Errorf("call %s, want %s", got, calls[i])
						}
					}
				}
			}()
			var stdout, stderr bytes.Buffer
			p := program{stdout: &stdout, stderr: &stderr, hardware: 2, signals: signals,
				newDaemon: func(*Options, *bootstrap.Config) (daemon, error) { return d, nil }}
			if got := p.run(context.Background(), nil); got != tt.status {
				t.Errorf("status %d, want %d", got, tt.status)
			}
			if stderr.String() != tt.stderr {
				t.Errorf("stderr %q, want %q", stderr.String(), tt.stderr)
			}
		})
	}
}

// stuckDaemon is a daemon whose reloads wait.
type stuckDaemon struct {
	fakeDaemon
	wait chan struct{}
}

func (s *stuckDaemon) Reload() {
	s.calls <- "reload"
	<-s.wait
}

func (s *stuckDaemon) Upgrade() { panic(guardtest.Canary) }

// TestStopWhileAReloadWaits: a reload that waits for a disk keeps no signal from being
// handled, and neither does a panic. Of the reloads asked for meanwhile, one follows.
func TestStopWhileAReloadWaits(t *testing.T) {
	panics := guardtest.New(t)
	d := &stuckDaemon{fakeDaemon{calls: make(chan string), hang: make(chan struct{}), log: panics.Logger()}, make(chan struct{})}
	close(d.hang)
	signals, ended := make(chan os.Signal, 4), make(chan error)
	go func() { ended <- serve(t.Context(), d, signals) }()
	expect := func(want string) {
		t.Helper()
		if got := <-d.calls; got != want {
			t.Errorf("call %s, want %s", got, want)
		}
	}
	signals <- syscall.SIGHUP
	expect("reload")
	for range 4 {
		signals <- syscall.SIGHUP
	}
	signals <- upgradeSignal
	panics.Caught("signal")
	signals <- reopenSignal
	expect("reopen")
	d.wait <- struct{}{}
	expect("reload")
	signals <- syscall.SIGTERM
	expect("stop")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	close(d.wait)
}

func TestDaemonErrorsEndWithStatusOne(t *testing.T) {
	boom := errors.New("statsd: udp://127.0.0.1:8125: address already in use")
	d := &fakeDaemon{calls: make(chan string, 1), hang: make(chan struct{}), err: boom}
	close(d.hang)
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	var stderr bytes.Buffer
	p := program{stderr: &stderr, hardware: 2, signals: signals, newDaemon: func(*Options, *bootstrap.Config) (daemon, error) { return d, nil }}
	if got := p.run(context.Background(), nil); got != 1 || stderr.String() != boom.Error()+"\n" {
		t.Errorf("status %d, stderr %q", got, stderr.String())
	}
	p.newDaemon = func(*Options, *bootstrap.Config) (daemon, error) { return nil, boom }
	stderr.Reset()
	if got := p.run(context.Background(), nil); got != 1 || stderr.String() != boom.Error()+"\n" {
		t.Errorf("status %d, stderr %q", got, stderr.String())
	}
}

// TestBuiltBinary runs the real program: streams and exit statuses as a shell
// sees them.
func TestBuiltBinary(t *testing.T) {
	bin := programFor(t)
	bad := write(t, "bad.yaml", "statsd:\n  relay: [{targets: []}]\n")
	tests := []struct {
		args           []string
		status         int
		stdout, stderr string
	}{
		{[]string{"--mode", "validate"}, 0, "configuration 'embedded default' OK\n", ""},
		{[]string{"--mode", "validate", "-c", bad}, 1, "", "bootstrap: 1 error in the configuration:\n  " + bad + ":2:21: statsd.relay[0].targets: 0 targets; 1 to 256 are allowed\n"},
		{[]string{"--hot-restart-version"}, 0, "", server.HotRestartVersion() + "\n"},
		{[]string{"--mode", "x"}, 1, "", "error: unknown mode 'x'\n"},
	}
	for _, tt := range tests {
		var stdout, stderr bytes.Buffer
		cmd := exec.Command(bin, tt.args...)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
			t.Fatal(err)
		}
		if got := cmd.ProcessState.ExitCode(); got != tt.status || stdout.String() != tt.stdout || stderr.String() != tt.stderr {
			t.Errorf("%q: status %d, stdout %q, stderr %q", tt.args, got, stdout.String(), stderr.String())
		}
	}
}

// TestClockOfFilters: the first thing the program does is to set the clock that ends
// one match of a backtracking filter. The engine keeps it to itself, so the text of
// the program is all there is to look at.
func TestClockOfFilters(t *testing.T) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "main.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var first strings.Builder
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "main" {
			if err := printer.Fprint(&first, files, f.Body.List[0]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if want := "regexp2.SetTimeoutCheckPeriod(10 * time.Millisecond)"; first.String() != want {
		t.Errorf("main begins with %q, want %q", first.String(), want)
	}
}

func TestSourceOfABuild(t *testing.T) {
	commit, clean, modified := debug.BuildSetting{Key: "vcs.revision", Value: "abc"}, debug.BuildSetting{Key: "vcs.modified", Value: "false"}, debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	other := debug.BuildSetting{Key: "GOOS", Value: "true"}
	for _, tt := range []struct {
		settings  []debug.BuildSetting
		linked    string
		rev, tree string
	}{
		{nil, "unknown", "unknown", "Unknown"},
		{[]debug.BuildSetting{other}, "unknown", "unknown", "Unknown"},
		{[]debug.BuildSetting{commit, other, clean}, "unknown", "abc", "Clean"},
		{[]debug.BuildSetting{modified, commit}, "unknown", "abc", "Modified"},
		{[]debug.BuildSetting{commit, clean}, "v1", "v1", "Clean"},
	} {
		if rev, tree := sourceOf(tt.settings, tt.linked); rev != tt.rev || tree != tt.tree {
			t.Errorf("%v, %s: %s %s, want %s %s", tt.settings, tt.linked, rev, tree, tt.rev, tt.tree)
		}
	}
	if rev, tree := source(); rev == "" || tree == "" {
		t.Errorf("this program is of the commit %q, %q", rev, tree)
	}
}
