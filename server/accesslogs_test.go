package server_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/jsonlines"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/accesslog"
	"github.com/statsd-admin/statsd-admin/server/logctl"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestLostLinesAreShown checks that lines lost by an unwritable access log are
// counted and logged while the server runs.
func TestLostLinesAreShown(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this system has no device that is always full")
	}
	var out lines
	loggers, err := logctl.New(logctl.Config{Level: logctl.Info, Output: &out})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Config{Admin: anyPort(), Loggers: loggers, AccessLogs: []accesslog.Config{
		{Path: "/dev/full", FlushBytes: 1, FlushInterval: time.Hour}, {Path: filepath.Join(t.TempDir(), "log"), FlushBytes: 1},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Error(err)
		}
	}()
	<-s.Initialized()
	failed := func() string {
		return string(s.Admin().Request("GET", "/stats?filter=^filesystem", nil).Body)
	}
	if got, want := failed(), "filesystem.write_dropped: 0\nfilesystem.write_failed: 0\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for range 3 {
		before := failed()
		waittest.Until(t, "a failed write is counted", func() bool {
			s.Flusher().FlushNow()
			return failed() != before
		})
	}
	if n := out.count("access logs are losing lines"); n == 0 || !strings.Contains(failed(), "write_dropped: 0\n") {
		t.Errorf("%d lines of the log tell of it; %s", n, failed())
	}
}

// TestFilteredAccessLog applies filters from a file, and runtime values that change
// them while the server runs.
func TestFilteredAccessLog(t *testing.T) {
	dir := t.TempDir()
	r := start(t, fromYAML(t, dir, `
admin:
  address: {socket_address: {address: 127.0.0.1, port_value: 0}}
  access_log:
  - name: f
    filter:
      and_filter:
        filters:
        - status_code_filter: {comparison: {op: GE, value: {default_value: 400, runtime_key: log.from}}}
        - header_filter: {header: {name: ":path", string_match: {prefix: /READY, ignore_case: true}, invert_match: true}}
    typed_config: {"@type": x.FileAccessLog, path: $DIR/log, format: "%REQ(:METHOD)% %REQ(:PATH)% %RESPONSE_CODE%\n"}
`))
	for _, path := range []string{"/ready?1", "/memory?1", "/none?1"} {
		r.get(t, path)
	}
	r.post(t, "/runtime_modify?log.from=200")
	for _, path := range []string{"/ready?2", "/memory?2", "/none?2"} {
		r.get(t, path)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "log"))
	want := "GET /none?1 404\nPOST /runtime_modify?log.from 200\nGET /memory?2 200\nGET /none?2 404\n"
	if err != nil || string(got) != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

// TestCutAnswersAreFlagged checks the flag of a truncated response in the access
// log.
func TestCutAnswersAreFlagged(t *testing.T) {
	dir := t.TempDir()
	r := start(t, fromYAML(t, dir, `
admin:
  address: {socket_address: {address: 127.0.0.1, port_value: 0}}
  access_log: [{name: f, typed_config: {"@type": x.FileAccessLog, path: $DIR/log, format: "%REQ(:PATH)% %RESPONSE_CODE% %RESPONSE_FLAGS%\n"}}]
`))
	r.Admin().Handle(admin.Endpoint{Path: "/long", Serve: func(w *admin.Response, _ *admin.Request) error {
		for {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return err
			}
		}
	}})
	ask := func(method string) {
		c, err := net.Dial("tcp", r.Admin().Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "%s /long HTTP/1.1\r\nhost: localhost\r\n\r\n", method)
		if _, err := c.Read(make([]byte, 100)); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
	logged := func(want string) {
		waittest.Until(t, want, func() bool {
			if err := r.ReopenLogs(); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(dir, "log"))
			return err == nil && strings.HasSuffix(string(got), want)
		})
	}
	r.get(t, "/memory")
	ask("HEAD") // which has nothing but a head
	logged("/memory 200 -\n/long 200 -\n")
	ask("GET")
	logged("/long 200 -\n/long 200 DC\n")
}

// TestWrongAccessLogsAreNamed checks that all errors in formats and filters are
// reported at once, with their positions.
func TestWrongAccessLogsAreNamed(t *testing.T) {
	_, err := bootstrap.Parse("a.yaml", []byte(`admin:
  address: {socket_address: {address: 127.0.0.1, port_value: 0}}
  access_log:
  - {name: a, typed_config: {"@type": x.StdoutAccessLog, log_format: {text_format: "%NO%"}}}
  - {name: b, typed_config: {"@type": x.StdoutAccessLog}}
  - name: c
    filter: {header_filter: {header: {name: Cookie}}}
    typed_config: {"@type": x.StdoutAccessLog}
`), bootstrap.Options{})
	var all *bootstrap.Errors
	if !errors.As(err, &all) || len(all.List) != 2 {
		t.Fatalf("%v", err)
	}
	for i, want := range []string{
		`a.yaml:4:29: admin.access_log[0].typed_config: format: operator "NO" is not one of `,
		`a.yaml:8:19: admin.access_log[2].typed_config: filter: header "Cookie" is secret and cannot be used`,
	} {
		if got := all.List[i].Error(); !strings.HasPrefix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestReopenLogsReopensFilesOfSinks rotates the file of a sink while counters grow.
func TestReopenLogsReopensFilesOfSinks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stats.jsonl")
	newSink := func(st *store.Store, _ *slog.Logger, _ server.ClusterDialer) (flush.Sink, error) {
		return jsonlines.New(jsonlines.Config{Options: sinkqueue.Options{Store: st}, Path: path})
	}
	r := start(t, server.Config{Admin: anyPort(), Flush: flush.Config{Interval: time.Minute}, Sinks: []server.NewSink{newSink}})
	line := func(path, want string) func() bool {
		return func() bool {
			data, err := os.ReadFile(path)
			return err == nil && strings.Contains(string(data), want)
		}
	}
	c := r.Store().Root().Counter("orders")
	c.Add(3)
	r.Flusher().FlushNow()
	waittest.Until(t, "the first increment", line(path, `"name":"orders","increment":3}`))
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := r.ReopenLogs(); err != nil {
		t.Fatal(err)
	}
	c.Add(4)
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if !line(path, `"name":"orders","increment":4}`)() || line(path+".1", `"increment":4}`)() {
		t.Error("the line of the last flush is not in the new file")
	}
}
