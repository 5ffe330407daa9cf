package eventlog

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/golden"
)

func TestEjections(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.log")
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 4, 5, 6, 7, 89e6, time.FixedZone("", 3600))
	for _, e := range []Ejection{
		{Kind: "consecutive_5xx", Eject: true, Enforced: true, Ejections: 1, SinceLast: -1},
		{Ejections: 1, SinceLast: 30500 * time.Millisecond, Enforced: true},
		{Kind: "success_rate", Eject: true, Enforced: true, Ejections: 2, SinceLast: 0, HostRate: 60, Average: 90.4, Threshold: 61.5},
		{Kind: "local_origin_success_rate", Eject: true, HostRate: -1, Average: -1, Threshold: -1},
		{Kind: "failure_percentage", Eject: true, HostRate: 2, Average: 1, Threshold: 1},
		{Kind: "local_origin_failure_percentage", Eject: true, HostRate: 0},
		{Kind: "consecutive_local_origin_failure", Eject: true},
	} {
		e.Time, e.Cluster, e.Host = at, "a \"b\"\n", "10.0.0.1:80"
		l.Ejection(&e)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "ejections", text)
}

func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.log")
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	l.Ejection(&Ejection{})
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := l.Reopen(); err != nil {
		t.Fatal(err)
	}
	l.Ejection(&Ejection{})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(path + ".1")
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(path)
	if err != nil || len(first) == 0 || string(first) != string(second) {
		t.Errorf("%q and %q, %v", first, second, err)
	}
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("a directory is a log")
	}
}
