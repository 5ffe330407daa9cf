package httptransport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// TestDeadlinesOfTries: the first end of a try counts, and its kind is known.
func TestDeadlinesOfTries(t *testing.T) {
	if maxReplay != 64<<10 {
		t.Error("the limit of bodies that are sent again is documented as 64 KiB")
	}
	a := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") })
	for _, tt := range []struct {
		timeout, perTry, stream time.Duration
		want                    time.Duration // since the begin; 0 means never
		last, long              bool
	}{
		{0, 0, 0, 15 * time.Second, true, false},
		{-1, 0, 0, 0, true, false},
		{time.Minute, 0, 0, time.Minute, true, false},
		{time.Minute, time.Second, 0, time.Second, false, false},
		{-1, time.Second, 0, time.Second, false, false},
		{time.Second, time.Minute, 0, time.Second, true, false},
		{time.Minute, 0, 2 * time.Second, 2 * time.Second, false, true},
		{-1, 0, 2 * time.Second, 2 * time.Second, false, true},
		{time.Minute, 3 * time.Second, 2 * time.Second, 2 * time.Second, false, true},
		{time.Minute, time.Second, 2 * time.Second, time.Second, false, false},
		{time.Second, 0, 2 * time.Second, time.Second, true, false},
	} {
		r := newRig(t, fmt.Sprintf("common_http_protocol_options: {max_stream_duration: %gs}", tt.stream.Seconds()), a)
		r.Timeout, r.PerTryTimeout = tt.timeout, tt.perTry
		resp, err := r.RoundTrip(request(t, "GET", ""))
		if err != nil {
			t.Fatal(err)
		}
		try := resp.Body.(*answer).try
		begin := try.begin
		if tt.last {
			begin = try.x.start
		}
		want := time.Time{}
		if tt.want > 0 {
			want = begin.Add(tt.want)
		}
		if !try.until.Equal(want) || try.last != tt.last || try.long != tt.long {
			t.Errorf("%+v: %v after the begin, last %t, long %t", tt, try.until.Sub(begin), try.last, try.long)
		}
		resp.Body.Close()
	}
}

// TestDeadlinesAreKept while a request waits for a connection that others hold, and while
// it waits for its answer.
func TestDeadlinesAreKept(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	a := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
	const soon = 20 * time.Millisecond
	for _, tt := range []struct {
		name                    string
		timeout, perTry, stream time.Duration
		status                  int
		retry                   int // retries of a waiting request
		counter                 string
	}{
		{"timeout", soon, 0, 0, 504, 0, "upstream_rq_timeout"},
		{"try", time.Minute, soon, 0, 504, 1, "upstream_rq_per_try_timeout"},
		{"stream", time.Minute, 0, soon, 408, 0, "upstream_rq_max_duration_reached"},
	} {
		for _, waiting := range []bool{true, false} {
			r := newRig(t, fmt.Sprintf("common_http_protocol_options: {max_stream_duration: %gs}\ncircuit_breakers: {thresholds: [{max_connections: 1}]}", tt.stream.Seconds()), a)
			hd := r.m.Cluster("c")
			p, err := r.Pools.of(hd, hd.Current(), r.host(0), upstream.DefaultPriority)
			if err != nil {
				t.Fatal(err)
			}
			held, err := p.get(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if !waiting {
				p.put(held, true)
			}
			r.Timeout, r.PerTryTimeout, r.Retries = tt.timeout, tt.perTry, 1
			if got := r.send(request(t, "GET", "")); got != tt.status {
				t.Errorf("%s, waiting %t: status %d, want %d", tt.name, waiting, got, tt.status)
			}
			if waiting {
				p.put(held, false)
			} else if n := r.value(tt.counter); n < 1 || n > 1+tt.retry { // a retry may not get its connection in time
				t.Errorf("%s: %s = %d, want %d", tt.name, tt.counter, n, 1+tt.retry)
			}
			if tt.name == "stream" {
				r.check(map[string]int{tt.counter: 1})
			}
			r.check(map[string]int{"upstream_rq_retry": tt.retry, "upstream_rq_active": 0, "upstream_rq_pending_active": 0, "upstream_cx_active": 0})
		}
	}
}

// TestWaitBeforeARetry ends with the request, and when its client leaves.
func TestWaitBeforeARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for _, tt := range []struct {
			ctx            context.Context
			rest, d, waits time.Duration // rest of the request; 0 means for ever
		}{
			{t.Context(), 0, time.Hour, time.Hour}, {t.Context(), time.Minute, time.Hour, time.Minute}, {t.Context(), time.Minute, time.Second, time.Second}, {gone, 0, time.Hour, 0},
		} {
			begin := time.Now()
			x := &exchange{r: request(t, "GET", "").WithContext(tt.ctx)}
			if tt.rest > 0 {
				x.deadline = begin.Add(tt.rest)
			}
			if x.wait(tt.d); time.Since(begin) != tt.waits {
				t.Errorf("%v of %v: waited %v, want %v", tt.d, tt.rest, time.Since(begin), tt.waits)
			}
		}
	})
}

// TestRequestsThatAreStillWritten: one whose body was read to the end gets a moment.
func TestRequestsThatAreStillWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			ended bool
			after time.Duration // until it is written
			done  bool
			waits time.Duration
		}{
			{false, 0, true, 0}, {true, 0, true, 0}, {false, time.Millisecond, false, 0},
			{true, 99 * time.Millisecond, true, 99 * time.Millisecond}, {true, time.Second, false, 100 * time.Millisecond},
		} {
			a := &try{x: &exchange{body: new(replay)}, written: make(chan struct{})}
			a.x.body.ended.Store(tt.ended)
			if tt.after == 0 {
				close(a.written)
			} else {
				time.AfterFunc(tt.after, func() { close(a.written) })
			}
			begin := time.Now()
			if done := a.requestDone(); done != tt.done || time.Since(begin) != tt.waits {
				t.Errorf("%+v: %t after %v", tt, done, time.Since(begin))
			}
		}
		if !new(try).requestDone() {
			t.Error("a request without a body is not written")
		}
		time.Sleep(time.Second)
	})
}

// TestConnectionsGoToTheLongestWaiter, and to the next one if that has left.
func TestConnectionsGoToTheLongestWaiter(t *testing.T) {
	p, first, second, third := new(pool), make(chan *client, 1), make(chan *client, 1), make(chan *client, 1)
	p.waiting = []chan *client{first, second, third}
	c := new(client)
	p.give(c)
	p.leave(third)
	p.leave(first) // it got the connection meanwhile
	if len(first) != 0 || len(second) != 1 || <-second != c || len(third) != 0 || len(p.waiting) != 0 {
		t.Errorf("waiting: %d, %d, %d of %d", len(first), len(second), len(third), len(p.waiting))
	}
	p.give(nil)
	if len(p.idle) != 0 || p.tending {
		t.Errorf("%d idle connections", len(p.idle))
	}
}

// TestConnectionsServeTheirRequests, as many as the cluster allows.
func TestConnectionsServeTheirRequests(t *testing.T) {
	r := newRig(t, "max_requests_per_connection: 2", serve(t, func(http.ResponseWriter, *http.Request) {}))
	for i := range 5 {
		r.send(request(t, "GET", ""))
		r.check(map[string]int{"upstream_cx_total": i/2 + 1, "upstream_cx_max_requests": (i + 1) / 2, "upstream_cx_active": (i + 1) % 2})
	}
}

// TestPrioritiesHaveTheirBreakers: what one priority may not do the other one may.
func TestPrioritiesHaveTheirBreakers(t *testing.T) {
	for _, limit := range []string{"max_pending_requests: 0", "max_requests: 0", "max_retries: 0"} {
		for _, limited := range []upstream.Priority{upstream.DefaultPriority, upstream.HighPriority} {
			name := map[upstream.Priority]string{upstream.DefaultPriority: "DEFAULT", upstream.HighPriority: "HIGH"}[limited]
			for _, p := range []upstream.Priority{upstream.DefaultPriority, upstream.HighPriority} {
				var asked atomic.Int32
				r := newRig(t, "circuit_breakers: {thresholds: [{priority: "+name+", "+limit+"}]}", serve(t, func(w http.ResponseWriter, _ *http.Request) {
					if asked.Add(1) == 1 {
						w.WriteHeader(503)
					}
				}))
				r.Priority, r.Retries = p, 1
				want := 200
				if p == limited {
					want = 503
				}
				if got := r.send(request(t, "GET", "")); got != want {
					t.Errorf("%s of %s: status %d with priority %d, want %d", limit, name, got, p, want)
				}
			}
		}
	}
}

// TestPoolsOfOtherClustersStay: a breaker makes room among its own pools alone.
func TestPoolsOfOtherClustersStay(t *testing.T) {
	r := newRig(t, "circuit_breakers: {thresholds: [{max_connection_pools: 1}, {priority: HIGH, max_connection_pools: 1}]}", "127.0.0.1:1", "127.0.0.1:2")
	hd := r.m.Cluster("c")
	c := hd.Current()
	var ps Pools
	other := poolKey{new(host.Host), upstream.DefaultPriority}
	ps.byHost.Store(other, &pool{cluster: new(upstream.Cluster)})
	urgent, err := ps.of(hd, c, r.host(0), upstream.HighPriority)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if _, err := ps.of(hd, c, r.host(i), upstream.DefaultPriority); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := ps.byHost.Load(other); !ok {
		t.Error("the pool of another cluster was dropped")
	}
	if again, err := ps.of(hd, c, r.host(0), upstream.HighPriority); again != urgent || err != nil {
		t.Errorf("the pool of the other priority was dropped, %v", err)
	}
	urgent.use(1)
	if _, err := ps.of(hd, c, r.host(1), upstream.HighPriority); !errors.Is(err, upstream.ErrOverflow) {
		t.Errorf("%v, want an overflow", err)
	}
	ps.byHost.Delete(other)
	ps.Drain(nil, nil)
}
