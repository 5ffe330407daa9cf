package lb

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/upstreamtest"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

func TestSlowStartFactor(t *testing.T) {
	by := func(a float64) func() float64 { return func() float64 { return a } }
	for _, tt := range []struct {
		s    SlowStart
		age  time.Duration
		want float64
	}{
		{SlowStart{Window: 10 * time.Second, MinWeight: 0.1}, 0, 0.1},
		{SlowStart{Window: 10 * time.Second, MinWeight: 0.1}, 3 * time.Second, 0.3},
		{SlowStart{Window: 10 * time.Second, MinWeight: 0.1}, 10 * time.Second, 1},
		{SlowStart{Window: 10 * time.Second, MinWeight: 0.1, Aggression: by(2)}, 4 * time.Second, math.Sqrt(0.4)},
		{SlowStart{Window: 10 * time.Second, MinWeight: 0.1, Aggression: by(0.5)}, 4 * time.Second, 0.16},
		{SlowStart{Window: 10 * time.Second, MinWeight: 0.1, Aggression: by(-1)}, 4 * time.Second, 0.4},
		{SlowStart{Window: 10 * time.Second, MinWeight: 0.1, Aggression: by(math.NaN())}, 4 * time.Second, 0.4},
		{SlowStart{Window: 10 * time.Second, Aggression: by(0.01)}, time.Second, leastFactor},
		{SlowStart{Window: 10 * time.Second, MinWeight: 3}, time.Second, 1},
	} {
		if got := tt.s.factor(tt.age); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("%+v at %v: %v, want %v", tt.s, tt.age, got, tt.want)
		}
	}
}

// shareOfLast returns how many of n picks the last host got.
func shareOfLast(b Balancer, hosts []*host.Host, n int) int {
	return split(b, nil, n)[hosts[len(hosts)-1]]
}

func near(t *testing.T, what string, got, want int) {
	t.Helper()
	if got < want-2 || got > want+2 {
		t.Errorf("%s: the new host got %d picks, want %d", what, got, want)
	}
}

func TestNewHostsStartSlowly(t *testing.T) {
	for _, policy := range []config.Policy{config.RoundRobinPolicy, config.LeastRequestPolicy} {
		synctest.Test(t, func(t *testing.T) {
			hosts := []*host.Host{upstreamtest.Host(0), upstreamtest.Host(1)}
			b := New(Config{Policy: policy, Slots: -1, SlowStart: SlowStart{Window: 10 * time.Second, MinWeight: 0.1}})
			b.Update(priorities(hosts[:1]), nil)
			b.Pick(nil)
			time.Sleep(time.Minute)
			b.Update(priorities(hosts), nil)
			near(t, "new", shareOfLast(b, hosts, 1100), 100)
			time.Sleep(5 * time.Second)
			split(b, nil, 20) // the schedule notices when it comes to the host
			near(t, "half-way", shareOfLast(b, hosts, 900), 300)
			time.Sleep(5 * time.Second)
			split(b, nil, 20)
			near(t, "over", shareOfLast(b, hosts, 1000), 500)
			b.Update(priorities(hosts), nil)
			if policy == config.RoundRobinPolicy {
				if _, plain := b.(*weighted).table.Load().priorities[0].healthy.picker.(*rotatePicker); !plain {
					t.Error("hosts that are no longer new are still weighted")
				}
			}
			// A host that was sick begins again; the others do not.
			hosts[1].SetFlags(status.FailedActiveHC)
			b.Update(priorities(hosts), nil)
			time.Sleep(time.Minute)
			hosts[1].ClearFlags(status.FailedActiveHC)
			b.Update(priorities(hosts), nil)
			near(t, "healthy again", shareOfLast(b, hosts, 1100), 100)
		})
	}
}

func TestSlowStartKeepsWeights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := weightedHosts(1, 2)
		b := New(Config{Slots: -1, SlowStart: SlowStart{Window: 10 * time.Second, MinWeight: 0.5}})
		b.Update(priorities(hosts[:1]), nil)
		time.Sleep(time.Minute)
		b.Update(priorities(hosts), nil)
		near(t, "half of twice the weight", shareOfLast(b, hosts, 1000), 500)
		time.Sleep(time.Minute)
		split(b, nil, 20)
		near(t, "over", shareOfLast(b, hosts, 900), 600)
	})
}

func TestSlowStartWhereItIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := []*host.Host{upstreamtest.Host(0), upstreamtest.Host(1)}
		b := New(Config{Slots: -1, SlowStart: SlowStart{Window: 10 * time.Second, MinWeight: 0.1}})
		b.Update(priorities(hosts), nil)
		near(t, "both are new", shareOfLast(b, hosts, 1000), 500)

		b = New(Config{Policy: config.RandomPolicy, Rand: numbers(0, 0, 0, 1), SlowStart: SlowStart{Window: 10 * time.Second, MinWeight: 0.1}})
		b.Update(priorities(hosts[:1]), nil)
		time.Sleep(time.Minute)
		b.Update(priorities(hosts), nil)
		near(t, "random", shareOfLast(b, hosts, 1000), 500)
	})
}
