package health

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// wild is a prober that panics.
type wild struct{}

func (wild) Probe(context.Context) Outcome { panic(guardtest.Canary) }
func (wild) Close()                        { panic(guardtest.Canary) }

// TestSec_24_ChecksPanic: checks that panic say nothing about their host, those
// who are told of checks and panic change nothing, and further checks are made.
func TestSec_24_ChecksPanic(t *testing.T) {
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
			Recovered: panics.Told,
		})
		if err != nil {
			t.Fatal(err)
		}
		h := testHost()
		k.Add(h)
		time.Sleep(2*set.Interval + set.Interval/2)
		synctest.Wait()
		k.Close()
		for range 3 {
			panics.Caught("health check")
			panics.Caught("what follows a health check")
		}
		panics.Caught("end of health checks")
		if reports.Load() != 3 || h.Flags() != 0 || c.attempt.get() != 3 {
			t.Errorf("%d reports, %d attempts, flags %s", reports.Load(), c.attempt.get(), h.Flags())
		}
	})
}
