package admin

import (
	"bytes"
	"compress/gzip"
	"io"
	"runtime/pprof"
	"runtime/trace"
	"slices"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
)

// TestDebugEndpoints checks that the endpoints exist only with the setting, and that
// each serves a profile.
func TestDebugEndpoints(t *testing.T) {
	off := newServer(t, Config{})
	on := newServer(t, Config{DebugEndpoints: true})
	n := 0
	for _, e := range on.Endpoints() {
		if !strings.HasPrefix(e.Path, "/debug/") {
			continue
		}
		n++
		if e.needs() != RoleAdmin {
			t.Errorf("%s needs the role %v", e.Path, e.needs())
		}
		for _, path := range []string{e.Path, e.Path + "/", "/debug/pprof/", "/debug/pprof", "/debug/pprof/cmdline", "/debug/vars"} {
			if got := off.Request("GET", path, nil).Status; got != 404 {
				t.Errorf("%s without the setting: status %d", path, got)
			}
		}
		path := e.Path
		if slices.ContainsFunc(e.Params, func(p Param) bool { return p.Name == "seconds" }) {
			path += "?seconds=0.01"
		}
		r := on.Request("GET", path, nil)
		if r.Status != 200 || r.Get("content-type") != typeBinary {
			t.Errorf("%s: status %d, %s", e.Path, r.Status, r.Get("content-type"))
			continue
		}
		if e.Path == "/debug/pprof/trace" {
			if !bytes.HasPrefix(r.Body, []byte("go 1.")) {
				t.Errorf("%s: %.20q", e.Path, r.Body)
			}
			continue
		}
		zip, err := gzip.NewReader(bytes.NewReader(r.Body))
		if err != nil {
			t.Errorf("%s: %v", e.Path, err)
			continue
		}
		if _, err := io.ReadAll(zip); err != nil {
			t.Errorf("%s: %v", e.Path, err)
		}
		if name := strings.TrimPrefix(e.Path, "/debug/pprof/"); slices.Contains(debugProfiles[:], name) {
			if r := on.Request("GET", e.Path, nil); r.Status != 200 || r.Get("content-type") != typeBinary || !bytes.HasPrefix(r.Body, []byte("\x1f\x8b")) {
				t.Errorf("%s: status %d, %s, %.10q", e.Path, r.Status, r.Get("content-type"), r.Body)
			}
		}
	}
	if n != len(debugProfiles)+2 {
		t.Errorf("%d endpoints", n)
	}
	for _, query := range []string{"seconds=0", "seconds=-1", "seconds=x", "seconds=601", "seconds=NaN", "seconds=Inf"} {
		if r := on.Request("GET", "/debug/pprof/profile?"+query, nil); r.Status != 400 {
			t.Errorf("%s: status %d", query, r.Status)
		}
	}
}

// TestOneRecordingAtATime checks that a second recording is refused, and that a
// recording stops with the server.
func TestOneRecordingAtATime(t *testing.T) {
	for path, other := range map[string]struct {
		start func(io.Writer) error
		stop  func()
	}{"/debug/pprof/profile": {pprof.StartCPUProfile, pprof.StopCPUProfile}, "/debug/pprof/trace": {trace.Start, trace.Stop}} {
		s := newServer(t, Config{DebugEndpoints: true})
		record := func(seconds string) *Reply { return s.Request("GET", path+"?seconds="+seconds, nil) }
		if err := other.start(io.Discard); err != nil {
			t.Fatal(err)
		}
		if r := record("600"); r.Status != 500 || string(r.Body) != "another recording is running\n" {
			t.Errorf("%s: the second recording: %d %q", path, r.Status, r.Body)
		}
		other.stop()
		ended := make(chan *Reply)
		go func() { ended <- record("600") }()
		waittest.Until(t, "the request", func() bool { return s.metrics.running.Value() == 1 })
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if r := <-ended; r.Err == nil && r.Status == 200 {
			t.Errorf("%s: a recording that the end of the server has ended looks complete", path)
		}
		s = newServer(t, Config{DebugEndpoints: true})
		if r := record("0.000001"); r.Status != 200 {
			t.Errorf("%s: the next recording: %d %q", path, r.Status, r.Body)
		}
	}
}
