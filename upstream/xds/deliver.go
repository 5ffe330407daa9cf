package xds

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/oneline"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// welcome delivers known resources to new subscribers.
func (m *mux) welcome() {
	type visit struct {
		s *subscription
		u *update
	}
	var list []visit
	m.mu.Lock()
	if !m.newcomers {
		m.mu.Unlock()
		return
	}
	m.newcomers = false
	for _, t := range m.topics {
		for _, e := range t.entries {
			if e.latest != nil {
				for _, s := range e.fresh {
					list = append(list, visit{s, &update{version: e.version, resources: []decode.Resource{*e.latest}, cached: true}})
				}
				e.fresh = nil
			}
		}
	}
	m.mu.Unlock()
	for _, v := range list {
		v.s.update(v.u)
	}
}

// handle applies a response and prepares the reply to it.
func (m *mux) handle(r *response) error {
	m.welcome() // new subscribers get the last good version before a bad update
	if r.identifier != "" {
		m.stats.identifier.Set(oneline.Clean(r.identifier))
	}
	m.mu.Lock()
	var t *topic
	for _, x := range m.topics {
		if r.typeURL == x.kind.typeURL() || r.typeURL == "" && m.alone {
			t = x
		}
	}
	if t == nil || !t.opened {
		m.mu.Unlock()
		m.log.Debug("discovery response of a type without subscribers", "method", m.method, "type", r.typeURL)
		if m.alone {
			return errors.New("xds: the response has another type than the stream")
		}
		return nil
	}
	targets, faults := m.routeLocked(t, r)
	m.mu.Unlock()
	for _, x := range targets {
		if x.refused {
			x.s.reject()
			continue
		}
		faults = append(faults, x.s.update(&x.u)...)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t.nonce = r.nonce
	former := t.reply
	t.reply = &reply{nonce: r.nonce, problem: summary(faults)}
	if m.delta { // else the nonce of this response makes former void
		t.reply.first = former.unsentRefusal(len(faults) == 0)
	}
	switch {
	case len(faults) == 0:
		t.version = r.version
		t.pace.reset()
	case t.refused:
		t.reply.after = time.Now().Add(t.pace.next())
	}
	t.refused = len(faults) > 0
	m.rememberLocked(t, r, faults)
	return nil
}

// target is an update with its subscription.
type target struct {
	s       *subscription
	u       update
	refused bool // the resource does not fit into the budget
}

// routeLocked returns the updates that a response means for each subscription. m.mu
// is held.
func (m *mux) routeLocked(t *topic, r *response) (list []target, faults []fault) {
	if t.kind.service().wildcard {
		if t.all != nil {
			list = append(list, target{s: t.all, u: r.update})
		}
		return list, nil
	}
	part := update{full: r.full, version: r.version}
	deliver := func(e *entry, u update) {
		for _, s := range e.subscribers {
			list = append(list, target{s: s, u: u})
		}
		e.fresh = nil
	}
	seen := make(map[string]bool, len(r.resources))
	for i := range r.resources {
		x := &r.resources[i]
		e := t.entries[x.Name]
		switch {
		case x.Name == "":
			faults = append(faults, fault{"", unnamed(x)})
		case seen[x.Name]:
			faults = append(faults, fault{"", duplicate(x)}) // the first one counts
		case e == nil && m.alone:
			faults = append(faults, fault{x.Name, unasked(x)})
		case e == nil, heartbeat(x):
		default:
			if err := m.kept.replace(&e.charge, x.Name, sizeOf(x)); err != nil {
				faults = append(faults, fault{x.Name, err})
				for _, s := range e.subscribers {
					list = append(list, target{s: s, refused: true})
				}
			} else {
				u := part
				u.resources = r.resources[i : i+1]
				deliver(e, u)
			}
		}
		seen[x.Name] = true
	}
	if len(faults) > 0 && m.alone {
		served := make(map[*subscription]bool, len(list))
		for _, x := range list {
			served[x.s] = true
		}
		for _, e := range t.entries {
			for _, s := range e.subscribers {
				if !served[s] { // it gets nothing of this response
					s.reject()
				}
			}
		}
	}
	if r.full && len(r.resources) == 0 && t.kind != secretKind { // contexts keep waiting for a secret
		for _, name := range sortedNames(t.entries) {
			deliver(t.entries[name], part)
		}
	}
	for _, name := range r.removed {
		if e := t.entries[name]; e != nil {
			u := part
			u.removed = []string{name}
			deliver(e, u)
		}
	}
	return list, faults
}

// rememberLocked keeps the accepted resources. m.mu is held.
func (m *mux) rememberLocked(t *topic, r *response, faults []fault) {
	bad := make(map[string]bool, len(faults))
	for _, f := range faults {
		bad[f.name] = true
	}
	wildcard := t.kind.service().wildcard
	before := t.entries
	if wildcard && r.full {
		t.entries = make(map[string]*entry) // a full response replaces all
	}
	defer m.expireNextLocked()
	seen := make(map[string]bool, len(r.resources))
	for i := range r.resources {
		x := &r.resources[i]
		if seen[x.Name] {
			continue
		}
		seen[x.Name] = true
		if bad[x.Name] || x.Name == "" {
			if e := t.entries[x.Name]; e != nil && !wildcard {
				m.kept.restore(&e.charge, chargeOf(e.latest))
			}
			continue
		}
		m.expiring = m.expiring || x.TTL > 0
		if heartbeat(x) {
			if e := before[x.Name]; e != nil {
				e.goodFor(x.TTL)
				t.entries[x.Name] = e
			}
			continue
		}
		e := t.entries[x.Name]
		switch {
		case e == nil && !wildcard:
			continue
		case e == nil:
			e = new(entry)
			t.entries[x.Name] = e
		}
		e.version = x.Version
		e.goodFor(x.TTL)
		if !wildcard {
			if e.latest == nil || e.latest.TypeURL != x.TypeURL || !bytes.Equal(e.latest.Bytes(), x.Bytes()) {
				e.latest = keep(x)
			} else {
				e.latest.Version = x.Version
			}
			m.newcomers = m.newcomers || len(e.fresh) > 0 // subscribers came meanwhile
		}
	}
	for _, name := range r.removed {
		switch e := t.entries[name]; {
		case e == nil:
		case wildcard:
			delete(t.entries, name)
		default:
			e.version, e.latest, e.expires = "", nil, time.Time{}
			m.kept.restore(&e.charge, charge{})
		}
	}
}

// chargeOf returns the charge of a kept resource.
func chargeOf(r *decode.Resource) charge {
	if r == nil {
		return charge{}
	}
	return charge{true, sizeOf(r)}
}

// sizeOf returns the bytes of a resource that count against the limits.
func sizeOf(r *decode.Resource) int { return len(r.Bytes()) + len(r.Version) }

// keep returns a copy of r that does not reference the response.
func keep(r *decode.Resource) *decode.Resource {
	c := decode.WireResource(strings.Clone(r.TypeURL), slices.Clone(r.Bytes()), r.Index)
	c.Name, c.Version = r.Name, r.Version
	return &c
}
