package upstream

import (
	"slices"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// originalsEvery is the minimum interval between publications of new original
// destinations. Clients decide how many there are, and each publication costs time
// for every host.
const originalsEvery = 50 * time.Millisecond

// defaultOriginalHosts is the default limit of hosts in an original destination cluster.
const defaultOriginalHosts = 10_000

// originals records when the hosts of an original destination cluster were published.
// The cluster's mu guards it.
type originals struct {
	shown time.Time
	timer *time.Timer // nil if nothing is to be published
}

// addOriginal adds a host that a pick created. It is checked and watched at once, and
// published at once unless others were just before.
func (c *Cluster) addOriginal(h *host.Host) {
	c.updating.Lock()
	defer c.updating.Unlock()
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	(&rules{checked: c.checker != nil}).begin(h)
	if len(c.groups) == 0 {
		c.groups = [][][]*host.Host{{nil}}
	}
	// Published sets do not look beyond their end of the list.
	c.groups[0][0] = append(c.groups[0][0], h)
	o := &c.originals
	if wait := originalsEvery - time.Since(o.shown); wait <= 0 {
		c.showOriginalsLocked()
	} else if o.timer == nil {
		o.timer = time.AfterFunc(wait, func() { c.env.guard.Run("new hosts", c.showOriginals) })
	}
	c.mu.Unlock()
	c.hostsChanged([]*host.Host{h}, nil)
}

// showOriginals publishes the current hosts.
func (c *Cluster) showOriginals() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.showOriginalsLocked()
	}
}

// showOriginalsLocked publishes the current hosts. c.mu must be held.
func (c *Cluster) showOriginalsLocked() {
	c.originals = originals{shown: time.Now()}
	c.publishLocked(0, true)
	c.stats.MembershipChange.Inc()
}

// sweep removes unused hosts of an original destination cluster.
func (c *Cluster) sweep() {
	t := time.Tick(max(c.config.CleanupInterval, time.Millisecond))
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-t:
			gone := make(map[*host.Host]bool)
			for _, h := range c.original.Sweep() {
				gone[h] = true
			}
			if len(gone) > 0 {
				c.removeHosts(func(h *host.Host) bool { return gone[h] })
			}
		}
	}
}

// OriginalDstMetadata returns the key and the path in the metadata of a request whose
// value belongs in DestinationMetadata of a pick's context. The key is empty if
// metadata does not select hosts of the cluster.
func (c *Cluster) OriginalDstMetadata() (key string, path []string) {
	if c.original == nil {
		return "", nil
	}
	o := &c.config.LB.OriginalDst
	return o.MetadataKey, slices.Clone(o.MetadataPath)
}
