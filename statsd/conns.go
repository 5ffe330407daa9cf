package statsd

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A client that opens a connection for each line can open many before the
// server has accepted the first. So a connection over the limit waits for up to
// slotWait while the accepter continues. At most maxWaiting connections wait;
// only then does the accepter wait as well.
const (
	slotWait   = 500 * time.Millisecond
	maxWaiting = 512
)

// connSet holds the connections of a listener: the served ones, and those
// waiting for a slot.
type connSet struct {
	total, perAddr int           // limits on served connections: in total, and per client address
	room           int           // limit on waiting connections
	patience       time.Duration // how long a connection waits

	// draining is set when the server stops; see stream.arm.
	draining atomic.Bool
	// taker receives idle connections during a handoff. It is nil otherwise.
	taker atomic.Pointer[func(*stream) bool]

	left chan struct{} // has a value after a waiting connection left

	mu      sync.Mutex // guards the rest
	conns   map[*stream]struct{}
	from    map[netip.Addr]int
	waiting []*waiter // in order of arrival
	// lasting holds the addresses, the invalid one for all, whose slots stay
	// taken: a connection waited in vain, and no slot was freed since.
	lasting map[netip.Addr]bool
}

// waiter is a connection that waits for a slot.
type waiter struct {
	st       *stream
	patience *time.Timer
	done     func(limit string)
}

func (c *connSet) init() {
	c.room, c.patience = maxWaiting, slotWait
	c.left = make(chan struct{}, 1)
	c.conns = make(map[*stream]struct{})
	c.from = make(map[netip.Addr]int)
	c.lasting = make(map[netip.Addr]bool)
}

// limitLocked returns the limit that st exceeds and the address that it applies
// to, or "" if there is a slot. c.mu must be held.
func (c *connSet) limitLocked(st *stream) (limit string, whose netip.Addr) {
	if len(c.conns) >= c.total {
		return "connections", netip.Addr{}
	}
	if st.addr.IsValid() && c.from[st.addr] >= c.perAddr {
		return "per_address", st.addr
	}
	return "", netip.Addr{}
}

// take adds st even if that exceeds a limit.
func (c *connSet) take(st *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.takeLocked(st)
}

// takeLocked is take with c.mu held.
func (c *connSet) takeLocked(st *stream) {
	if st.addr.IsValid() {
		c.from[st.addr]++
	}
	c.conns[st] = struct{}{}
}

// await adds st as soon as there is a slot and calls done with "". It calls
// done with the limit if no slot gets free in time, or if another connection
// waited in vain and no slot was freed since. done is called once, before await
// returns or later, with no lock held. await itself blocks only if maxWaiting
// connections wait; only one goroutine may call it.
func (c *connSet) await(st *stream, done func(limit string)) {
	if limit, waits := c.enter(st, done); !waits {
		done(limit)
	}
}

// enter adds st, returns the limit that it exceeds, or lets it wait.
func (c *connSet) enter(st *stream, done func(limit string)) (limit string, waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		limit, whose := c.limitLocked(st)
		if limit == "" {
			c.takeLocked(st)
			return "", false
		}
		if c.lasting[whose] {
			return limit, false
		}
		if len(c.waiting) < c.room {
			break
		}
		c.mu.Unlock()
		<-c.left
		c.mu.Lock()
	}
	w := &waiter{st: st, done: done}
	w.patience = time.AfterFunc(c.patience, func() { c.giveUp(w) })
	c.waiting = append(c.waiting, w)
	return "", true
}

// leaveLocked removes the i-th waiting connection. c.mu must be held.
func (c *connSet) leaveLocked(i int) {
	c.waiting[i].patience.Stop()
	c.waiting = slices.Delete(c.waiting, i, i+1)
	c.wakeLocked()
}

// wakeLocked wakes an await that is blocked. c.mu must be held.
func (c *connSet) wakeLocked() {
	select {
	case c.left <- struct{}{}:
	default:
	}
}

// giveUp refuses w if it still waits.
func (c *connSet) giveUp(w *waiter) {
	c.mu.Lock()
	i := slices.Index(c.waiting, w)
	if i < 0 {
		c.mu.Unlock()
		return
	}
	limit, whose := c.limitLocked(w.st)
	c.lasting[whose] = true
	c.leaveLocked(i)
	c.mu.Unlock()
	w.done(limit)
}

// takeWaiting adds all waiting connections even if that exceeds a limit.
func (c *connSet) takeWaiting() {
	c.mu.Lock()
	all := c.waiting
	c.waiting = nil
	for _, w := range all {
		w.patience.Stop()
		c.takeLocked(w.st)
	}
	c.wakeLocked()
	c.mu.Unlock()
	for _, w := range all {
		w.done("")
	}
}

// remove frees the slot of st, for the first waiting connection that can use
// it.
func (c *connSet) remove(st *stream) {
	if next := c.freed(st); next != nil {
		next.done("")
	}
}

// freed frees the slot of st and returns the waiter that got it, or nil.
func (c *connSet) freed(st *stream) *waiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, st)
	delete(c.lasting, netip.Addr{})
	delete(c.lasting, st.addr)
	if st.addr.IsValid() {
		if c.from[st.addr]--; c.from[st.addr] == 0 {
			delete(c.from, st.addr)
		}
	}
	for i, w := range c.waiting {
		if limit, _ := c.limitLocked(w.st); limit == "" {
			c.takeLocked(w.st)
			c.leaveLocked(i)
			return w
		}
	}
	return nil
}

// crowded reports whether more than half of the slots are taken.
func (c *connSet) crowded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns) > c.total/2
}

// rearm makes every connection compute its read deadline again.
func (c *connSet) rearm() { c.each((*stream).arm) }

// each calls f with all connections.
func (c *connSet) each(f func(*stream)) {
	c.mu.Lock()
	all := slices.Collect(maps.Keys(c.conns))
	c.mu.Unlock()
	for _, st := range all {
		f(st)
	}
}

// drain makes the connections read the remaining input and close.
func (c *connSet) drain() {
	c.draining.Store(true)
	c.rearm()
}
