package upstream

import (
	"slices"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// originalsEvery is how often new original destinations are shown at most.
// Clients may decide how many there are, and showing costs time for each.
const originalsEvery = 50 * time.Millisecond

// defaultOriginalHosts is how many hosts an original destination cluster may have.
const defaultOriginalHosts = 10_000

// originals says when the hosts of an original destination cluster were shown.
// The cluster's mu guards it.
type originals struct {
	shown time.Time
	timer *time.Timer // nil: nothing waits to be shown
}

// addOriginal takes a host that a pick made. It is checked and watched at once,
// and shown at once too unless others were a moment ago.
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
	// Sets that were made do not look beyond the end they know.
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

// showOriginals shows the hosts there are.
func (c *Cluster) showOriginals() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.showOriginalsLocked()
	}
}

// showOriginalsLocked shows the hosts there are. c.mu is held.
func (c *Cluster) showOriginalsLocked() {
	c.originals = originals{shown: time.Now()}
	c.publishLocked(0, true)
	c.stats.MembershipChange.Inc()
}

// sweep removes hosts of an original destination cluster that are not used.
func (c *Cluster) sweep() {
	t := time.NewTicker(max(c.config.CleanupInterval, time.Millisecond))
	defer t.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-t.C:
			if gone := c.original.Sweep(); len(gone) > 0 {
				c.removeHosts(gone...)
			}
		}
	}
}

// OriginalDstMetadata returns where in the metadata of a request, below which key,
// the text stands that belongs in DestinationMetadata of a pick's context. key is
// empty if metadata may not say where requests to the cluster go.
func (c *Cluster) OriginalDstMetadata() (key string, path []string) {
	if c.original == nil {
		return "", nil
	}
	o := &c.config.LB.OriginalDst
	return o.MetadataKey, slices.Clone(o.MetadataPath)
}
