package lb

import (
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// zoneRouting is the share of traffic of the first priority that stays in the local
// locality, and the distribution of the rest.
type zoneRouting struct {
	localPanics bool // the own cluster panics: route normally
	direct      bool // everything stays
	local       uint64
	residual    []uint64 // accumulated by locality, of 10000
}

// routeZones derives the routing from the healthy hosts of the first priority of the
// upstream cluster and of the local one. It returns nil if there is none.
func (c *Config) routeZones(up, local *host.Set) *zoneRouting {
	c.Stats.RecalculateZoneStructures.Inc()
	if len(up.Localities) < 2 || len(local.Localities) < 2 {
		return nil
	}
	if !local.HasLocal || len(local.Localities[0].Healthy) == 0 {
		c.Stats.LocalClusterNotOK.Inc()
		return nil
	}
	if uint64(len(up.Healthy)) < c.Zone.MinClusterSize() {
		c.Stats.ZoneClusterTooSmall.Inc()
		return nil
	}
	z := &zoneRouting{
		localPanics: panics(local, min(c.PanicThreshold(), 100)),
		residual:    make([]uint64, len(up.Localities)),
	}
	shares := make(map[config.Locality]uint64, len(local.Localities))
	for i := range local.Localities {
		l := &local.Localities[i]
		shares[l.Locality] = share(l.Healthy, local.Healthy)
	}
	forced := false
	have, need := uint64(0), shares[local.Localities[0].Locality]
	if up.HasLocal {
		own := up.Localities[0].Healthy
		have = share(own, up.Healthy)
		forced = c.Zone.ForceLocal > 0 && len(own) >= int(c.Zone.ForceLocal)
	}
	if have > 0 && (have >= need || forced) {
		z.direct = true
		return z
	}
	if need > 0 {
		z.local = have * 10000 / need
	}
	var sum uint64
	for i := range up.Localities {
		l := &up.Localities[i]
		// The local locality has less than its share here, so it adds nothing.
		if u, s := share(l.Healthy, up.Healthy), shares[l.Locality]; u > s {
			sum += u - s
		}
		z.residual[i] = sum
	}
	return z
}

// share returns the part of all hosts in ten-thousandths.
func share(part, all []*host.Host) uint64 {
	if len(all) == 0 {
		return 0
	}
	return 10000 * uint64(len(part)) / uint64(len(all))
}

// choose returns the locality for a pick; 0 is the local one.
func (z *zoneRouting) choose(c *Config) int {
	if z.direct {
		c.Stats.ZoneRoutingAllDirectly.Inc()
		return 0
	}
	if c.Rand()%10000 < z.local {
		c.Stats.ZoneRoutingSampled.Inc()
		return 0
	}
	c.Stats.ZoneRoutingCrossZone.Inc()
	total := z.residual[len(z.residual)-1]
	if total == 0 {
		c.Stats.ZoneNoCapacityLeft.Inc()
		return int(c.Rand() % uint64(len(z.residual)))
	}
	x := c.Rand() % total
	for i, r := range z.residual {
		if r > x {
			return i
		}
	}
	return 0
}
