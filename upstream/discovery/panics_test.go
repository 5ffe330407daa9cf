package discovery

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/upstream"
)

// jumpy panics now and then.
type jumpy struct {
	*book
	calls int
}

func (j *jumpy) Lookup(ctx context.Context, q Query) ([]Record, error) {
	if j.calls++; j.calls%2 == 1 {
		panic(guardtest.Canary)
	}
	return j.book.Lookup(ctx, q)
}

// TestResolverPanics: a look-up that panics has failed; the next one is
// made as after any failure.
func TestResolverPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		b.put("a.example", "10.0.0.1")
		panics := guardtest.New(t)
		r := start(t, Config{Resolver: &jumpy{book: b}, Logger: panics.Logger()}, cluster("STRICT_DNS", "dns_refresh_rate: 10s\ndns_failure_refresh_rate: {base_interval: 1s, max_interval: 1s}", "a.example:80"), upstream.Hooks{})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		r.check(map[string]uint64{"update_attempt": 2, "update_failure": 1, "update_success": 1, "membership_total": 1})
		panics.Caught("look-up of a name")
	})
}

// TestReadyPanics panics in the callback for known hosts. The name must still be looked
// up again.
func TestReadyPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		b.put("a.example", "10.0.0.1")
		panics := guardtest.New(t)
		r := start(t, Config{Resolver: b, Logger: panics.Logger()}, cluster("STRICT_DNS", "dns_refresh_rate: 10s", "a.example:80"), upstream.Hooks{
			ClusterReady: func(*upstream.Cluster) { panic(guardtest.Canary) },
		})
		time.Sleep(15 * time.Second)
		synctest.Wait()
		r.check(map[string]uint64{"update_attempt": 2, "membership_total": 1})
		panics.Caught("end of discovery")
	})
}

// TestDelayPanics: what panics beside a look-up delays the next one to the
// usual time.
func TestDelayPanics(t *testing.T) {
	for _, kind := range []string{"STRICT_DNS", "LOGICAL_DNS"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBook()
				b.put("a.example", "10.0.0.1")
				panics := guardtest.New(t)
				asked := 0
				r := start(t, Config{Resolver: b, Logger: panics.Logger(), Rand: func() uint64 {
					if asked++; asked == 1 {
						panic(guardtest.Canary)
					}
					return 0
				}}, cluster(kind, "dns_refresh_rate: 10s\ndns_jitter: 1s", "a.example:80"), upstream.Hooks{})
				time.Sleep(15 * time.Second)
				synctest.Wait()
				panics.Caught("round of look-ups")
				r.check(map[string]uint64{"update_attempt": 2, "update_success": 2, "membership_total": 1})
			})
		})
	}
}
