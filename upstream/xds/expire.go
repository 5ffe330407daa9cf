package xds

import (
	"slices"
	"time"
)

// ttlFeature tells servers that resources may be given for some time only.
const ttlFeature = "xds.config.supports-resource-ttl"

// clientFeatures are those of the configuration and those of this package.
func clientFeatures(list []string) []string {
	if slices.Contains(list, ttlFeature) {
		return list
	}
	return append(slices.Clone(list), ttlFeature)
}

// goodFor lets the entry expire after d unless it is called again before; 0 is
// never. The mux's mu is held.
func (e *entry) goodFor(d time.Duration) {
	e.expires = time.Time{}
	if d > 0 {
		e.expires = time.Now().Add(d)
	}
}

// expireNextLocked sets the timer to the entry that expires next. m.mu is held, by
// the goroutine of run.
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
	m.expiry.Stop()
	if m.expiring = !next.IsZero(); m.expiring {
		m.expiry.Reset(max(time.Until(next), 0))
	}
}

// expire takes back what was given for a time that is over, as if the server had
// removed it.
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
				list = append(list, target{s, u})
			}
			e.latest, e.version, e.expires = nil, "", time.Time{}
			if t.kind.service().wildcard {
				if t.all != nil {
					list = append(list, target{t.all, u})
				}
				delete(t.entries, name)
			}
			m.log.Info("discovery resource is good no more, its server did not renew it", "type", t.kind.typeURL(), "resource", name)
		}
	}
	m.expireNextLocked()
	m.mu.Unlock()
	for _, x := range list {
		x.s.expire(&x.u)
	}
}
