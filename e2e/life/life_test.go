package life

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
	"github.com/statsd-admin/statsd-admin/e2e/need"
)

// run runs the binary until it exits and returns its output and status.
func run(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs strings.Builder
	cmd := exec.Command(need.Binary(t), args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestVersion(t *testing.T) {
	out, errs, status := run(t, "--version")
	if status != 0 || errs != "" || !strings.HasPrefix(out, "statsd-admin  version: ") || strings.Count(out, "/") != 4 {
		t.Errorf("status %d, %q, %q", status, out, errs)
	}
}

func TestValidate(t *testing.T) {
	const input = "statsd: {listeners: [{address: 'udp://127.0.0.1:8125'}]}\n"
	portless := write(t, "portless.yaml", input)
	if out, errs, status := run(t, "--mode", "validate", "-c", portless); status != 0 || out == "" || !strings.Contains(errs, "no administration interface") {
		t.Errorf("a file without an administration port: status %d, %q, %q", status, out, errs)
	}
	good := write(t, "good.yaml", input+"admin: {address: {socket_address: {address: 127.0.0.1, port_value: 9901}}}\n")
	if out, errs, status := run(t, "--mode", "validate", "-c", good); status != 0 || out != "configuration '"+good+"' OK\n" || errs != "" {
		t.Errorf("a good file: status %d, %q, %q", status, out, errs)
	}
	bad := write(t, "bad.yaml", `admin:
  mode: everything
stats_flush_interval: 400s
statsd:
  listeners:
  - address: carrier-pigeon://loft
  limits: {series: many}
nothing_like_it: 1
`)
	// The same errors prevent a start.
	for _, args := range [][]string{{"--mode", "validate", "-c", bad}, {"-c", bad}} {
		out, errs, status := run(t, args...)
		if status != 1 || out != "" {
			t.Errorf("%q: status %d, %q", args, status, out)
		}
		for _, at := range []string{"2:9: admin.mode", "3:23: stats_flush_interval", "6:14: statsd.listeners", "7:20: statsd.limits.series", "8:1: nothing_like_it"} {
			if !strings.Contains(errs, bad+":"+at) {
				t.Errorf("%q does not tell of %s:\n%s", args, at, errs)
			}
		}
	}
	if _, errs, status := run(t, "-c", "/nowhere/at/all.yaml"); status != 1 || !strings.Contains(errs, "/nowhere/at/all.yaml") {
		t.Errorf("no file: status %d, %q", status, errs)
	}
}

// alone returns a command that runs a program in a separate network namespace. If the
// system does not allow that, the ports of the embedded configuration must be free.
func alone(t *testing.T) []string {
	t.Helper()
	need.Program(t, "ip")
	unshare := need.Program(t, "unshare")
	for _, flags := range [][]string{{"--net"}, {"--user", "--map-root-user", "--net"}} {
		if exec.Command(unshare, append(flags, "ip", "link", "set", "lo", "up")...).Run() == nil {
			return append([]string{unshare}, flags...)
		}
	}
	for _, port := range []string{"9901", "8125"} {
		ln, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			need.Missing(t, "there is no network name space, and port "+port+" is taken")
		}
		_ = ln.Close()
	}
	return nil
}

// TestStartWithoutFile uses the embedded configuration, in a network namespace
// because its ports are fixed.
func TestStartWithoutFile(t *testing.T) {
	script := `
ip link set lo up 2>/dev/null || true
"$1" & daemon=$!
for i in $(seq 100); do
  exec 3<>/dev/tcp/127.0.0.1/9901 && break
  sleep 0.1
done 2>/dev/null
exec 4<>/dev/tcp/127.0.0.1/8125
printf 'tcp:1|c\n' >&4
exec 4>&-
printf 'udp:2|c' >/dev/udp/127.0.0.1/8125
for i in $(seq 100); do
  exec 3<>/dev/tcp/127.0.0.1/9901
  printf 'GET /stats?filter=%%5E(tcp|udp)%%24 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
  answer=$(cat <&3)
  case $answer in *tcp:*udp:*) break;; esac
  sleep 0.1
done
echo "$answer"
kill -TERM $daemon
wait $daemon
echo "status $?"
`
	line := append(alone(t), "bash", "-c", script, "bash", need.Binary(t))
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"HTTP/1.1 200 OK", "tcp: 1\nudp: 2\n", "status 0\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}

func TestPortTaken(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	_, tcpPort, _ := net.SplitHostPort(tcp.Addr().String())
	_, udpPort, _ := net.SplitHostPort(udp.LocalAddr().String())
	const admin = "admin: {address: {socket_address: {address: 127.0.0.1, port_value: %s}}}\n"
	const input = "statsd: {listeners: [{address: '%s'}]}\n"
	tests := []struct{ name, yaml, port, setting string }{
		{"admin", fmt.Sprintf(admin, tcpPort), tcpPort, "admin"},
		{"tcp", fmt.Sprintf(admin+input, "0", "tcp://127.0.0.1:"+tcpPort), tcpPort, "statsd"},
		{"udp", fmt.Sprintf(admin+input, "0", "udp://127.0.0.1:"+udpPort), udpPort, "statsd"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, errs, status := run(t, "--config-yaml", tt.yaml)
			last := errs[strings.LastIndexByte(strings.TrimSuffix(errs, "\n"), '\n')+1:]
			if status != 1 || out != "" {
				t.Errorf("status %d, %q, %q", status, out, errs)
			}
			for _, want := range []string{tt.port, tt.setting, "in use"} {
				if !strings.Contains(last, want) {
					t.Errorf("no %q in %q", want, last)
				}
			}
		})
	}
}

// TestCleanEnd stops the daemon in every possible way: the status is 0, and its
// sockets are removed.
func TestCleanEnd(t *testing.T) {
	ways := map[string]func(*daemon.Daemon){
		"SIGTERM": func(d *daemon.Daemon) { d.Signal(syscall.SIGTERM) },
		"SIGINT":  func(d *daemon.Daemon) { d.Signal(syscall.SIGINT) },
		"quit": func(d *daemon.Daemon) {
			if got := d.Post("/quitquitquit"); got != "OK\n" {
				panic(got)
			}
		},
	}
	for name, end := range ways {
		t.Run(name, func(t *testing.T) {
			d := daemon.Start(t, daemon.Config{})
			gram := d.Address("unixgram")
			end(d)
			if status := d.Exit(); status != 0 {
				t.Errorf("status %d", status)
			}
			if out := d.Output(); !strings.Contains(out, "shutting down") || strings.Contains(out, "panic") || strings.Contains(out, "[error]") {
				t.Errorf("it said:\n%s", out)
			}
			if _, err := os.Lstat(gram); err == nil {
				t.Errorf("%s is still there", gram)
			}
		})
	}
}

// rename moves a file like a log rotation.
func rename(t *testing.T, path string) string {
	t.Helper()
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	return path + ".1"
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestRotation moves the log and the access log away. SIGUSR1 and the endpoint for it
// start new ones, and nothing is lost in between.
func TestRotation(t *testing.T) {
	ways := map[string]func(*daemon.Daemon){
		"USR1":     func(d *daemon.Daemon) { d.Signal(syscall.SIGUSR1) },
		"endpoint": func(d *daemon.Daemon) { d.Post("/reopen_logs") },
	}
	for name, reopen := range ways {
		t.Run(name, func(t *testing.T) {
			d := daemon.Start(t, daemon.Config{
				YAML: `
admin:
  address: {socket_address: {address: 127.0.0.1, port_value: 0}}
  access_log_path: $DIR/access.log
`,
				Args: []string{"--log-path", "$DIR/app.log", "--file-flush-interval-msec", "10", "--log-level", "debug"},
			})
			access, app := filepath.Join(d.Dir, "access.log"), filepath.Join(d.Dir, "app.log")
			d.Get("/stats?filter=before")
			d.Until("the access log", func() bool { return strings.Contains(read(t, access), "/stats?filter=before") })
			oldAccess, oldApp := rename(t, access), rename(t, app)
			reopen(d)
			for _, path := range []string{access, app} {
				d.Until(path, func() bool { _, err := os.Stat(path); return err == nil })
			}
			d.Get("/stats?filter=after")
			d.Until("the new access log", func() bool { return strings.Contains(read(t, access), "/stats?filter=after") })
			d.Signal(syscall.SIGTERM)
			if status := d.Exit(); status != 0 {
				t.Errorf("status %d", status)
			}
			if old := read(t, oldAccess); strings.Contains(old, "filter=after") || strings.Count(old, "filter=before") != 1 {
				t.Errorf("the old access log:\n%s", old)
			}
			if strings.Contains(read(t, access), "filter=before") {
				t.Errorf("the new access log:\n%s", read(t, access))
			}
			if !strings.Contains(read(t, oldApp), "server is live") || !strings.Contains(read(t, app), "shutting down") {
				t.Errorf("the logs:\n%s---\n%s", read(t, oldApp), read(t, app))
			}
			if strings.Contains(d.Output(), "server is live") {
				t.Errorf("standard error has what belongs into the log:\n%s", d.Output())
			}
		})
	}
}

// TestReload changes a file of runtime values, which SIGHUP reloads.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	value := filepath.Join(dir, "key")
	set := func(v string) {
		if err := os.WriteFile(value, []byte(v), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set("1")
	d := daemon.Start(t, daemon.Config{YAML: fmt.Sprintf(`
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
layered_runtime: {layers: [{name: disk, disk_layer: {symlink_root: %q}}]}
`, dir)})
	shows := func(v string) func() bool {
		return func() bool { return strings.Contains(d.Get("/runtime"), fmt.Sprintf("%q", v)) }
	}
	d.Until("the value of the file", shows("1"))
	set("2")
	d.Signal(syscall.SIGHUP)
	d.Until("the new value of the file", shows("2"))
	if d.Ended() {
		t.Error("SIGHUP ended the daemon")
	}
}

// TestSideBySide runs two daemons. Each counts only its own traffic.
func TestSideBySide(t *testing.T) {
	a, b := daemon.Start(t, daemon.Config{}), daemon.Start(t, daemon.Config{})
	for i, d := range []*daemon.Daemon{a, b} {
		c, err := net.Dial("udp", d.Address("udp"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := fmt.Fprintf(c, "which:%d|c", i+1); err != nil {
			t.Fatal(err)
		}
	}
	a.Wait("its own", func(s daemon.Stats) bool { return s["which"] == "1" })
	b.Wait("its own", func(s daemon.Stats) bool { return s["which"] == "2" })
}

// TestRestartAfterCrash kills the daemon, which leaves its sockets behind, and starts
// another one in its place. A file that is not a socket prevents the start.
func TestRestartAfterCrash(t *testing.T) {
	first := daemon.Start(t, daemon.Config{})
	paths := map[string]string{}
	for _, name := range []string{"unixgram", "unixstream", "unixlines"} {
		paths[name] = first.Address(name)
	}
	first.Kill()
	if first.Exit() != -1 {
		t.Fatal("it ended by itself")
	}
	for _, path := range paths {
		if _, err := os.Lstat(path); err != nil {
			t.Fatalf("the test needs what is left: %v", err)
		}
	}
	second := daemon.Start(t, daemon.Config{Dir: first.Dir})
	c, err := net.Dial("unixgram", second.Address("unixgram"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "again:1|c"); err != nil {
		t.Fatal(err)
	}
	second.Wait("the line", func(s daemon.Stats) bool { return s["again"] == "1" })

	// The socket is in use: a third daemon must not take it.
	config := fmt.Sprintf("admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}\nstatsd: {listeners: [{address: 'unixgram://%s'}]}\n", paths["unixgram"])
	if _, errs, status := run(t, "--config-yaml", config); status != 1 || !strings.Contains(errs, paths["unixgram"]) {
		t.Errorf("a socket in use: status %d, %q", status, errs)
	}
	file := write(t, "precious", "text")
	config = strings.ReplaceAll(config, paths["unixgram"], file)
	if _, errs, status := run(t, "--config-yaml", config); status != 1 || !strings.Contains(errs, file) || read(t, file) != "text" {
		t.Errorf("a file in the way: status %d, %q", status, errs)
	}
}

// TestAdminAddressFile reads the port from the address file.
func TestAdminAddressFile(t *testing.T) {
	d := daemon.Start(t, daemon.Config{})
	text := read(t, filepath.Join(d.Dir, "admin.address"))
	if text != d.Admin || strings.HasSuffix(text, ":0") {
		t.Errorf("the file has %q", text)
	}
	resp, err := http.Get("http://" + text + "/ready")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); string(body) != "LIVE\n" {
		t.Errorf("/ready: %q", body)
	}
}

// TestProcessOptions starts the daemon with options about its process and checks
// their effect in the system and on the pages.
func TestProcessOptions(t *testing.T) {
	d := daemon.Start(t, daemon.Config{Args: []string{"--concurrency", "1", "--enable-core-dump"}})
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", d.PID))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(limits)) {
		if rest, ok := strings.CutPrefix(line, "Max core file size"); ok {
			if f := strings.Fields(rest); f[0] != f[1] {
				t.Errorf("core files are limited: %s", line)
			}
		}
	}
	if s := d.Stats(); s["server.concurrency"] != "1" {
		t.Errorf("server.concurrency is %q", s["server.concurrency"])
	}
	if got := d.Get("/ingest?listener=udp"); !strings.Contains(got, "readers: 1\n") {
		t.Errorf("one worker reads with more than one reader:\n%s", got)
	}
}
