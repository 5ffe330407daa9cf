package xds

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// Source returns the source of hosts of an EDS cluster, for [upstream.Config]. It
// fails if the cluster names no usable source.
func (c *Client) Source(cl *config.Cluster) (upstream.Source, error) {
	if cl.Type != config.EDSDiscovery || cl.EDS == nil {
		return nil, fmt.Errorf("xds: cluster %q is not of type EDS", cl.Name)
	}
	if err := c.check(&cl.EDS.Source); err != nil {
		return nil, fmt.Errorf("eds_cluster_config.eds_config: %w", err)
	}
	return &endpointSource{c, cl.EDS}, nil
}

// endpointSource finds the hosts of one cluster.
type endpointSource struct {
	c   *Client
	eds *config.EDS
}

// Run follows the load assignment of cl until ctx is done.
func (s *endpointSource) Run(ctx context.Context, cl *upstream.Cluster) {
	stats := newUpdateStats(cl.Scope())
	e := &endpoints{c: s.c, cl: cl}
	defer e.close()
	s.c.follow(ctx, endpointKind, s.eds.ServiceName, &s.eds.Source, e, stats, cl.Scope())
}

// endpoints applies load assignments to a cluster.
type endpoints struct {
	c  *Client
	cl *upstream.Cluster

	mu     sync.Mutex // held while hosts are updated
	hash   uint64     // of the assignment in effect; 0 if unknown
	stale  time.Duration
	expiry *time.Timer
	closed bool
}

func (e *endpoints) started() { e.cl.DiscoveryDone() }

func (e *endpoints) apply(u *update) (changed bool, faults []fault) {
	switch len(u.resources) {
	case 0:
		e.cl.Stats().UpdateEmpty.Inc()
		return false, nil
	case 1:
	default:
		return false, []fault{{"", fmt.Errorf("xds: %d load assignments for cluster %q, exactly one is allowed", len(u.resources), e.cl.Config().Name)}}
	}
	r := &u.resources[0]
	changed, err := e.set(r)
	if err != nil {
		e.c.log.Warn("load assignment refused", "cluster", e.cl.Config().Name, "error", err.Error())
		return false, []fault{{r.Name, err}}
	}
	if u.cached {
		e.cl.Stats().AssignmentUseCached.Inc()
	}
	return changed, nil
}

func (e *endpoints) set(r *decode.Resource) (changed bool, err error) {
	var hash uint64
	if b := r.Bytes(); b != nil {
		hash = xxhash.Sum64(b) | 1
		if e.same(hash) {
			return false, nil
		}
	}
	p, err := e.c.o.Decoder.AssignmentResource(r)
	if err != nil {
		return false, err
	}
	if p.Assignment.ClusterName != r.Name {
		return false, misnamed(r, p.Assignment.ClusterName)
	}
	if want := e.cl.Config().EDS.ServiceName; r.Name != want {
		return false, fmt.Errorf("xds: load assignment %q is not for cluster %q, which requests %q", r.Name, e.cl.Config().Name, want)
	}
	a, err := upstream.ResolveAssignment(p.Assignment)
	if err != nil {
		return false, fmt.Errorf("xds: load assignment %q: %w", r.Name, err)
	}
	for _, w := range p.Warnings() {
		e.c.log.Warn(w.Error())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false, nil
	}
	e.hash = hash
	e.expireLocked(p.Assignment.EndpointStaleAfter)
	return e.cl.UpdateHosts(0, a), nil
}

// same reports whether the assignment with that hash is in effect. If so, its expiry
// starts over.
func (e *endpoints) same(hash uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.hash != hash || e.closed {
		return false
	}
	e.cl.Stats().UpdateNoRebuild.Inc()
	e.expireLocked(e.stale)
	return true
}

// expireLocked removes all hosts after d unless another assignment arrives; 0 means
// never. e.mu is held.
func (e *endpoints) expireLocked(d time.Duration) {
	if e.expiry != nil {
		e.expiry.Stop()
		e.expiry = nil
	}
	e.stale = d
	if d <= 0 {
		return
	}
	e.cl.Stats().AssignmentTimeoutReceived.Inc()
	var t *time.Timer
	expire := func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.expiry != t { // replaced after it fired
			return
		}
		e.expiry, e.hash = nil, 0
		e.cl.Stats().AssignmentStale.Inc()
		e.cl.UpdateHosts(0, &upstream.Assignment{})
	}
	t = time.AfterFunc(d, func() { guard.New(e.c.o.Logger).Run("stale assignment", expire) })
	e.expiry = t
}

func (e *endpoints) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	e.expireLocked(0)
}
