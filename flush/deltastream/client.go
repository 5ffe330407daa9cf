package deltastream

import (
	"errors"
	"io"
	"slices"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/sse"
	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
)

// Client is one listener of a [Stream]. Only one goroutine can use it.
type Client struct {
	stream  *Stream
	req     Request
	sel     *render.Selector
	at      uint64    // position in the ring
	sent    time.Time // time of the tick of the last event
	reset   string    // why the next event is a reset; "": it is not
	skipped int       // ticks the reset is due to
	resumed bool      // the client can have rows that seen does not know
	closed  bool

	seen  map[uint64]*marks // by reference / 1024
	key   uint64            // of page
	page  *marks            // looked up last
	event event
}

// marks is the state of a client for 1024 consecutive references.
type marks struct{ judged, matches, named [16]uint64 }

// marksBytes is the memory of an entry of Client.seen.
const marksBytes = 3*128 + 48

func (m *marks) slot(ref uint64) (word int, bit uint64) { return int(ref & 1023 / 64), 1 << (ref & 63) }

func newClient(s *Stream, r Request) *Client {
	r.Refs = slices.Clone(r.Refs)
	slices.Sort(r.Refs)
	r.Interval = min(max(r.Interval, s.cfg.Interval), MaxRequestInterval)
	return &Client{stream: s, req: r, sel: render.NewSelector(r.Options), resumed: r.ChangesOnly, seen: make(map[uint64]*marks)}
}

// Close removes the client from the stream. Closing twice does nothing.
func (c *Client) Close() {
	if c.closed {
		return
	}
	c.closed = true
	c.stream.mu.Lock()
	defer c.stream.mu.Unlock()
	c.stream.clients--
}

// Writer takes the bytes of a stream.
type Writer interface {
	io.Writer
	// Flush sends the bytes written so far.
	Flush() error
}

// Serve sends events to w until closing or the stream is closed, and then returns
// nil. If the filter is too expensive, or the values of all stats are not read in two
// minutes, it sends an event "error" and returns nil. It returns errors of w.
func (c *Client) Serve(w Writer, closing <-chan struct{}) error {
	c.event.w = w
	err := sse.Stream{
		Heartbeat: c.stream.cfg.Heartbeat,
		Closed:    c.stream.closed,
		Beat:      func() error { return c.event.heartbeat(c.id()) },
		Next: func() (sent bool, more <-chan struct{}, err error) {
			if c.req.Began != nil {
				defer c.req.Began()
			}
			return c.turn()
		},
	}.Serve(w, closing)
	switch {
	case errors.Is(err, render.ErrTooExpensive):
		return c.event.notice("error", c.id(), c.at, c.sent, "filter too expensive", 0)
	case errors.Is(err, errTooSlow):
		return c.event.notice("error", eventID{}, c.at, c.sent, "read too slowly", 0)
	}
	return err
}

func (c *Client) id() eventID { return eventID{c.stream.cfg.Epoch, c.at} }

// turn sends the next event, if one is due. Otherwise next is closed at the next
// tick.
func (c *Client) turn() (wrote bool, next <-chan struct{}, err error) {
	if c.reset != "" {
		return true, nil, c.begin()
	}
	list, seq, next, ok := c.stream.since(c.at)
	if !ok {
		c.reset, c.skipped = "slow", int(seq-c.at)
		return true, nil, nil
	}
	if len(list) == 0 || !c.due(list[len(list)-1].Time) {
		return false, next, nil
	}
	ch := store.MergeChanges(list)
	c.at, c.sent = seq, ch.Time
	switch {
	case ch.Lost:
		c.reset = "ended"
		return true, nil, nil
	case ch.Reset:
		c.reset = "counters"
		return true, nil, nil
	}
	skipped := len(list) - int((c.req.Interval+c.stream.cfg.Interval/2)/c.stream.cfg.Interval)
	wrote, err = c.changes(ch, max(0, skipped))
	return wrote, next, err
}

// due reports whether an event about a tick is far enough from the last one. Ticks
// are a little early or late.
func (c *Client) due(tick time.Time) bool {
	every := c.stream.cfg.Interval
	return c.req.Interval == every || tick.Sub(c.sent) >= c.req.Interval-every/2
}

// begin sends a reset and the values of all selected stats.
func (c *Client) begin() error {
	c.at, c.sent = c.stream.position()
	e, id := &c.event, eventID{}
	if c.req.ChangesOnly {
		id = c.id()
	} // else a client continues only once it has all values
	if err := e.notice("reset", id, c.at, c.sent, c.reset, c.skipped); err != nil {
		return err
	}
	clear(c.seen)
	c.page, c.reset, c.skipped = nil, "", 0
	if c.req.ChangesOnly {
		return nil
	}
	c.sel.Begin()
	e.begin(c.id(), c.sent, 0)
	e.until = time.Now().Add(beginTime)
	defer func() { e.until = time.Time{} }()
	v := c.stream.cfg.Store.View()
	defer v.Close()
	if c.req.Refs != nil {
		for _, ref := range c.req.Refs {
			if cur, ok := v.FindRef(ref); ok {
				if err := c.row(&cur, 0); err != nil {
					return err
				}
			}
		}
		return e.finish(true)
	}
	for _, set := range []store.NameSet{store.Texts, store.Scalars, store.Histograms} {
		cur := c.sel.ByName(v, set)
		for cur.Next() {
			if !c.sel.Shows(&cur) {
				continue
			}
			m := c.marks(cur.Ref())
			word, bit := m.slot(cur.Ref())
			m.judged[word] |= bit
			m.matches[word] |= bit
			if err := c.write(&cur, 0); err != nil {
				return err
			}
		}
		if err := cur.Err(); err != nil {
			return err
		}
	}
	return e.finish(true)
}

// changes sends an event about ch, unless none of it is selected.
func (c *Client) changes(ch *store.Changes, skipped int) (wrote bool, err error) {
	c.sel.Begin()
	e := &c.event
	e.begin(c.id(), ch.Time, ch.Interval)
	e.skipped = skipped
	for _, ref := range ch.Ended {
		named := false
		if m := c.seen[ref>>10]; m != nil {
			word, bit := m.slot(ref)
			named = m.named[word]&bit != 0
			m.named[word] &^= bit
		}
		if named || c.resumed && c.asked(ref) {
			if err := e.gone(ref); err != nil {
				return true, err
			}
		}
	}
	ch.Each(func(cur *store.Cursor, delta uint64) bool {
		err = c.row(cur, delta)
		return err == nil
	})
	if err != nil {
		return true, err
	}
	return e.sent || !e.empty(), e.finish(false)
}

// asked reports whether the request selects a reference.
func (c *Client) asked(ref uint64) bool {
	if c.req.Refs == nil {
		return true
	}
	_, ok := slices.BinarySearch(c.req.Refs, ref)
	return ok
}

// row writes the stat under cur if it is selected.
func (c *Client) row(cur *store.Cursor, delta uint64) error {
	ref := cur.Ref()
	if !c.asked(ref) {
		return nil
	}
	m := c.marks(ref)
	word, bit := m.slot(ref)
	if m.judged[word]&bit == 0 {
		cur.Locate()
		ok, err := c.sel.Matches(cur)
		if err != nil {
			return err
		}
		m.judged[word] |= bit
		if ok {
			m.matches[word] |= bit
		}
	}
	if m.matches[word]&bit == 0 || !c.sel.Shows(cur) {
		return nil
	}
	return c.write(cur, delta)
}

// write writes the stat under cur, with its name if the client does not have it.
func (c *Client) write(cur *store.Cursor, delta uint64) error {
	ref := cur.Ref()
	m := c.marks(ref)
	if word, bit := m.slot(ref); m.named[word]&bit == 0 {
		m.named[word] |= bit
		cur.Locate()
		c.event.name(cur)
	}
	return c.event.row(cur, delta)
}

// marks returns the state of the client for a reference.
func (c *Client) marks(ref uint64) *marks {
	key := ref >> 10
	if c.page == nil || c.key != key {
		if c.page, c.key = c.seen[key], key; c.page == nil {
			if (len(c.seen)+1)*marksBytes > c.stream.cfg.ClientBytes {
				clear(c.seen)
				c.resumed = true // it has rows that seen no longer knows
			}
			c.page = new(marks)
			c.seen[key] = c.page
		}
	}
	return c.page
}
