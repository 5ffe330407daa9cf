//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestExporterRefusesPipe checks a mapping file without a writer.
func TestExporterRefusesPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := invoke(nil, "--check-config", "--statsd.mapping-config", pipe); status != 1 {
		t.Errorf("status %d, %q", status, stderr)
	}
}

// TestFilesOfTheCommandLineCanBePipes, as <(…) of a shell makes them, and end at a limit.
func TestFilesOfTheCommandLineCanBePipes(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() { _ = os.WriteFile(pipe, []byte("{port: 7}"), 0) }()
	if status, stdout, stderr := invoke(nil, "convert", "--from", "statsd", pipe); status != 0 || !strings.Contains(stdout, "udp://0.0.0.0:7") {
		t.Errorf("status %d, %q, %q", status, stdout, stderr)
	}
	for _, flags := range [][]string{{"--token-file", "/dev/zero"}, {"--cert", "/dev/zero", "--key", "/dev/zero"}, {"--ca", "/dev/zero"}} {
		status, _, stderr := invoke(nil, append([]string{"get", "/", "--address", "https://127.0.0.1:1"}, flags...)...)
		if status != 1 || stderr != "error: /dev/zero has more than 1048576 bytes\n" {
			t.Errorf("%s: status %d, %q", flags, status, stderr)
		}
	}
}

// TestSignalEndsProcessThatReadsPipe stops a process that waits for its configuration.
func TestSignalEndsProcessThatReadsPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "a.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "--config-path", pipe)
	cmd.Env, cmd.Stderr = append(os.Environ(), childVariable+"=1"), os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits until the process reads
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	hung := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
	defer hung.Stop()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(); got != syscall.SIGTERM {
		t.Errorf("the process ended by signal %v, want terminated", got)
	}
}
