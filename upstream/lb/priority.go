package lb

import "github.com/statsd-admin/statsd-admin/upstream/host"

// Loads is the share of traffic in percent of each priority, for its healthy
// and its degraded hosts. The sum is 100, or 0 if picks must fail.
type Loads struct {
	Healthy, Degraded []uint32
	// Panic reports for each priority whether it is in panic mode: health is
	// ignored and all hosts are eligible.
	Panic []bool
}

// ComputeLoads derives the loads from the health of the priorities. threshold is the
// panic threshold in percent; 0 disables panic.
func ComputeLoads(sets []*host.Set, threshold uint32) Loads {
	n := len(sets)
	l := Loads{Healthy: make([]uint32, n), Degraded: make([]uint32, n), Panic: make([]bool, n)}
	if n == 0 {
		return l
	}
	threshold = min(threshold, 100)
	health, degraded := make([]uint32, n), make([]uint32, n)
	var sum uint32
	for p, s := range sets {
		health[p], degraded[p] = setHealth(s)
		sum += health[p] + degraded[p]
	}
	total := min(sum, 100)
	if total > 0 {
		distribute(&l, health, degraded, total)
	}
	if total == 0 && threshold == 0 {
		l.Healthy[0] = 100
		return l
	}
	if total == 100 {
		return l
	}
	all := true
	for p, s := range sets {
		l.Panic[p] = panics(s, threshold)
		all = all && l.Panic[p]
	}
	if all {
		byCount(&l, sets)
	}
	return l
}

// setHealth returns the healthy and the degraded availability of a priority in
// percent, each at most 100.
func setHealth(s *host.Set) (healthy, degraded uint32) {
	count := func(hosts []*host.Host) uint64 {
		if s.WeightedHealth {
			return host.Weight(hosts)
		}
		return uint64(len(hosts))
	}
	all, out := count(s.Hosts), count(s.Excluded)
	if all <= out {
		return 0, 0
	}
	part := func(k uint64) uint32 { return uint32(min(100, uint64(s.Overprovisioning)*k/(all-out))) }
	return part(count(s.Healthy)), part(count(s.Degraded))
}

// distribute distributes 100 percent, first to healthy hosts, then to degraded ones.
// The rounding error goes to the first priority with a share.
func distribute(l *Loads, health, degraded []uint32, total uint32) {
	rest := uint32(100)
	give := func(loads, avail []uint32) {
		for p, a := range avail {
			loads[p] = min(rest, a*100/total)
			rest -= loads[p]
		}
	}
	give(l.Healthy, health)
	give(l.Degraded, degraded)
	if rest == 0 {
		return
	}
	for p, h := range health {
		if h > 0 {
			l.Healthy[p] += rest
			return
		}
	}
	for p, d := range degraded {
		if d > 0 {
			l.Degraded[p] += rest
			return
		}
	}
}

// panics reports whether too few hosts of s are available.
func panics(s *host.Set, threshold uint32) bool {
	n := len(s.Hosts) - len(s.Excluded)
	if n <= 0 {
		return threshold > 0
	}
	have := 100*float64(len(s.Healthy))/float64(n) + 100*float64(len(s.Degraded))/float64(n)
	return have < float64(threshold)
}

// byCount distributes the load by the number of hosts, regardless of health.
func byCount(l *Loads, sets []*host.Set) {
	clear(l.Healthy)
	clear(l.Degraded)
	var sum uint64
	for _, s := range sets {
		sum += uint64(len(s.Hosts))
	}
	if sum == 0 {
		l.Healthy[0] = 100
		return
	}
	rest, first := uint32(100), -1
	for p, s := range sets {
		if len(s.Hosts) == 0 {
			continue
		}
		if first < 0 {
			first = p
		}
		l.Healthy[p] = uint32(100 * uint64(len(s.Hosts)) / sum)
		rest -= l.Healthy[p]
	}
	l.Healthy[first] += rest
}

// choice is a priority and which of its two loads applies.
type choice struct {
	priority uint16
	degraded bool
	ok       bool
}

// choose returns the choice of a hash.
func (l *Loads) choose(hash uint64) choice {
	x := uint32(hash%100) + 1
	var sum uint32
	for p, load := range l.Healthy {
		if sum += load; x <= sum {
			return choice{uint16(p), false, true}
		}
	}
	for p, load := range l.Degraded {
		if sum += load; x <= sum {
			return choice{uint16(p), true, true}
		}
	}
	return choice{}
}

// choices holds the result of [Loads.choose] for each remainder of a hash by 100.
type choices [100]choice

func (l *Loads) table() *choices {
	var t choices
	for x := range t {
		t[x] = l.choose(uint64(x))
	}
	return &t
}
