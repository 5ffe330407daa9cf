package main

import (
	"context"
	"fmt"
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

// TestService runs the service and reads its counts on the administration port.
func TestService(t *testing.T) {
	s, err := newService("127.0.0.1:0", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.run(ctx) }()
	web, adminPort := "http://"+s.listener.Addr().String(), "http://"+s.stats.Admin().Addr().String()
	for range 5 {
		if got := get(t, web+"/hello"); got != "hello\n" {
			t.Fatalf("/hello: %q", got)
		}
	}
	get(t, web+"/broken")
	want := "http.ingress.downstream_rq_5xx: 1\nhttp.ingress.downstream_rq_total: 6\n"
	if got := get(t, adminPort+"/stats?filter=^http.ingress&type=Counters"); got != want {
		t.Errorf("counters: %q", got)
	}
	if got := get(t, adminPort+"/stats?filter=^http.ingress&type=Gauges"); got != "http.ingress.downstream_rq_active: 0\n" {
		t.Errorf("gauges: %q", got)
	}
	const count = "proxy_http_downstream_rq_time_count"
	metrics := ""
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		metrics = get(t, adminPort+"/stats/metrics?filter=downstream_rq_time")
		if strings.Contains(metrics, fmt.Sprintf("%s{proxy_http_conn_manager_prefix=\"ingress\"} 6\n", count)) {
			break
		}
	}
	if !strings.Contains(metrics, "} 6\n") {
		t.Errorf("the histogram: %s", metrics)
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("run: %v", err)
	}
}
