package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// ask sends a request over the socket and returns the status with the body, which
// is without its last line end.
func ask(t *testing.T, method, url string) string {
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
	return fmt.Sprint(resp.StatusCode, " ", strings.TrimSuffix(string(body), "\n"))
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
	const usage = "400 usage: /session_limit/set?to=<1..1000>"
	for _, step := range [][2]string{ // requests and answers
		{"GET /session_limit", "200 session limit: 100"},
		{"GET /session_limit/set?to=7", "400 Method GET not allowed, POST required."},
		{"POST /session_limit/set", usage},
		{"POST /session_limit/set?to=0", usage},
		{"POST /session_limit/set?to=1001", usage},
		{"POST /session_limit/set?to=x", usage},
		{"GET /session_limit", "200 session limit: 100"}, // nothing of it had an effect
		{"POST /session_limit/set?to=50", "200 OK"},
		{"GET /session_limit?format=json", `200 {"session_limit": 50}`},
		{"GET /stats?filter=^sessions", "200 sessions.limit: 50"},
	} {
		method, target, _ := strings.Cut(step[0], " ")
		if got := ask(t, method, port+target); got != step[1] {
			t.Errorf("%s: %q, want %q", step[0], got, step[1])
		}
	}
	for page, texts := range map[string][]string{
		"/help": {"  /session_limit: show how many sessions there may be\n", "  /session_limit/set (POST): change how many sessions there may be\n"},
		"/":     {"'session_limit'", "'session_limit/set'"},
	} {
		got := ask(t, "GET", port+page)
		for _, text := range texts {
			if !strings.Contains(got, text) {
				t.Errorf("%s does not show %q:\n%s", page, text, got)
			}
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
			if srv.Admin().Handle(e) == nil {
				t.Errorf("%s was added twice", e.Path)
			}
		}
	}
}
