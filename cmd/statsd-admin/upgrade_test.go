//go:build linux

package main

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/statsd-admin/statsd-admin/server"
)

// TestUpgradeOfAProcess installs other programs at the path of a running one and
// sends USR2: a program that fails changes nothing, and a working program
// takes over with all stats and connections.
func TestUpgradeOfAProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	dir := shortDir(t)
	build := func(name string) string {
		path := filepath.Join(dir, name)
		if out, err := exec.Command("go", "build", "-ldflags", "-X main.version="+name, "-o", path, ".").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return path
	}
	bin, next, broken := build("one"), build("two"), filepath.Join(dir, "broken")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho broken >&2\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	install := func(path string) {
		t.Helper()
		if err := os.Rename(path, bin); err != nil {
			t.Fatal(err)
		}
	}
	log := filepath.Join(dir, "log")
	p := startEpoch(t, bin, dir, 0, "--parent-shutdown-time-s", "1", "--log-path", log)
	c, err := net.Dial("unix", filepath.Join(dir, "l"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sent := 0
	send := func() {
		t.Helper()
		if _, err := fmt.Fprint(c, "sent:1|c\n"); err != nil {
			t.Fatal(err)
		}
		sent++
		p.Eventually("counts the line", func() bool {
			return p.Get("/stats?filter=^sent$") == fmt.Sprintf("sent: %d\n", sent)
		})
	}
	logged := func(text string) {
		t.Helper()
		p.Eventually("logs "+text, func() bool {
			b, err := os.ReadFile(log)
			return err == nil && strings.Contains(string(b), text)
		})
	}
	send()
	install(broken)
	p.Signal(syscall.SIGUSR2)
	logged("failed: exit status 3")
	send()
	install(next)
	p.Signal(syscall.SIGUSR2)
	t.Cleanup(func() {
		resp, err := http.Post("http://"+address(t, dir)+"/quitquitquit", "", nil)
		if err == nil {
			resp.Body.Close()
		}
	})
	p.Eventually("is replaced", func() bool { return strings.Contains(p.Get("/server_info"), "/two/") })
	p.End()
	send()
}

// address returns the address of the administration port, which is the same
// before and after an upgrade.
func address(t *testing.T, dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, "address-0"))
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// lines is the output of a log, a line for each write.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// TestUpgraderReapsSuccessors expects one successor at a time, and the log to say how it
// ended.
func TestUpgraderReapsSuccessors(t *testing.T) {
	log := make(lines, 10)
	u := newUpgrader(new(Options), slog.New(slog.NewTextHandler(log, nil)))
	logged := func(want string) {
		t.Helper()
		if got := <-log; !strings.Contains(got, want) {
			t.Errorf("logged %q, want %q", got, want)
		}
	}
	if own, err := os.Executable(); u.executable != own || u.refusal != nil || err != nil {
		t.Errorf("%q, %v", u.executable, u.refusal)
	}
	u.executable = filepath.Join(t.TempDir(), "none")
	u.upgrade()
	logged("upgrade failed: ")
	gate := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	u.executable, u.args = "/bin/sh", []string{"-c", "cat " + gate}
	u.upgrade()
	logged("upgrade: started process ")
	u.upgrade()
	logged("upgrade refused: a successor is running")
	if err := os.WriteFile(gate, nil, 0); err != nil { // once cat reads
		t.Fatal(err)
	}
	logged(" has stopped")
	cmd := exec.Command("/bin/sh", "-c", "exit 3")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	other := &upgrader{logger: u.logger, running: true}
	other.wait(cmd)
	logged(" failed: exit status 3")
	if other.running {
		t.Error("a successor that has ended counts as running")
	}
	for want, o := range map[string]Options{
		"upgrade refused: hot restarts are disabled":   {CommandLine: server.CommandLine{DisableHotRestart: true}},
		"upgrade refused: --use-dynamic-base-id picks": {CommandLine: server.CommandLine{UseDynamicBaseID: true}},
	} {
		newUpgrader(&o, u.logger).upgrade()
		logged(want)
	}
}

func TestArgumentsOfSuccessors(t *testing.T) {
	for args, want := range map[string]string{
		"":                              "--restart-epoch=1",
		"--restart-epoch 4 -l debug":    "--restart-epoch 4 -l debug --restart-epoch=5",
		"--config-path a -- ignored -c": "--config-path a --restart-epoch=1",
		"--service-node -- --base-id=3": "--service-node -- --base-id=3 --restart-epoch=1",
	} {
		o, _, err := parseOptions(strings.Fields(args), 2)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(successorArgs(o), " "); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}

func TestEnvironmentOfSuccessors(t *testing.T) {
	env := []string{"A=b", "LISTEN_FDS=1", "LISTEN_FDNAMES=x", "LISTEN_PID=3", "NOTIFY_SOCKET=/n", "WATCHDOG_PID=3", "WATCHDOG_USEC=9"}
	if got, want := successorEnvironment(env), []string{"A=b", "NOTIFY_SOCKET=/n", "WATCHDOG_USEC=9"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
