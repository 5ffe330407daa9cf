package statsd

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Clients that make a connection for each line can have many before the server
// gets to the first. So one that is too many waits, up to placePatience, while
// the accepter goes on; so many may wait at a time that only a flood fills the
// room, and then the accepter waits too.
const (
	placePatience = 500 * time.Millisecond
	waitingRoom   = 512
)

// connSet are the connections of a listener: those that are served, and those
// that wait for a place.
type connSet struct {
	total, perAddr int           // most that are served, and most of them from one address
	room           int           // most that wait
	patience       time.Duration // how long one waits

	// draining is set when the server stops: see stream.arm.
	draining atomic.Bool
	// taker gets the connections that wait for input, nil unless they are to
	// be handed over.
	taker atomic.Pointer[func(*stream) bool]

	left chan struct{} // holds something when somebody left the room since it was looked at

	mu      sync.Mutex // guards the rest
	conns   map[*stream]struct{}
	from    map[netip.Addr]int
	waiting []*waiter // in the order they came; there is a place for none of them
	// lasting are the addresses, the invalid one for all, for whose places it
	// is no use to wait: somebody did, and since then none was freed.
	lasting map[netip.Addr]bool
}

// waiter is a connection that waits for a place.
type waiter struct {
	st       *stream
	patience *time.Timer
	done     func(limit string)
}

func (c *connSet) init() {
	c.room, c.patience = waitingRoom, placePatience
	c.left = make(chan struct{}, 1)
	c.conns = make(map[*stream]struct{})
	c.from = make(map[netip.Addr]int)
	c.lasting = make(map[netip.Addr]bool)
}

// limitLocked says which limit keeps st out, and whose places are taken; ""
// if there is a place. c.mu must be held.
func (c *connSet) limitLocked(st *stream) (limit string, whose netip.Addr) {
	if len(c.conns) >= c.total {
		return "connections", netip.Addr{}
	}
	if st.addr.IsValid() && c.from[st.addr] >= c.perAddr {
		return "per_address", st.addr
	}
	return "", netip.Addr{}
}

// take takes in st, even if that is too many.
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

// await takes in st as soon as there is a place, and calls done with "". It
// calls done with the limit if there is no place for some time, or if somebody
// waited in vain and none was freed since. done is called once, before await
// returns or later, with no lock held. Only a full room makes await itself
// wait; only one goroutine may call it.
func (c *connSet) await(st *stream, done func(limit string)) {
	if limit, waits := c.enter(st, done); !waits {
		done(limit)
	}
}

// enter takes in st, says which limit keeps it out, or lets it wait.
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

// leaveLocked takes the i-th of those that wait out of the room.
func (c *connSet) leaveLocked(i int) {
	c.waiting[i].patience.Stop()
	c.waiting = slices.Delete(c.waiting, i, i+1)
	c.toldLocked()
}

// toldLocked wakes the one who waits for room.
func (c *connSet) toldLocked() {
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

// takeWaiting takes in all that wait, even if that is too many.
func (c *connSet) takeWaiting() {
	c.mu.Lock()
	all := c.waiting
	c.waiting = nil
	for _, w := range all {
		w.patience.Stop()
		c.takeLocked(w.st)
	}
	c.toldLocked()
	c.mu.Unlock()
	for _, w := range all {
		w.done("")
	}
}

// remove gives the place of st to the first that waits for one such as that.
func (c *connSet) remove(st *stream) {
	if next := c.freed(st); next != nil {
		next.done("")
	}
}

// freed frees the place of st and returns who has it now, nil if nobody wants
// it.
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

// crowded reports whether more than half of the places are taken.
func (c *connSet) crowded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns) > c.total/2
}

// rearm makes every connection look again how long it may wait.
func (c *connSet) rearm() {
	c.mu.Lock()
	all := make([]*stream, 0, len(c.conns))
	for st := range c.conns {
		all = append(all, st)
	}
	c.mu.Unlock()
	for _, st := range all {
		st.arm()
	}
}

// drain lets the connections read what is there and end.
func (c *connSet) drain() {
	c.draining.Store(true)
	c.rearm()
}
