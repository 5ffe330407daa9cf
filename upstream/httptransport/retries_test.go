package httptransport

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/upstream"
)

// TestRetriesThatSucceed: a retry succeeds if its answer is below 500, or if there is
// none above that.
func TestRetriesThatSucceed(t *testing.T) {
	for _, tt := range []struct{ status, success int }{{200, 1}, {404, 1}, {499, 1}, {500, 0}, {503, 0}} {
		var asked atomic.Int32
		r := newRig(t, "", serve(t, func(w http.ResponseWriter, _ *http.Request) {
			if asked.Add(1) == 1 {
				w.WriteHeader(503)
			} else {
				w.WriteHeader(tt.status)
			}
		}))
		r.Retries = 1
		if status := r.send(request(t, "GET", "")); status != tt.status {
			t.Errorf("status %d, want %d", status, tt.status)
		}
		r.check(map[string]int{"upstream_rq_retry": 1, "upstream_rq_retry_success": tt.success, "upstream_rq_retry_backoff_exponential": 1})
		r = newRig(t, "", serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(tt.status) }))
		r.Retries = 0
		r.send(request(t, "GET", ""))
		r.check(map[string]int{"upstream_rq_retry": 0, "upstream_rq_retry_success": 0, "upstream_rq_retry_backoff_exponential": 0})
	}
}

// TestRetriesAskOtherHosts: a retry draws up to four times until it has a host that was
// not asked. Of two hosts that are drawn at random, one request in sixteen asks the
// same host again, where every second would without these draws.
func TestRetriesAskOtherHosts(t *testing.T) {
	var mu sync.Mutex
	var asked []int
	var addresses []string
	for i := range 2 {
		addresses = append(addresses, serve(t, func(w http.ResponseWriter, _ *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, i)
			w.WriteHeader(503)
		}))
	}
	r := newRig(t, "lb_policy: RANDOM", addresses...)
	r.Retries = 1
	again := 0
	const requests = 60
	for range requests {
		r.send(request(t, "GET", ""))
		mu.Lock()
		if len(asked) != 2 {
			t.Fatalf("asked %v", asked)
		}
		if asked[0] == asked[1] {
			again++
		}
		asked = asked[:0]
		mu.Unlock()
	}
	if again > requests/4 {
		t.Errorf("%d of %d retries asked the same host", again, requests)
	}
}

// TestTendSortsOut: an idle connection that is past its time or closed ends, whatever its
// place in the list; the others stay in their order. Without an idle timeout time ends
// none.
func TestTendSortsOut(t *testing.T) {
	for _, tt := range []struct {
		fields         string
		old, closed    int // places of connections
		left, timeouts int
	}{
		{"", 0, 1, 1, 1}, {"", 2, 0, 1, 1}, {"", 1, 2, 1, 1}, {"common_http_protocol_options: {idle_timeout: 0s}", 0, 2, 2, 0},
	} {
		release, busy := make(chan struct{}), make(chan struct{}, 3)
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			busy <- struct{}{}
			<-release
		}))
		r := newRig(t, tt.fields, server.Listener.Addr().String())
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { r.send(request(t, "GET", "")) })
		}
		for range 3 {
			<-busy
		}
		close(release)
		wg.Wait()
		p, err := r.Pools.of(r.m.Cluster("c"), r.m.Cluster("c").Current(), r.host(0), upstream.DefaultPriority)
		if err != nil {
			t.Fatal(err)
		}
		waittest.Until(t, "idle connections", func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return len(p.idle) == 3
		})
		p.mu.Lock()
		p.idle[tt.old].since = time.Now().Add(-100 * time.Hour)
		lost := p.idle[tt.closed]
		var want []*client
		for i, c := range p.idle {
			if i != tt.closed && (i != tt.old || tt.timeouts == 0) {
				want = append(want, c)
			}
		}
		p.mu.Unlock()
		_ = lost.Close()
		p.tend()
		p.mu.Lock()
		if !slices.Equal(p.idle, want) || len(want) != tt.left || !p.tending {
			t.Errorf("%q: %d connections are left, want %d, tending %t", tt.fields, len(p.idle), tt.left, p.tending)
		}
		p.mu.Unlock()
		r.check(map[string]int{"upstream_cx_active": tt.left, "upstream_cx_idle_timeout": tt.timeouts, "upstream_cx_total": 3, "upstream_rq_pending_active": 0})
		server.Close()
	}
}
