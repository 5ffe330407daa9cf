package upstream

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// TestStatusesAtTheEdgesOfTheirClass counts the first and the last status of each class,
// and the statuses around them.
func TestStatusesAtTheEdgesOfTheirClass(t *testing.T) {
	r, c := started(t, nil, static("c", 1, ""))
	h := c.Sets()[0].Hosts[0]
	statuses := []int{0, 1, 99, 100, 199, 200, 299, 300, 399, 400, 499, 500, 599, 600}
	for _, status := range statuses {
		c.RequestStarted(h)
		c.RequestFinished(h, RequestEnd{Status: status})
	}
	want := map[string]uint64{"upstream_rq_completed": uint64(len(statuses) - 1)}
	for class := 1; class <= 5; class++ {
		want[fmt.Sprintf("upstream_rq_%dxx", class)] = 2
		want[fmt.Sprintf("upstream_rq_%d00", class)] = 1
		want[fmt.Sprintf("upstream_rq_%d99", class)] = 1
	}
	r.check("cluster.c.", want)
	v := r.st.View()
	defer v.Close()
	n := 0
	for s := v.ByName(store.Scalars); s.Next(); {
		if name := strings.TrimPrefix(s.Name(), "cluster.c.upstream_rq_"); strings.HasSuffix(name, "xx") || strings.Trim(name, "0123456789") == "" {
			n++
		}
	}
	if n != 15 {
		t.Errorf("%d statistics by status, want 15", n)
	}
	if good, bad := h.Stats.RqSuccess.Value(), h.Stats.RqError.Value(); good != 11 || bad != 3 {
		t.Errorf("host: %d good and %d bad answers, want 11 and 3", good, bad)
	}
}

// TestFailuresKeepOnlyAStatusOfErrors has resets with statuses around 500, which the host is
// charged with.
func TestFailuresKeepOnlyAStatusOfErrors(t *testing.T) {
	for status, ejected := range map[int]bool{200: true, 499: true, 500: true, 599: true, 600: false} {
		_, c := started(t, nil, static("c", 1, "outlier_detection: {consecutive_5xx: 1, max_ejection_percent: 100}"))
		h := c.Sets()[0].Hosts[0]
		c.RequestStarted(h)
		c.RequestFinished(h, RequestEnd{Status: status, RemoteReset: true})
		if got := h.Flags() != 0; got != ejected {
			t.Errorf("reset with status %d: flags %s", status, h.Flags())
		}
	}
}

// TestConnectionsAtTheirLimits has the limits of requests and of time, one below, at and
// beyond them, and none.
func TestConnectionsAtTheirLimits(t *testing.T) {
	reusable := func(c *Cluster, requests int, age time.Duration) (ok bool) {
		synctest.Test(t, func(t *testing.T) {
			conn := &Conn{cluster: c, made: time.Now()}
			conn.requests.Store(int64(requests))
			time.Sleep(age)
			ok = conn.Reusable()
		})
		return ok
	}
	for _, tt := range []struct {
		text     string
		requests int
		age      time.Duration
		want     bool
		counted  string
	}{
		{"", 1 << 40, 1 << 60, true, ""},
		{"max_requests_per_connection: 3", 2, time.Hour, true, ""},
		{"max_requests_per_connection: 3", 3, 0, false, "upstream_cx_max_requests"},
		{"max_requests_per_connection: 3", 4, 0, false, "upstream_cx_max_requests"},
		{"common_http_protocol_options: {max_connection_duration: 7s}", 1 << 40, 7*time.Second - 1, true, ""},
		{"common_http_protocol_options: {max_connection_duration: 7s}", 0, 7 * time.Second, false, "upstream_cx_max_duration_reached"},
		{"common_http_protocol_options: {max_connection_duration: 7s}", 0, 7*time.Second + 1, false, "upstream_cx_max_duration_reached"},
	} {
		r, c := started(t, nil, static("c", 1, tt.text))
		if got := reusable(c, tt.requests, tt.age); got != tt.want {
			t.Errorf("%q, %d requests in %v: reusable %v", tt.text, tt.requests, tt.age, got)
		}
		for _, name := range []string{"upstream_cx_max_requests", "upstream_cx_max_duration_reached"} {
			if got, want := r.value("cluster.c."+name), oneIf(name == tt.counted); got != want {
				t.Errorf("%q, %d requests in %v: %s = %d, want %d", tt.text, tt.requests, tt.age, name, got, want)
			}
		}
	}
}

func TestBufferSizesAtTheLimit(t *testing.T) {
	for text, want := range map[string]int{
		"": 1000, "per_connection_buffer_limit_bytes: 1001": 1000, "per_connection_buffer_limit_bytes: 1000": 1000,
		"per_connection_buffer_limit_bytes: 999": 999, "per_connection_buffer_limit_bytes: 1": 1, "per_connection_buffer_limit_bytes: 0": 1,
		"per_connection_buffer_limit_bytes: 4294967295": 1000,
	} {
		_, c := started(t, nil, static("c", 1, text))
		if got := c.BufferSize(1000); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// TestTimeoutBudgetsAtTheLimit has times that are negative, exceed the timeout, or are below
// a millisecond.
func TestTimeoutBudgetsAtTheLimit(t *testing.T) {
	for _, tt := range []struct {
		elapsed, timeout time.Duration
		want             float64
	}{
		{-time.Second, time.Second, 0}, {0, time.Second, 0}, {time.Second, time.Second, 100}, {3 * time.Second, time.Second, 300},
		{time.Second, time.Millisecond - 1, 0}, {time.Millisecond, time.Millisecond, 100}, {time.Second, -time.Second, 0},
	} {
		r, c := started(t, nil, static("c", 1, "track_timeout_budgets: true"))
		c.TimeoutBudget(tt.elapsed, tt.timeout)
		r.st.Flush(store.FlushOptions{})
		if s := c.Stats().TimeoutBudget.Snapshot().Cumulative; s.Count() != 1 || s.Sum() < tt.want || s.Sum() > tt.want*1.05 {
			t.Errorf("%v of %v: %v, want %v", tt.elapsed, tt.timeout, s.Sum(), tt.want)
		}
	}
}

// TestRatiosOfOneAskForNothing has each ratio of connections ahead of need at 1 and above.
func TestRatiosOfOneAskForNothing(t *testing.T) {
	for ratios, want := range map[[2]float64]bool{{1, 1}: false, {0, 0}: false, {1.01, 1}: true, {1, 1.01}: true, {2, 0}: true, {0, 2}: true} {
		for _, a := range asks(&config.Cluster{Preconnect: &config.Preconnect{PerUpstreamRatio: ratios[0], PredictiveRatio: ratios[1]}}) {
			if a.field == "preconnect_policy" && a.given != want {
				t.Errorf("%v: %v, want %v", ratios, a.given, want)
			}
		}
	}
}
