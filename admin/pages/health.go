package pages

import (
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// health counts the clusters by the state of their hosts.
type health struct {
	at        time.Time
	clusters  int
	unhealthy int // clusters with an unhealthy host
	degraded  int // clusters with a degraded host and no unhealthy one
	hosts     int
	bad       int // unhealthy hosts
}

// healthAge is how long the counts are shown before they are made again. Every page
// shows them, and a walk over all hosts of 10,000 clusters takes milliseconds.
const healthAge = 5 * time.Second

// healthNow returns the counts, at most healthAge old.
func (v *view) healthNow() health {
	s := v.site
	s.mu.Lock()
	kept := s.health
	s.mu.Unlock()
	if age := v.now.Sub(kept.at); age >= 0 && age < healthAge && !kept.at.IsZero() {
		return kept
	}
	fresh := health{at: v.now}
	v.src.Clusters.Statuses(func(c *status.Cluster) bool {
		fresh.add(c)
		return true
	})
	s.mu.Lock()
	s.health = fresh
	s.mu.Unlock()
	return fresh
}

func (n *health) add(c *status.Cluster) {
	n.clusters++
	if c.Hosts == nil {
		return
	}
	bad, degraded := 0, 0
	c.Hosts(func(host *status.Host) bool {
		n.hosts++
		switch host.Health.Health() {
		case status.Unhealthy:
			bad++
		case status.Degraded:
			degraded++
		}
		return true
	})
	n.bad += bad
	switch {
	case bad > 0:
		n.unhealthy++
	case degraded > 0:
		n.degraded++
	}
}
