package health

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// wild is a prober that panics.
type wild struct{}

func (wild) Probe(context.Context) Outcome { panic("boom") }
func (wild) Close()                        { panic("bang") }

// TestSec_24_ChecksPanic: checks that panic say nothing about their host, those
// who are told of checks and panic change nothing, and further checks are made.
func TestSec_24_ChecksPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c counts
		var mu sync.Mutex
		var told []string
		reports := 0
		set := settings()
		k, err := New(Config{
			Check: set, Stats: c.stats(), Custom: func(*host.Host) Prober { return wild{} },
			Done: func(Report) {
				mu.Lock()
				defer mu.Unlock()
				reports++
				panic("heard enough")
			},
			Recovered: func(where string, v any) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, where+": "+v.(string))
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		h := testHost()
		k.Add(h)
		time.Sleep(2*set.Interval + set.Interval/2)
		synctest.Wait()
		k.Close()
		const check = "health check: boom what follows a health check: heard enough "
		if got, want := strings.Join(told, " "), strings.Repeat(check, 3)+"end of health checks: bang"; got != want {
			t.Errorf("told\n%s\nwant\n%s", got, want)
		}
		if reports != 3 || h.Flags() != 0 || c.attempt.get() != 3 {
			t.Errorf("%d reports, %d attempts, flags %s", reports, c.attempt.get(), h.Flags())
		}
	})
}
