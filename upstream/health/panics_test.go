package health

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/internal/upstreamtest"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// wild is a prober that panics.
type wild struct{}

func (wild) Probe(context.Context) Outcome { panic(guardtest.Canary) }
func (wild) Close()                        { panic(guardtest.Canary) }

// TestChecksPanic panics in checks and in callbacks. Neither changes the host, and
// further checks run.
func TestChecksPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c counts
		panics := guardtest.New(t)
		var reports atomic.Int32
		set := settings()
		k, err := New(Config{
			Check: set, Stats: c.stats(), Custom: func(*host.Host) Prober { return wild{} },
			Done: func(Report) {
				reports.Add(1)
				panic(guardtest.Canary)
			},
			Logger: panics.Logger(),
		})
		if err != nil {
			t.Fatal(err)
		}
		h := upstreamtest.Host(1)
		k.Add(h)
		time.Sleep(2*set.Interval + set.Interval/2)
		synctest.Wait()
		k.Close()
		for range 3 {
			panics.Caught("health check")
			panics.Caught("what follows a health check")
		}
		panics.Caught("end of health checks")
		if reports.Load() != 3 || h.Flags() != 0 || c.attempt.Value() != 3 {
			t.Errorf("%d reports, %d attempts, flags %s", reports.Load(), c.attempt.Value(), h.Flags())
		}
	})
}

// TestConnectingPanics: a panic while the library connects says nothing
// about the host.
func TestConnectingPanics(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	panics := guardtest.New(t)
	wild := true
	p := proberFor(t, Config{
		Check: config.HealthCheck{Kind: config.HTTPCheck, HTTP: config.HTTPHealthCheck{Path: "/", Expected: []config.StatusRange{{Start: 200, End: 201}}}},
		Dial: func(ctx context.Context, _ *host.Host, a config.Address) (net.Conn, error) {
			if wild {
				panic(guardtest.Canary)
			}
			var d net.Dialer
			return d.DialContext(ctx, a.Network(), a.String())
		},
		Logger: panics.Logger(),
	}, hostAt(server.Listener.Addr().String()))
	if o := probe(t, p); o.Kind != Local {
		t.Errorf("a panic is %+v", o)
	}
	panics.Caught("connection of a health check")
	wild = false
	if o := probe(t, p); o.Kind != Passed {
		t.Errorf("the next check is %+v", o)
	}
}

// passing is a prober whose checks pass; it counts how often it is closed.
type passing struct{ closed *atomic.Int32 }

func (passing) Probe(context.Context) Outcome { return Outcome{Kind: Passed} }
func (c passing) Close()                      { c.closed.Add(1) }

// TestDelayPanics: what panics beside a check delays the next one to the
// usual time, and keeps none from being ended.
func TestDelayPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := guardtest.New(t)
		var c counts
		var closed atomic.Int32
		set := settings()
		set.IntervalJitter = time.Second
		asked := 0
		k, err := New(Config{
			Check: set, Stats: c.stats(), Custom: func(*host.Host) Prober { return passing{&closed} }, Logger: panics.Logger(),
			Rand: func() uint64 {
				if asked++; asked == 1 {
					panic(guardtest.Canary)
				}
				return 0
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		k.Add(upstreamtest.Host(1))
		time.Sleep(2*set.Interval + set.Interval/2)
		synctest.Wait()
		panics.Caught("round of health checks")
		if c.attempt.Value() != 3 {
			t.Errorf("%d attempts", c.attempt.Value())
		}
		k.Close()
		if closed.Load() != 1 {
			t.Errorf("closed %d times", closed.Load())
		}
	})
}
