package main

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/top"
)

// TestTopTriesAgain gives up if the server refuses, not if it fails.
func TestTopTriesAgain(t *testing.T) {
	for status, gives := range map[int]bool{400: true, 404: true, 499: true, 500: false, 503: false} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		_, err := (&client{address: s.URL}).body(t.Context(), "/stats")
		if _, refused := errors.AsType[*top.Refused](err); err == nil || refused != gives {
			t.Errorf("%d: %v, refused is %v", status, err, refused)
		}
		s.Close()
	}
}

// TestTopStreamsWithoutATimeLimit: the limit of requests, which ends the second one, does
// not end a stream that was there before.
func TestTopStreamsWithoutATimeLimit(t *testing.T) {
	expired := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		<-expired
		_, _ = io.WriteString(w, "end")
	}))
	defer s.Close()
	c := &client{address: s.URL, timeout: 100 * time.Millisecond}
	stream, err := c.body(t.Context(), "/stats/stream?interval_ms=1000")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	limited, err := c.body(t.Context(), "/clusters")
	if err == nil {
		_, err = io.ReadAll(limited)
		_ = limited.Close()
	}
	close(expired)
	if err == nil || !strings.Contains(err.Error(), "Timeout") {
		t.Errorf("a request without an end: %v", err)
	}
	if text, err := io.ReadAll(stream); string(text) != "end" || err != nil {
		t.Errorf("a stream ends with %q, %v", text, err)
	}
}

// TestTopGivesUpOnASilentServer: the time limit counts for a stream that does not begin.
func TestTopGivesUpOnASilentServer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	status, _, stderr := invoke(nil, "top", "--once", "--timeout", "20ms", "--address", silent.Addr().String())
	if status != 1 || !strings.HasSuffix(stderr, ": net/http: timeout awaiting response headers\n") {
		t.Errorf("status %d, %q", status, stderr)
	}
}

func TestUnicodeLocale(t *testing.T) {
	for env, want := range map[string]bool{"": false, "LANG=C": false, "LANG=en_US.UTF-8": true, "LANG=de_DE.utf8": true, "LC_ALL=C LANG=C.UTF-8": false, "LC_ALL=C.UTF-8 LANG=C": true,
		"LC_CTYPE=C.UTF-8 LANG=C": true, "LC_CTYPE=C LANG=C.UTF-8": false, "LANG=UTF-8.x": false, "LC_ALL= LANG=x.UTF-8": true} {
		got := unicodeLocale(func(name string) string {
			for _, pair := range strings.Fields(env) {
				if value, ok := strings.CutPrefix(pair, name+"="); ok {
					return value
				}
			}
			return ""
		})
		if got != want {
			t.Errorf("%s: %v", env, got)
		}
	}
}
