package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// await waits until a page has a text.
func await(t *testing.T, url, want string) {
	t.Helper()
	got := ""
	for end := time.Now().Add(30 * time.Second); !strings.Contains(got, want); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s shows %q, want %q", url, got, want)
		}
		got = get(t, url)
	}
}

// TestService runs the service and reads its counts on the administration port.
func TestService(t *testing.T) {
	s, err := newService("127.0.0.1:0", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	web, adminPort := "http://"+s.Listeners().List()[0].Addresses[0].String(), "http://"+s.Admin().Addr().String()
	for range 5 {
		if got := get(t, web+"/hello"); got != "hello\n" {
			t.Fatalf("/hello: %q", got)
		}
	}
	get(t, web+"/broken")
	want := "greetings: 5\nhttp.ingress.downstream_rq_5xx: 1\nhttp.ingress.downstream_rq_total: 6\n"
	await(t, adminPort+"/stats?filter=^greetings|ingress.downstream_rq_(5xx|total)$&type=Counters", want)
	await(t, adminPort+"/stats?filter=^http.ingress.downstream_rq&type=Gauges", "http.ingress.downstream_rq_active: 0\n")
	await(t, adminPort+"/stats/metrics?filter=downstream_rq_time", "proxy_http_downstream_rq_time_count{proxy_http_conn_manager_prefix=\"ingress\"} 6\n")
	stop()
	if err := <-done; err != nil {
		t.Errorf("run: %v", err)
	}
}
