package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

// ask sends a request over the socket and returns status and body.
func ask(t *testing.T, method, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// TestEndpoints runs the program and uses its endpoints as curl would.
func TestEndpoints(t *testing.T) {
	srv, err := newServer("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	port := "http://" + srv.Admin().Addr().String()
	const usage = "usage: /session_limit/set?to=<1..1000>\n"
	for _, tt := range []struct {
		method, target string
		status         int
		body           string // all of it, or a part when it begins with …
	}{
		{"GET", "/session_limit", 200, "session limit: 100\n"},
		{"GET", "/session_limit/set?to=7", 400, "…"},
		{"POST", "/session_limit/set", 400, usage},
		{"POST", "/session_limit/set?to=0", 400, usage},
		{"POST", "/session_limit/set?to=1001", 400, usage},
		{"POST", "/session_limit/set?to=x", 400, usage},
		{"GET", "/session_limit", 200, "session limit: 100\n"}, // nothing of it had an effect
		{"POST", "/session_limit/set?to=50", 200, "OK\n"},
		{"GET", "/session_limit?format=json", 200, "{\"session_limit\": 50}\n"},
		{"GET", "/stats?filter=^sessions", 200, "sessions.limit: 50\n"},
		{"GET", "/help", 200, "…  /session_limit: show how many sessions there may be\n"},
		{"GET", "/help", 200, "…  /session_limit/set (POST): change how many sessions there may be\n"},
		{"GET", "/", 200, "…'session_limit'"},
		{"GET", "/", 200, "…'session_limit/set'"},
	} {
		status, body := ask(t, tt.method, port+tt.target)
		part, isPart := strings.CutPrefix(tt.body, "…")
		if status != tt.status || isPart && !strings.Contains(body, part) || !isPart && body != tt.body {
			t.Errorf("%s %s: %d %q, want %d %q", tt.method, tt.target, status, body, tt.status, tt.body)
		}
	}
	audit := srv.Admin().Audit(100)
	if len(audit) == 0 || len(audit[0].Changes) != 1 || audit[0].Changes[0].Before != "100" || audit[0].Changes[0].After != "50" {
		t.Errorf("the audit log: %+v", audit)
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("run: %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestPathsAreTakenOnce: a second server of the process has endpoints of its
// own, but no server has the same one twice.
func TestPathsAreTakenOnce(t *testing.T) {
	for range 2 {
		srv, err := newServer("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range new(limit).endpoints() {
			if srv.Admin().Handle(e) {
				t.Errorf("%s was added twice", e.Path)
			}
		}
	}
}
