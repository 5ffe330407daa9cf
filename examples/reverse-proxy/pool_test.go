package main

import (
	"io"
	"net/http"
	"testing"
	"time"
)

// TestAllWhoWaitLearnThatAHostIsGone lets the only connection end while requests
// wait for it, and no other can be made.
func TestAllWhoWaitLearnThatAHostIsGone(t *testing.T) {
	b := newBackend(t, "127.0.0.1:0")
	release := make(chan struct{})
	defer close(release)
	b.does(func(http.ResponseWriter, *http.Request) { <-release })
	r := start(t, static("circuit_breakers: {thresholds: [{max_connections: 1}]}", b), web(Route{Timeout: Duration(25 * time.Second)}))
	const requests = 5
	answers := make(chan int, requests)
	ask := func() { code, _, _ := r.get(); answers <- code }
	go ask()
	eventually(t, "one is in flight", func() bool { return b.requests.Load() == 1 })
	for range requests - 1 {
		go ask()
	}
	eventually(t, "the others wait", func() bool { return r.stat("cluster.backend.upstream_rq_pending_active") == requests-1 })
	_ = b.Close()
	for range requests {
		if code := <-answers; code != 503 {
			t.Errorf("answer %d, want 503", code)
		}
	}
	eventually(t, "nothing is in flight", func() bool { return r.stat("http.web.downstream_rq_active") == 0 })
	r.want(map[string]int{
		"circuit_breakers.default.cx_open": 0, "circuit_breakers.default.rq_pending_open": 0, "circuit_breakers.default.rq_open": 0,
		"upstream_rq_active": 0, "upstream_rq_pending_active": 0, "upstream_cx_active": 0, "upstream_rq_503": requests,
	})
}

// TestListenersDoNotStarveEachOther lets two listeners ask in turns for the only
// connection that there may be.
func TestListenersDoNotStarveEachOther(t *testing.T) {
	b := newBackend(t, "127.0.0.1:0")
	other := web(Route{Timeout: Duration(25 * time.Second)})
	other.Name = "other"
	r := start(t, static("circuit_breakers: {thresholds: [{max_connections: 1}]}", b), web(Route{Timeout: Duration(25 * time.Second)}), other)
	for range 3 {
		for _, name := range []string{"web", "other"} {
			resp, err := r.client.Get("http://" + r.address(name))
			if err != nil {
				t.Fatal(err)
			}
			// A response that is abandoned costs the connection.
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				t.Error(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != 200 {
				t.Errorf("%s answers %d, want 200", name, resp.StatusCode)
			}
		}
	}
	r.want(map[string]int{"upstream_cx_total": 1, "upstream_cx_overflow": 0})
}

// TestPoolsAreLimited has two hosts and one pool: it goes to the other host as long as
// no request uses it.
func TestPoolsAreLimited(t *testing.T) {
	one, two := newBackend(t, "127.0.0.1:0"), newBackend(t, "127.0.0.1:0")
	release := make(chan struct{})
	r := start(t, static("circuit_breakers: {thresholds: [{max_connection_pools: 1, track_remaining: true}]}", one, two), web(Route{Timeout: Duration(25 * time.Second)}))
	for i := range 4 { // round robin
		if code, _, _ := r.get(); code != 200 {
			t.Errorf("request %d: answer %d, want 200", i, code)
		}
	}
	r.want(map[string]int{
		"upstream_cx_total": 4, "upstream_cx_active": 1, "upstream_cx_pool_overflow": 0,
		"circuit_breakers.default.cx_pool_open": 1, "circuit_breakers.default.remaining_cx_pools": 0,
	})
	for _, b := range []*backend{one, two} { // whichever is next
		b.does(func(http.ResponseWriter, *http.Request) { <-release })
	}
	answers := make(chan int, 1)
	go func() { code, _, _ := r.get(); answers <- code }()
	eventually(t, "one is in flight", func() bool { return one.requests.Load()+two.requests.Load() == 5 })
	if code, _, _ := r.get(); code != 503 {
		t.Errorf("answer %d while the pool is in use, want 503", code)
	}
	close(release)
	if code := <-answers; code != 200 {
		t.Errorf("answer %d, want 200", code)
	}
	r.want(map[string]int{"upstream_cx_total": 5, "upstream_cx_pool_overflow": 1})
	r.server.Clusters().CloseConnections()
	r.want(map[string]int{"circuit_breakers.default.cx_pool_open": 0, "circuit_breakers.default.remaining_cx_pools": 1})
}
