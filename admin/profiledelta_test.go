package admin

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/pprof/profile"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
)

// Goroutines of these functions wait for the end of a channel.
//
//go:noinline
func waitStaying(end <-chan struct{}) { <-end }

//go:noinline
func waitLeaving(end <-chan struct{}) { <-end }

//go:noinline
func waitComing(end <-chan struct{}) { <-end }

// TestProfileOfAnInterval checks with go tool pprof that seconds gives the goroutines
// that come and go during the request, and that a second request is refused.
func TestProfileOfAnInterval(t *testing.T) {
	var reply, second *Reply
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{DebugEndpoints: true})
		staying, leaving, coming := make(chan struct{}), make(chan struct{}), make(chan struct{})
		label := func(value string, f func()) {
			go pprof.Do(t.Context(), pprof.Labels("side", value), func(context.Context) { f() })
		}
		for range 7 {
			go waitStaying(staying)
		}
		for range 3 {
			label("old", func() { waitLeaving(leaving) })
		}
		synctest.Wait()
		done := make(chan *Reply, 1)
		go func() { done <- s.Request("GET", "/debug/pprof/goroutine?seconds=2", nil) }()
		synctest.Wait()
		second = s.Request("GET", "/debug/pprof/goroutine?seconds=2", nil)
		close(leaving)
		for range 5 {
			label("new", func() { waitComing(coming) })
		}
		time.Sleep(time.Second)
		select {
		case r := <-done:
			t.Errorf("an answer after a second: %d %q", r.Status, r.Body)
		default:
		}
		reply = <-done
		close(coming)
		close(staying)
	})
	if second.Status != 500 || string(second.Body) != "another recording is running\n" {
		t.Errorf("the second request: %d %q", second.Status, second.Body)
	}
	if reply.Status != 200 || reply.Get("content-type") != typeBinary {
		t.Fatalf("%d %s %.200q", reply.Status, reply.Get("content-type"), reply.Body)
	}
	path := filepath.Join(t.TempDir(), "delta")
	if err := os.WriteFile(path, reply.Body, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "tool", "pprof", "-symbolize=none", "-traces", path).CombinedOutput()
	if err != nil {
		t.Fatalf("go tool pprof: %v\n%s", err, out)
	}
	for _, want := range []string{`Duration: 2s\b`, `side:\s+new\s+5 `, `side:\s+old\s+-3 `, `admin\.waitComing\b`, `admin\.waitLeaving\b`} {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	if bytes.Contains(out, []byte("waitStaying")) {
		t.Errorf("a stack without a change in\n%s", out)
	}
}

// TestProfileOfAnIntervalEndsWithTheServer checks that a waiting request does not
// delay a shutdown.
func TestProfileOfAnIntervalEndsWithTheServer(t *testing.T) {
	s := newServer(t, Config{DebugEndpoints: true})
	ended := make(chan *Reply)
	go func() { ended <- s.Request("GET", "/debug/pprof/heap?seconds=600&gc", nil) }()
	waittest.Until(t, "the request", func() bool { return s.metrics.running.Value() == 1 })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if r := <-ended; r.Err == nil && r.Status == 200 {
		t.Error("a profile that the end of the server has ended looks complete")
	}
}

// TestProfileOfAnIntervalEndsWithItsClient checks that a waiting request ends when its
// client goes, and that the next one is accepted.
func TestProfileOfAnIntervalEndsWithItsClient(t *testing.T) {
	s := start(t, Config{DebugEndpoints: true})
	for range 2 {
		nc, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(nc, "GET /debug/pprof/allocs?seconds=600 HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		waittest.Until(t, "the request", func() bool { return s.metrics.running.Value() == 1 })
		if err := nc.Close(); err != nil {
			t.Fatal(err)
		}
		waittest.Until(t, "the end of the request", func() bool { return s.metrics.running.Value() == 0 })
	}
	if r := s.Request("GET", "/debug/pprof/allocs?seconds=0.000001", nil); r.Status != 200 {
		t.Errorf("the next request: %d %q", r.Status, r.Body)
	}
}

// TestProfileDoesNotDifferFromItself has values that a floating-point number rounds.
func TestProfileDoesNotDifferFromItself(t *testing.T) {
	var heap bytes.Buffer
	if err := pprof.Lookup("heap").WriteTo(&heap, 0); err != nil {
		t.Fatal(err)
	}
	p, err := profile.ParseData(heap.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Sample {
		for i := range s.Value {
			s.Value[i] = 1<<62 + 1
		}
	}
	heap.Reset()
	if err := p.Write(&heap); err != nil {
		t.Fatal(err)
	}
	delta, err := deltaProfile(heap.Bytes(), heap.Bytes())
	if err != nil || len(p.Sample) == 0 || len(delta.Sample) > 0 || delta.TimeNanos != p.TimeNanos {
		t.Errorf("%d of %d samples: %v", len(delta.Sample), len(p.Sample), err)
	}
	if _, err := deltaProfile(heap.Bytes(), heap.Bytes()[:heap.Len()/2]); err == nil {
		t.Error("half a profile has a difference")
	}
}
