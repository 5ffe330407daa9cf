package transport

import (
	"reflect"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// choice is a socket and the endpoints that use it.
type choice struct {
	match  map[string]any // keys and values the endpoint must have; empty fits all
	socket *socket
	counts []*store.Counter // how often it was chosen
}

func (c *choice) close() {
	if c.socket != nil && c.socket.tls != nil {
		c.socket.tls.close()
	}
}

// fits reports whether metadata contains everything required.
func (c *choice) fits(metadata map[string]any) bool {
	for key, want := range c.match {
		if got, ok := metadata[key]; !ok || !reflect.DeepEqual(got, want) {
			return false
		}
	}
	return true
}

// choose returns the first socket that matches metadata, and counts the choice.
func (d *Dialer) choose(metadata map[string]any) *socket {
	c := &d.fallback
	for i := range d.matches {
		if d.matches[i].fits(metadata) {
			c = &d.matches[i]
			break
		}
	}
	for _, n := range c.counts {
		n.Inc()
	}
	return c.socket
}

// Resolve chooses the socket of h by its metadata. Call it when h joins the cluster
// and when its metadata changes.
func (d *Dialer) Resolve(h *host.Host) {
	s := d.choose(h.Metadata()[d.namespace])
	if len(d.matches) == 0 {
		return
	}
	d.mu.Lock()
	d.chosen[h] = s
	d.mu.Unlock()
}

// Forget drops the result of [Dialer.Resolve] for a removed host.
func (d *Dialer) Forget(h *host.Host) {
	if len(d.matches) == 0 {
		return
	}
	d.mu.Lock()
	delete(d.chosen, h)
	d.mu.Unlock()
}

// socket returns the socket of h. For a host that was never resolved, the result is
// neither stored nor counted.
func (d *Dialer) socket(h *host.Host) *socket {
	if len(d.matches) == 0 {
		return d.fallback.socket
	}
	d.mu.RLock()
	s := d.chosen[h]
	d.mu.RUnlock()
	if s != nil {
		return s
	}
	metadata := h.Metadata()[d.namespace]
	for i := range d.matches {
		if d.matches[i].fits(metadata) {
			return d.matches[i].socket
		}
	}
	return d.fallback.socket
}
