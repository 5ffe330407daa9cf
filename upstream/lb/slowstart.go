package lb

import (
	"math"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// SlowStart increases the traffic of hosts gradually after they were added or
// turned healthy: within the window, their weight is multiplied by
//
//	max(MinWeight, (age / Window)^(1 / Aggression))
//
// Hosts that are equally new share traffic as usual. The zero value disables
// slow start.
type SlowStart struct {
	Window time.Duration
	// Aggression is read at picks. Above 1, hosts get more traffic at the
	// beginning. Nil or a value that is not above 0 means 1.
	Aggression func() float64
	// MinWeight is the minimum factor, from 0 to 1.
	MinWeight float64
}

// leastFactor keeps weights above 0: a host without weight would never be picked and
// never age.
const leastFactor = 0.001

// slowStart records when hosts turned healthy. Only Update changes it.
type slowStart struct {
	c     SlowStart
	since map[*host.Host]time.Time // of healthy hosts; replaced, never changed
	now   time.Time                // of the update
}

// update records the hosts that are healthy now.
func (s *slowStart) update(sets []*host.Set) {
	s.now = time.Now()
	since := make(map[*host.Host]time.Time)
	for _, set := range sets {
		for _, h := range set.Healthy {
			at, known := s.since[h]
			if !known {
				at = s.now
			}
			since[h] = at
		}
	}
	s.since = since
}

// slows returns weight scaled by slow start, and whether any host is in its window.
func (s *slowStart) slows(hosts []*host.Host, weight func(uint32) float64) (func(uint32) float64, bool) {
	since := make([]time.Time, len(hosts)) // zero: long ago
	var last time.Time
	for i, h := range hosts {
		since[i] = s.since[h]
		if since[i].After(last) {
			last = since[i]
		}
	}
	if !s.now.Before(last.Add(s.c.Window)) {
		return weight, false
	}
	c := s.c
	return func(i uint32) float64 { return weight(i) * c.factor(time.Since(since[i])) }, true
}

// factor returns the factor for the weight of a host of that age.
func (s *SlowStart) factor(age time.Duration) float64 {
	f := float64(max(age, time.Millisecond)) / float64(s.Window)
	if s.Aggression != nil {
		if a := s.Aggression(); a > 0 && a != 1 {
			f = math.Pow(f, 1/a)
		}
	}
	return min(max(f, s.MinWeight, leastFactor), 1)
}
