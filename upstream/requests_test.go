package upstream

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

var update = flag.Bool("update", false, "rewrite testdata/*.golden")

// everything is a cluster with all that brings statistics.
const everything = `lb_policy: RING_HASH
track_timeout_budgets: true
outlier_detection: {}
health_checks: [{timeout: 1s, interval: 1s, initial_jitter: 1000s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: {path: /}}]
circuit_breakers: {thresholds: [{track_remaining: true}]}
lb_subset_config: {fallback_policy: ANY_ENDPOINT, subset_selectors: [{keys: [v]}]}`

// TestStatNames compares the names that exist from the creation of a cluster.
func TestStatNames(t *testing.T) {
	for _, tt := range []struct{ name, text string }{
		{"plain", static("c", 1, "")},
		{"everything", static("c", 1, everything)},
		{"maglev", static("c", 1, "lb_policy: MAGLEV")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, nil)
			r.add(tt.text)
			var b strings.Builder
			v := r.st.View()
			defer v.Close()
			for _, sel := range []store.NameSet{store.Scalars, store.Histograms} {
				for c := v.ByName(sel); c.Next(); {
					b.WriteString(c.Kind().String() + " " + c.Name() + "\n")
				}
			}
			path := filepath.Join("testdata", "stats-"+tt.name+".golden")
			if *update {
				if err := os.MkdirAll("testdata", 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if b.String() != string(want) {
				t.Errorf("%s differs; got\n%s", path, b.String())
			}
		})
	}
}

func TestRequestsMoveEverything(t *testing.T) {
	type stats map[string]uint64
	tests := []struct {
		name string
		end  RequestEnd
		want stats // of the cluster
		none []string
		host [4]uint64 // success, error, timeout, total
	}{
		{"ok", RequestEnd{Status: 200}, stats{"upstream_rq_completed": 1, "upstream_rq_2xx": 1, "upstream_rq_200": 1}, []string{"canary.upstream_rq_200", "internal.upstream_rq_200"}, [4]uint64{1, 0, 0, 1}},
		{"not found", RequestEnd{Status: 404, Origin: InternalOrigin}, stats{"upstream_rq_4xx": 1, "upstream_rq_404": 1, "internal.upstream_rq_completed": 1, "internal.upstream_rq_4xx": 1, "internal.upstream_rq_404": 1}, []string{"external.upstream_rq_404"}, [4]uint64{1, 0, 0, 1}},
		{"error", RequestEnd{Status: 500, Origin: ExternalOrigin, Canary: true}, stats{"upstream_rq_5xx": 1, "canary.upstream_rq_completed": 1, "canary.upstream_rq_500": 1, "external.upstream_rq_5xx": 1}, nil, [4]uint64{0, 1, 0, 1}},
		{"grpc error", RequestEnd{Status: 200, Failed: true}, stats{"upstream_rq_200": 1}, nil, [4]uint64{0, 1, 0, 1}},
		{"retried", RequestEnd{Status: 503, Retried: true}, stats{"retry.upstream_rq_completed": 1, "retry.upstream_rq_5xx": 1, "retry.upstream_rq_503": 1}, []string{"upstream_rq_completed", "upstream_rq_503", "retry.upstream_rq_time"}, [4]uint64{0, 1, 0, 1}},
		{"timeout", RequestEnd{Status: 504, Timeout: true}, stats{"upstream_rq_timeout": 1, "upstream_rq_504": 1}, nil, [4]uint64{0, 1, 1, 1}},
		{"per try timeout", RequestEnd{PerTryTimeout: true}, stats{"upstream_rq_per_try_timeout": 1, "upstream_rq_timeout": 0}, []string{"upstream_rq_completed"}, [4]uint64{0, 1, 1, 1}},
		{"reset by peer", RequestEnd{Status: 503, RemoteReset: true}, stats{"upstream_rq_rx_reset": 1, "upstream_rq_503": 1}, nil, [4]uint64{0, 1, 0, 1}},
		{"reset by us", RequestEnd{LocalReset: true}, stats{"upstream_rq_tx_reset": 1}, nil, [4]uint64{0, 0, 0, 1}},
		{"connection lost", RequestEnd{Status: 503, ConnectionLost: true}, stats{"upstream_rq_503": 1, "upstream_rq_rx_reset": 0}, nil, [4]uint64{0, 1, 0, 1}},
		{"odd status", RequestEnd{Status: 700}, stats{"upstream_rq_completed": 1}, []string{"upstream_rq_700", "upstream_rq_7xx"}, [4]uint64{0, 1, 0, 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, c := started(t, nil, static("c", 1, ""))
			h := c.Sets()[0].Hosts[0]
			c.RequestStarted(h)
			if h.Stats.RqActive.Value() != 1 || r.value("cluster.c.upstream_rq_active") != 1 {
				t.Error("not active")
			}
			c.RequestFinished(h, tt.end)
			r.check("cluster.c.", tt.want)
			r.check("cluster.c.", stats{"upstream_rq_active": 0, "upstream_rq_total": 1})
			v := r.st.View()
			defer v.Close()
			for _, name := range tt.none {
				if _, ok := v.Find("cluster.c." + name); ok {
					t.Errorf("there is a %s", name)
				}
			}
			s := &h.Stats
			if got := [4]uint64{s.RqSuccess.Value(), s.RqError.Value(), s.RqTimeout.Value(), s.RqTotal.Value()}; got != tt.host || s.RqActive.Value() != 0 {
				t.Errorf("host: success, error, timeout, total = %v, want %v; active %d", got, tt.host, s.RqActive.Value())
			}
		})
	}
}

func TestZoneStatistics(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Local = &config.Locality{Zone: "here"} })
	r.Start()
	r.add(byEDS("c", ""))
	c := r.source("c")
	c.UpdateHosts(0, hosts(spec(1, inZone("there")), spec(2), spec(3, inZone("beyond"))))
	c.DiscoveryDone()
	for _, h := range c.Sets()[0].Hosts {
		for range 2 {
			c.RequestStarted(h)
			c.RequestFinished(h, RequestEnd{Status: 201, Took: 7 * time.Millisecond})
		}
	}
	r.check("cluster.c.", map[string]uint64{"zone.here.there.upstream_rq_201": 2, "zone.here.there.upstream_rq_2xx": 2, "zone.here.beyond.upstream_rq_201": 2, "upstream_rq_201": 6})
	v := r.st.View()
	defer v.Close()
	if _, ok := v.Find("cluster.c.zone.here.there.upstream_rq_completed"); ok {
		t.Error("zones have no completed")
	}
	if _, ok := v.Find("cluster.c.zone.here.there.upstream_rq_time"); !ok {
		t.Error("zones have a time")
	}
}

func TestConnections(t *testing.T) {
	r, c := started(t, nil, static("c", 2, ""))
	h, other := c.Sets()[0].Hosts[0], c.Sets()[0].Hosts[1]
	for range 3 {
		c.ConnStarted(h)
	}
	c.ConnEstablished(h, 3*time.Millisecond)
	c.ConnFailed(h, false)
	c.ConnFailed(h, true)
	c.ConnClosed(h, ConnEnd{Local: true, ActiveRequests: 1, Requests: 4, Lived: time.Second})
	c.ConnStarted(other)
	c.ConnEstablished(other, 0)
	c.ConnClosed(other, ConnEnd{})
	r.check("cluster.c.upstream_cx_", map[string]uint64{
		"total": 4, "active": 0, "connect_fail": 2, "connect_timeout": 1, "destroy": 4, "destroy_local": 2, "destroy_remote": 2,
		"destroy_with_active_rq": 1, "destroy_local_with_active_rq": 1, "destroy_remote_with_active_rq": 0,
	})
	if s := &h.Stats; s.CxTotal.Value() != 3 || s.CxConnectFail.Value() != 2 || s.CxActive.Value() != 0 {
		t.Errorf("host: %+v", s.All())
	}
	c.ConnStarted(h)
	c.ConnEstablished(h, -time.Second) // the clock was set back
	c.ConnClosed(h, ConnEnd{Requests: -1, Lived: -time.Second})
	r.st.Flush(store.FlushOptions{})
	s := c.Stats()
	for h, want := range map[*store.Histogram]float64{s.CxConnectMS: 3, s.CxLengthMS: 1000, s.RqPerCx: 4} {
		if s := h.Snapshot().Cumulative; s.Count() != 3 || s.Sum() < want || s.Sum() > want*1.05 {
			t.Errorf("%d values, sum %v, want 3 and %v", s.Count(), s.Sum(), want)
		}
	}
}

func TestTimeoutBudgets(t *testing.T) {
	for _, on := range []bool{true, false} {
		more := ""
		if on {
			more = "track_timeout_budgets: true"
		}
		r, c := started(t, nil, static("c", 1, more))
		for _, tt := range []struct{ elapsed, timeout time.Duration }{
			{50 * time.Millisecond, 200 * time.Millisecond}, {199 * time.Millisecond, 200 * time.Millisecond},
			{time.Second, 0}, {210 * time.Millisecond, 200 * time.Millisecond},
		} {
			c.TimeoutBudget(tt.elapsed, tt.timeout)
		}
		c.TimeoutBudgetPerTry(time.Second, 3*time.Second)
		r.st.Flush(store.FlushOptions{})
		if !on {
			if c.Stats().TimeoutBudget != nil {
				t.Error("a histogram that was not requested")
			}
			continue
		}
		s := c.Stats().TimeoutBudget.Snapshot().Cumulative
		if s.Count() != 4 || s.Sum() != 25+99+0+105 {
			t.Errorf("%d values, sum %v", s.Count(), s.Sum())
		}
		if s := c.Stats().TimeoutBudgetPerTry.Snapshot().Cumulative; s.Count() != 1 || s.Sum() != 33 {
			t.Errorf("per try: %d values, sum %v", s.Count(), s.Sum())
		}
	}
}

// TestConcurrentRequests: no count is lost, also while names are made.
func TestConcurrentRequests(t *testing.T) {
	r, c := started(t, nil, static("c", 1, ""))
	h := c.Sets()[0].Hosts[0]
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 1000 {
				c.RequestStarted(h)
				c.RequestFinished(h, RequestEnd{Status: 200 + i%5})
			}
		})
	}
	wg.Wait()
	r.check("cluster.c.", map[string]uint64{"upstream_rq_2xx": 4000, "upstream_rq_200": 800, "upstream_rq_204": 800, "upstream_rq_completed": 4000, "upstream_rq_active": 0})
}

func BenchmarkPickAndCount(b *testing.B) {
	_, c := started(b, nil, static("c", 10, ""))
	h, _ := c.Pick(nil)
	c.RequestStarted(h)
	c.RequestFinished(h, RequestEnd{Status: 200})
	run := func(b *testing.B, f func()) {
		b.Run("from=one", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
		b.Run("from=all", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					f()
				}
			})
		})
	}
	b.Run("what=pick", func(b *testing.B) { run(b, func() { c.Pick(nil) }) })
	b.Run("what=breaker", func(b *testing.B) {
		r := &c.Breakers(DefaultPriority).Requests
		run(b, func() {
			if r.TryTake() {
				r.Release()
			}
		})
	})
	b.Run("what=request", func(b *testing.B) {
		run(b, func() {
			h, _ := c.Pick(nil)
			c.RequestStarted(h)
			c.RequestFinished(h, RequestEnd{Status: 200, Took: time.Millisecond})
		})
	})
}

func BenchmarkManager(b *testing.B) {
	const clusters = 1000
	b.Run("what=build/clusters=1000", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			r := newRig(b, nil)
			r.Start()
			b.StartTimer()
			for i := range clusters {
				r.add(static("c"+strings.Repeat("x", i%7)+time.Duration(i).String(), 10, ""))
			}
		}
	})
	r := newRig(b, nil)
	r.Start()
	for i := range clusters {
		r.add(static("c"+time.Duration(i).String(), 10, ""))
	}
	b.Run("what=view/clusters=1000", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			n := 0
			r.Clusters(func(v *View) bool {
				v.Hosts(func(*host.Host) bool { n++; return true })
				return true
			})
			if n != clusters*10 {
				b.Fatal(n)
			}
		}
	})
}
