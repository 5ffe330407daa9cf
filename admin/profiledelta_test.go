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

	"github.com/klauspost/compress/gzip"
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
	waitFor(t, "the request", func() bool { return s.metrics.running.Value() == 1 })
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
		waitFor(t, "the request", func() bool { return s.metrics.running.Value() == 1 })
		if err := nc.Close(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the end of the request", func() bool { return s.metrics.running.Value() == 0 })
	}
	if r := s.Request("GET", "/debug/pprof/allocs?seconds=0.000001", nil); r.Status != 200 {
		t.Errorf("the next request: %d %q", r.Status, r.Body)
	}
}

// FuzzDeltaProfile checks that no message makes the decoder panic, and that a profile
// does not differ from itself.
func FuzzDeltaProfile(f *testing.F) {
	var heap, plain bytes.Buffer
	if err := pprof.Lookup("heap").WriteTo(&heap, 0); err != nil {
		f.Fatal(err)
	}
	zip, err := gzip.NewReader(&heap)
	if err != nil {
		f.Fatal(err)
	}
	if _, err := plain.ReadFrom(zip); err != nil {
		f.Fatal(err)
	}
	f.Add(plain.Bytes())
	f.Add(plain.Bytes()[:plain.Len()/2])
	f.Add([]byte("\x12\x02\x08\x07"))         // a sample of an unknown location
	f.Add([]byte("\x2a\x04\x08\x01\x10\x09")) // a function whose name is no string
	f.Add([]byte("\x12\x03\x12\x01\x80"))     // a packed value without an end
	f.Fuzz(func(t *testing.T, msg []byte) {
		var b bytes.Buffer
		zip := gzip.NewWriter(&b)
		if _, err := zip.Write(msg); err != nil {
			t.Fatal(err)
		}
		if err := zip.Close(); err != nil {
			t.Fatal(err)
		}
		delta, err := deltaProfile(b.Bytes(), b.Bytes())
		if err != nil {
			return
		}
		if p, err := readProfile(delta); err != nil || len(p.samples) > 0 {
			t.Errorf("%d samples: %v", len(p.samples), err)
		}
	})
}
