package main

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/server/logctl"
)

// childVariable makes the test binary behave as the program, with a daemon
// that only logs.
const childVariable = "STATSD_ADMIN_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		dir, err := os.MkdirTemp("", "")
		if err != nil {
			panic(err)
		}
		builtProgram = filepath.Join(dir, "statsd-admin")
		status := m.Run()
		_ = os.RemoveAll(dir)
		os.Exit(status)
	}
	p := program{stdout: os.Stdout, stderr: os.Stderr, hardware: 2, newDaemon: newLoggingDaemon}
	p.signals, p.notifyStop = notify()
	os.Exit(p.run(context.Background(), os.Args[1:]))
}

// builtProgram is the path of the program that tests share.
var builtProgram string

var buildProgram = sync.OnceValue(func() error {
	if out, err := exec.Command("go", "build", "-o", builtProgram, ".").CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
})

// programFor returns the path of the real program.
func programFor(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the program")
	}
	if err := buildProgram(); err != nil {
		t.Fatal(err)
	}
	return builtProgram
}

// loggingDaemon logs each call and reports on standard output when it is done.
type loggingDaemon struct {
	logs *logctl.Registry
	log  *slog.Logger
}

func newLoggingDaemon(o *Options, _ *bootstrap.Config) (daemon, error) {
	level, err := parseLevel(o.LogLevel)
	if err != nil {
		return nil, err
	}
	logs, err := logctl.New(logctl.Config{Level: level, Format: "%v", Path: o.LogPath})
	if err != nil {
		return nil, err
	}
	return &loggingDaemon{logs, logs.Logger("main")}, nil
}

func (d *loggingDaemon) say(what string) {
	d.log.Info(what)
	fmt.Println(what)
}

func (d *loggingDaemon) Run(ctx context.Context) error {
	d.say("running")
	<-ctx.Done()
	d.say("stopped")
	return d.logs.Close()
}

func (d *loggingDaemon) ReopenLogs() {
	if err := d.logs.Reopen(); err != nil {
		d.say(err.Error())
	}
	d.say("reopened")
}

func (d *loggingDaemon) Logger(name string) *slog.Logger { return d.logs.Logger(name) }

func (d *loggingDaemon) Reload()  { d.say("reloaded") }
func (d *loggingDaemon) Upgrade() { d.say("upgraded") }

// TestSignalsOfAProcess sends real signals to a real process: USR1 moves its
// log to a new file, HUP reloads, USR2 upgrades, TERM ends it
// cleanly.
func TestSignalsOfAProcess(t *testing.T) {
	for _, last := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		path := filepath.Join(t.TempDir(), "app.log")
		cmd := exec.Command(os.Args[0], "--log-path", path)
		cmd.Env = append(os.Environ(), childVariable+"=1")
		cmd.Stderr = os.Stderr
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(stdout)
		expect := func(want string) {
			t.Helper()
			if !lines.Scan() || lines.Text() != want {
				_ = cmd.Process.Kill()
				t.Fatalf("the process said %q, want %q", lines.Text(), want)
			}
		}
		expect("running")
		if err := os.Rename(path, path+".1"); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			signal syscall.Signal
			want   string
		}{{reopenSignal, "reopened"}, {syscall.SIGHUP, "reloaded"}, {upgradeSignal, "upgraded"}, {last, "stopped"}} {
			if err := cmd.Process.Signal(step.signal); err != nil {
				t.Fatal(err)
			}
			expect(step.want)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: exit %v", last, err)
		}
		for name, want := range map[string]string{path + ".1": "running\n", path: "reopened\nreloaded\nupgraded\nstopped\n"} {
			if got, err := os.ReadFile(name); err != nil || string(got) != want {
				t.Errorf("%s: %q, %v; want %q", filepath.Base(name), got, err, want)
			}
		}
	}
}

// TestSignalEndsABundle: a download that is interrupted leaves no part of an archive.
func TestSignalEndsABundle(t *testing.T) {
	began := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("PK"))
		_ = http.NewResponseController(w).Flush()
		close(began)
		<-r.Context().Done()
	}))
	defer server.Close()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "bundle", "--address", server.URL, filepath.Join(dir, "a.zip"))
	cmd.Env = append(os.Environ(), childVariable+"=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-began
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("the command ended with %v, want status 1", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
