package server_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/statsd"
	"github.com/statsd-admin/statsd-admin/statsd/mapping"
	"github.com/statsd-admin/statsd-admin/store"
)

// ruled is a running server whose mapping rules come from a file.
type ruled struct {
	*fed
	file string
}

func startRuled(t *testing.T, watch bool, rules string) *ruled {
	t.Helper()
	r := &ruled{fed: &fed{dir: t.TempDir()}}
	r.file = filepath.Join(r.dir, "m.yaml")
	r.write(t, rules)
	m := bootstrap.StatsDMapping{File: r.file}
	r.running = start(t, server.Config{
		Store: store.New(store.Options{Now: ingestTime}), Admin: anyPort(), Flush: flush.Config{Interval: time.Minute},
		StatsD: &statsd.Config{
			Now: ingestTime, Limits: statsd.Limits{MemoryBytes: 1 << 30},
			Listeners: []statsd.ListenerConfig{{Name: "lines", Address: "unixlines://" + filepath.Join(r.dir, "l")}},
		},
		StatsDRules: &server.RulesSource{File: r.file, Watch: watch, Load: m.Load},
	})
	return r
}

// write replaces the file as editors do.
func (r *ruled) write(t *testing.T, rules string) {
	t.Helper()
	next := r.file + ".next"
	if err := os.WriteFile(next, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, r.file); err != nil {
		t.Fatal(err)
	}
}

// stats returns the values of received stats whose name has a prefix.
func (r *ruled) stats(t *testing.T) string {
	t.Helper()
	return string(r.page(t, "/stats?format=text&filter=^(old|new)[.]"))
}

const (
	oldRules = "mappings: [{match: a.*, name: old, labels: {of: $1}}]\n"
	newRules = "mappings: [{match: a.*, name: new, labels: {of: $1}}, {match: a.b, name: never}, {match: unused, name: x, match_metric_type: gauge, scale: 0.5}, {match: '^n', match_type: regex, name: x, action: drop}]\n"
)

func TestMappingPages(t *testing.T) {
	r := startRuled(t, false, newRules)
	r.send(t, "unix", "l", "a.b:1|c\na.b:1:2|ms\nnoise:1|c\nother:1|c\n")
	for name, target := range map[string]string{
		"ingest-mapping":          "/ingest/mapping",
		"ingest-mapping-json":     "/ingest/mapping?format=json",
		"ingest-mapping-unused":   "/ingest/mapping?show=unused",
		"ingest-mapping-shadowed": "/ingest/mapping?show=shadowed",
		"ingest-mapping-explain":  "/ingest/explain?line=a.x:1|c",
		"ingest-mapping-scaled":   "/ingest/explain?line=unused:1|g",
		"ingest-mapping-dropped":  "/ingest/explain?format=json&line=nope:1|c",
	} {
		t.Run(name, func(t *testing.T) { golden.Check(t, name, r.page(t, target)) })
	}
	if reply := r.Admin().Request("GET", "/ingest/mapping?show=x", nil); reply.Status != 400 {
		t.Errorf("got status %d, want 400", reply.Status)
	}
}

// TestReloadOfMappingRules reloads by all means. A file with errors leaves the
// rules as they are.
func TestReloadOfMappingRules(t *testing.T) {
	for name, reload := range map[string]func(r *ruled) error{
		"signal": func(r *ruled) error { r.Reload(); return nil },
		"post": func(r *ruled) error {
			if reply := r.Admin().Request("POST", "/ingest/reload", nil); reply.Status != 200 {
				return fmt.Errorf("%d %s", reply.Status, reply.Body)
			}
			return nil
		},
		"watch": func(*ruled) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := startRuled(t, name == "watch", oldRules)
			r.send(t, "unix", "l", "a.b:1|c\n")
			r.write(t, newRules)
			if err := reload(r); err != nil {
				t.Fatal(err)
			}
			waittest.Until(t, "the rules are new", func() bool { return r.StatsD().Mapping().Reloads == 1 })
			r.send(t, "unix", "l", "a.b:2|c\n")
			if got, want := r.stats(t), "new.of.b: 2\nold.of.b: 1\n"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			r.write(t, "mappings: [{match: 'a b', name: x}]\n")
			err := reload(r)
			if name == "post" && (err == nil || !strings.Contains(err.Error(), r.file+":1:20: mappings[0].match: ")) {
				t.Errorf("got %v, want an error with its place", err)
			}
			waittest.Until(t, "the reload has failed", func() bool { return r.StatsD().Mapping().FailedReloads == 1 })
			r.send(t, "unix", "l", "a.b:2|c\n")
			if got, want := r.stats(t), "new.of.b: 4\nold.of.b: 1\n"; got != want {
				t.Errorf("after a bad file: got %q, want %q", got, want)
			}
			if page := string(r.page(t, "/ingest/mapping")); !strings.Contains(page, "failed_reloads: 1\n") || !strings.Contains(page, "error: ") {
				t.Errorf("the page does not show the error:\n%s", page)
			}
		})
	}
}

// TestReloadsUnderLoad replaces the file again and again, now and then by one with errors,
// while senders are busy. Each sample is counted once, by either file.
func TestReloadsUnderLoad(t *testing.T) {
	const senders, packets, reloads = 3, 400, 60
	r := startRuled(t, false, oldRules)
	var failed atomic.Int32
	var all sync.WaitGroup
	for range senders {
		all.Go(func() {
			conn, err := net.Dial("unix", filepath.Join(r.dir, "l"))
			if err != nil {
				failed.Add(1)
				return
			}
			defer conn.Close()
			for i := range packets {
				if _, err := fmt.Fprintf(conn, "a.x%d:1|c\na.y:2|c\n", i%7); err != nil {
					failed.Add(1)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	for n, more := 0, true; more || n < reloads; n++ {
		rules, want := []string{oldRules, newRules, "mappings: [{match: 'a b', name: x}]\n"}[n%3], 200
		if n%3 == 2 {
			want = 400
		}
		r.write(t, rules)
		if reply := r.Admin().Request("POST", "/ingest/reload", nil); reply.Status != want {
			t.Fatalf("reload %d: %d %s", n, reply.Status, reply.Body)
		}
		select {
		case <-done:
			more = false
		default:
		}
	}
	if failed.Load() > 0 {
		t.Fatal("not everything was sent")
	}
	waittest.Until(t, "all lines are read", func() bool { return r.StatsD().Report().Listeners[0].Lines == 2*senders*packets })
	sum := 0
	for line := range strings.Lines(r.stats(t)) {
		_, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		n, err := strconv.Atoi(value)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	if want := 3 * senders * packets; sum != want {
		t.Errorf("counted %d, want %d:\n%s", sum, want, r.stats(t))
	}
}

func TestMappingRulesAreChecked(t *testing.T) {
	wrong := errors.New("m.yaml:1:1: wrong")
	load := func() (*mapping.Rules, []string, error) { return nil, nil, wrong }
	if err := server.Check(server.Config{StatsD: &statsd.Config{}, StatsDRules: &server.RulesSource{Load: load}}); !errors.Is(err, wrong) {
		t.Errorf("got %v, want %v", err, wrong)
	}
}
