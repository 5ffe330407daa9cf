package xds

import (
	"slices"
	"time"
)

// ttlFeature announces that resources can have a TTL.
const ttlFeature = "xds.config.supports-resource-ttl"

// clientFeatures returns the configured features and ttlFeature.
func clientFeatures(list []string) []string {
	if slices.Contains(list, ttlFeature) {
		return list
	}
	return append(slices.Clone(list), ttlFeature)
}

// goodFor sets the TTL of the entry; 0 means none. The mux's mu is held.
func (e *entry) goodFor(d time.Duration) {
	e.expires = time.Time{}
	if d > 0 {
		e.expires = time.Now().Add(d)
	}
}

// expireNextLocked sets the timer to the entry that expires next. The goroutine of
// run calls it with m.mu held.
func (m *mux) expireNextLocked() {
	if !m.expiring {
		return
	}
	var next time.Time
	for _, t := range m.topics {
		for _, e := range t.entries {
			if !e.expires.IsZero() && (next.IsZero() || e.expires.Before(next)) {
				next = e.expires
			}
		}
	}
	if m.expiring = !next.IsZero(); m.expiring {
		m.expiry.Reset(max(time.Until(next), 0))
	}
}

// expire removes expired resources as if the server had removed them.
func (m *mux) expire() {
	var list []target
	now := time.Now()
	m.mu.Lock()
	for _, t := range m.topics {
		for _, name := range sortedNames(t.entries) {
			e := t.entries[name]
			if e.expires.IsZero() || now.Before(e.expires) {
				continue
			}
			u := update{expired: true, version: e.version, removed: []string{name}}
			for _, s := range e.subscribers {
				list = append(list, target{s: s, u: u})
			}
			e.latest, e.version, e.expires = nil, "", time.Time{}
			m.kept.restore(&e.charge, charge{})
			if t.kind.service().wildcard {
				if t.all != nil {
					list = append(list, target{s: t.all, u: u})
				}
				delete(t.entries, name)
			}
			m.log.Info("discovery resource expired because its server did not renew it", "type", t.kind.typeURL(), "resource", name)
		}
	}
	m.expireNextLocked()
	m.mu.Unlock()
	for _, x := range list {
		x.s.expire(&x.u)
	}
}
