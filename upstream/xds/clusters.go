package xds

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/statsd-admin/statsd-admin/internal/oneline"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// Failure describes the last refused update of a resource. The previous version stays
// in effect.
type Failure struct {
	Name    string
	Version string
	Details string
	Attempt time.Time
	// Config is the resource as received, nil if it was text that could not be
	// parsed, or if the refused resources are too large to keep all.
	Config *anypb.Any
}

// clusters applies cluster updates to the manager.
type clusters struct {
	c     *Client
	scope *store.Scope
	stats updateStats
	done  func() // called after the first response

	known map[string]*knownCluster // accepted clusters; only updates use it

	mu          sync.Mutex // guards the fields below
	failures    map[string]*Failure
	failedBytes int // of failures
}

// knownCluster is an accepted cluster.
type knownCluster struct {
	hash   uint64 // of the bytes; 0 for text
	charge charge
}

func (s *clusters) run(ctx context.Context) {
	select {
	case <-s.c.manager.StaticReady():
	case <-ctx.Done():
		return
	}
	s.c.follow(ctx, clusterKind, "", s.c.o.CDS, s, s.stats, s.scope)
}

func (s *clusters) started() { s.done() }

// apply applies each cluster for itself, so that a bad one does not block the others.
func (s *clusters) apply(u *update) (changed bool, faults []fault) {
	m := s.c.manager
	seen, nameless, changed, faults := s.setAll(u)
	removed := u.removed
	if u.full && !nameless { // a nameless one could be any of the missing ones
		removed = nil
		for name := range s.known {
			if !seen[name] {
				removed = append(removed, name)
			}
		}
	}
	slices.Sort(removed)
	for _, name := range removed {
		if k, ok := s.known[name]; ok {
			changed = m.Remove(name) || changed
			s.c.kept.restore(&k.charge, charge{})
			delete(s.known, name)
		}
		s.forget(name)
	}
	if !u.expired && (len(faults) == 0 || changed) {
		m.SetVersion(oneline.Clean(u.version))
	}
	if u.full && !nameless {
		s.keepFailures(seen)
	}
	return changed, faults
}

// maxLogged limits the refused clusters of one response that are logged one by one.
const maxLogged = 100

// maxFailures limits the refused clusters that are kept for the configuration dump.
const maxFailures = 1000

// maxFailedBytes limits the bytes of their messages and texts. A cluster beyond it is kept
// without its message, if at all.
const maxFailedBytes = 16 << 20

// setAll adds or updates the clusters of an update. seen holds their names; nameless
// reports whether one had no name.
func (s *clusters) setAll(u *update) (seen map[string]bool, nameless, changed bool, faults []fault) {
	seen = make(map[string]bool, len(u.resources))
	refused := 0
	for i := range u.resources {
		r := &u.resources[i]
		if r.Name != "" && seen[r.Name] {
			faults = append(faults, fault{"", duplicate(r)}) // the first one counts
			continue
		}
		seen[r.Name] = true
		if heartbeat(r) {
			continue
		}
		nameless = nameless || r.Name == ""
		did, err := s.set(r)
		if err != nil {
			faults = append(faults, fault{r.Name, err})
			if refused++; refused <= maxLogged {
				s.c.log.Warn("cluster refused", "cluster", r.Name, "error", err.Error())
			}
		}
		changed = changed || did
		s.note(r, err)
	}
	if refused > maxLogged {
		s.c.log.Warn("further clusters refused", "clusters", refused-maxLogged)
	}
	return seen, nameless, changed, faults
}

// set adds or updates one cluster.
func (s *clusters) set(r *decode.Resource) (changed bool, err error) {
	var hash uint64
	if b := r.Bytes(); b != nil {
		hash = xxhash.Sum64(b) | 1
	}
	k := s.known[r.Name]
	if k == nil {
		k = new(knownCluster)
	}
	former := k.charge
	if err := s.c.kept.replace(&k.charge, r.Name, sizeOf(r)); err != nil {
		return false, err
	}
	if hash != 0 && k.hash == hash {
		return false, nil
	}
	defer func() {
		if err != nil {
			s.c.kept.restore(&k.charge, former)
		}
	}()
	p, err := s.c.o.Decoder.ClusterResource(r)
	if err != nil {
		return false, err
	}
	if p.Cluster.Name != r.Name {
		return false, misnamed(r, p.Cluster.Name)
	}
	changed, err = s.c.manager.AddOrUpdate(p, oneline.Clean(r.Version))
	if err == nil {
		k.hash = hash
		s.known[r.Name] = k
		for _, w := range p.Warnings() {
			s.c.log.Warn(w.Error())
		}
	}
	return changed, err
}

// note records or clears the failure of a cluster.
func (s *clusters) note(r *decode.Resource, err error) {
	if err == nil {
		s.forget(r.Name)
		return
	}
	if r.Name == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropLocked(r.Name)
	f := &Failure{Name: r.Name, Version: oneline.Clean(r.Version), Details: err.Error(), Attempt: time.Now(), Config: r.Any()}
	if s.failedBytes+f.size() > maxFailedBytes {
		f.Config = nil
	}
	if len(s.failures) < maxFailures && s.failedBytes+f.size() <= maxFailedBytes {
		s.failures[r.Name] = f
		s.failedBytes += f.size()
	}
}

// size returns the bytes that f keeps.
func (f *Failure) size() int {
	return len(f.Name) + len(f.Version) + len(f.Details) + len(f.Config.GetValue())
}

func (s *clusters) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropLocked(name)
}

// dropLocked drops the failure of a cluster, if there is one. s.mu is held.
func (s *clusters) dropLocked(name string) {
	if f := s.failures[name]; f != nil {
		s.failedBytes -= f.size()
		delete(s.failures, name)
	}
}

// keepFailures drops the failures of all clusters except names.
func (s *clusters) keepFailures(names map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.failures {
		if !names[name] {
			s.dropLocked(name)
		}
	}
}

// Failures calls yield with each cluster whose last update was rejected, in the
// order of names. Callers must not change the failures.
func (c *Client) Failures(yield func(*Failure) bool) {
	s := c.clusters
	if s == nil {
		return
	}
	s.mu.Lock()
	list := slices.Collect(maps.Values(s.failures))
	s.mu.Unlock()
	slices.SortFunc(list, func(a, b *Failure) int { return strings.Compare(a.Name, b.Name) })
	for _, f := range list {
		if !yield(f) {
			return
		}
	}
}
