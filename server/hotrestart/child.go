package hotrestart

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/store"
)

// ErrNoParent is wrapped by the error of [Dial] when there is no predecessor.
var ErrNoParent = errors.New("no server of the previous epoch answers")

// Errors of the methods of [Child] once the parent is gone. The others are
// wrapped together with ErrGone.
var (
	// ErrGone means that the parent no longer answers.
	ErrGone = errors.New("hotrestart: the parent is gone")
	// ErrEnded means that the parent has exited cleanly. It has handed over
	// everything, unless it was already exiting when this process connected.
	ErrEnded = errors.New("it has ended")
	// ErrDied means that the process of the parent is dead.
	ErrDied = errors.New("it has died")
	// ErrLeft means that this process has closed the connection.
	ErrLeft = errors.New("this process has left it")
)

// Successor receives what a parent hands over.
type Successor struct {
	// Stat is called with each stat. The argument is valid during the call. If
	// nil, stats stay with the parent.
	Stat func(*store.ExportedStat)
	// Parcel is called with each parcel that a sink of the parent has not
	// delivered. If nil, parcels are dropped.
	Parcel func(flush.Parcel)
	// Connection is called with each connection and owns its file. If nil,
	// connections are closed.
	Connection func(Connection)
}

// Child is the successor's side of a hot restart. Its methods are safe for
// concurrent use.
type Child struct {
	cfg    Config
	to     Successor
	origin Origin
	link   *link

	mu      sync.Mutex // held during a question; guards the rest
	gone    error      // why there is no parent any more
	applied uint64     // the last batch of stats that was taken
	told    uint64     // the last one that was acknowledged
	commits bool       // Commit was asked for
	parts   []message  // of a batch that is not complete
	usage   Usage
}

// Dial connects to the server of the previous epoch. The error wraps
// [ErrNoParent] if there is none, and [ErrEnded] if it is ending.
func Dial(cfg Config, to Successor) (*Child, error) {
	cfg = cfg.withDefaults()
	if cfg.Epoch == 0 {
		return nil, errors.New("hotrestart: epoch 0 has no parent")
	}
	addr := cfg.address(cfg.Epoch - 1)
	conn, err := net.DialUnix("unix", nil, addr)
	if gone(err) {
		err = ErrNoParent
	}
	if err != nil {
		return nil, fmt.Errorf("hotrestart: socket %s: %w", addr.Name, err)
	}
	cfg.spare = newSpare()
	c := &Child{cfg: cfg, to: to, link: &link{conn: conn, timeout: cfg.Timeout, side: "new"}}
	if err := c.greet(); err != nil {
		cfg.spare.free(true)
		return nil, errors.Join(fmt.Errorf("hotrestart: socket %s: %w", addr.Name, err), conn.Close())
	}
	return c, nil
}

func (c *Child) greet() error {
	if err := checkPeer(c.link.conn); err != nil {
		return err
	}
	m, err := c.link.call(askHello, hello{uint64(c.cfg.Epoch), c.to.Stat != nil}.append(nil))
	if err != nil && lost(err) && !c.cfg.alive(c.cfg.Epoch-1, true) {
		return ErrDied
	}
	if err != nil {
		return err
	}
	m.close()
	switch m.kind {
	case answerBye:
		return ErrEnded
	case answerRefused:
		return refusal(m.payload)
	case answerHello:
		c.origin, err = parseOrigin(m.payload)
		return err
	}
	return fmt.Errorf("%w: answer %d to the greeting", errMalformed, m.kind)
}

// refusal returns the error for a text of the other process.
func refusal(text []byte) error {
	const most = 1 << 10
	return errors.New(strings.ToValidUTF8(string(text[:min(len(text), most)]), "_"))
}

// Origin returns the origin of the chain of processes.
func (c *Child) Origin() Origin { return c.origin }

// Sockets returns duplicates of the parent's sockets. The caller owns them.
func (c *Child) Sockets() (all []Socket, err error) {
	err = c.ask(askSockets, func(s Socket) {
		if n := len(all); n > 0 && all[n-1].Address == s.Address { // of more sockets than a message carries
			all[n-1].Files = append(all[n-1].Files, s.Files...)
			return
		}
		all = append(all, s)
	})
	if err != nil {
		for _, s := range all {
			closeAll(s.Files)
		}
		return nil, err
	}
	return all, nil
}

// Stats fetches the stats of the parent that have changed since the last call.
// Before Commit they are copies, and the parent keeps flushing them.
func (c *Child) Stats() error { return c.ask(askStats, nil) }

// Commit makes this process responsible for flushing the stats. The parent
// flushes a last time and sends the changes since Stats. It serves until Drain,
// and flushes again if this process dies.
func (c *Child) Commit() error { return c.ask(askCommit, nil) }

// Watch receives the usage of the parent and, when it exits, the state that it
// hands over. Call it regularly: an exiting parent waits for it for a limited
// time.
func (c *Child) Watch() error { return c.ask(askUsage, nil) }

// Drain makes the parent stop accepting connections and reading datagrams. It
// resumes both if this process dies.
func (c *Child) Drain() error { return c.ask(askDrain, nil) }

// Terminate ends the parent. When it returns nil, the successor has received
// all connections and the last stats.
func (c *Child) Terminate() error {
	err := c.ask(askTerminate, nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(c.gone, ErrEnded) {
		return nil
	}
	c.leave(err)
	return err
}

// Usage returns the last reported usage of the parent, or zero once it is gone.
func (c *Child) Usage() Usage {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone != nil {
		return Usage{}
	}
	return c.usage
}

// Close closes the connection to the parent, which continues without this process
// unless it was drained.
func (c *Child) Close() {
	c.link.stop() // a question that is under way
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leave(ErrLeft)
}

// AwaitEnd waits until the process of the parent of cfg has closed its sockets, for
// as long as [Child] waits for an answer.
func AwaitEnd(cfg Config) {
	cfg = cfg.withDefaults()
	for end := time.Now().Add(cfg.Timeout); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		conn, err := net.DialUnix("unix", nil, cfg.address(cfg.Epoch-1))
		if err != nil {
			return
		}
		_ = conn.Close()
	}
}

// leave ends the connection. c.mu must be held. The part of a batch that has arrived
// is dropped, since the parent, unless it is dead, flushes it.
func (c *Child) leave(why error) {
	if c.gone == nil {
		c.parts = nil
		if why == nil {
			why = ErrLeft
		}
		c.gone = why
		_ = c.link.conn.Close() // nothing that was sent matters any more
		c.cfg.spare.free(true)
	}
}

// ask sends a question and takes messages until the answer is complete. A parent
// that ends says so unasked; then that is the answer.
func (c *Child) ask(k kind, socket func(Socket)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone != nil {
		return fmt.Errorf("%w: %w", ErrGone, c.gone)
	}
	c.commits = c.commits || k == askCommit
	if k != askUsage { // which a process can ask that gives up after Commit
		c.told = c.applied
	}
	sent := c.link.send(k, binary.AppendUvarint(nil, c.told)) // the last words of a parent that has ended can still be read
	wait := c.link.timeout
	if k == askSockets { // the parent first ends its own, and may wait as long for that
		wait *= 2
	}
	if sent != nil { // nothing is answered: only what has arrived counts
		wait = lateRead
	}
	for c.gone == nil {
		m, err := c.link.receive(wait)
		if err != nil {
			if c.link.stopped.Load() {
				err = ErrLeft
			} else if lost(err) && !c.cfg.alive(c.cfg.Epoch-1, true) {
				err = ErrDied
			}
			c.leave(errors.Join(sent, err))
			break
		}
		done, err := c.take(&m, k, socket)
		if err != nil {
			m.close()
			c.leave(err)
		}
		if done {
			break
		}
	}
	if c.gone != nil {
		return fmt.Errorf("%w: %w", ErrGone, c.gone)
	}
	c.link.point(k, "answered")
	return nil
}

// apply takes the stats and parcels of a complete batch.
func (c *Child) apply() error {
	for _, part := range c.parts {
		var err error
		switch {
		case part.kind == answerStats:
			err = parseStats(part.payload, c.to.Stat)
		case c.to.Parcel != nil:
			err = parseParcels(part.payload, c.to.Parcel)
		}
		if err != nil {
			return err
		}
	}
	c.parts = nil
	return nil
}

// take takes one message of the answer to question k and reports whether it completes
// the answer.
func (c *Child) take(m *message, k kind, socket func(Socket)) (done bool, err error) {
	r := reader{b: m.payload}
	switch {
	case m.kind == answerDone || m.kind == answerBye:
		m.close()
		batch := r.number()
		if c.usage = r.usage(); r.done() != nil {
			return true, errMalformed
		}
		if err := c.apply(); err != nil {
			return true, err
		}
		acknowledge := batch != c.applied && (k != askCommit || m.kind == answerBye)
		c.applied = batch
		if acknowledge { // before this process flushes, and may be killed; after Commit, Drain does it
			c.told = batch
			_ = c.link.send(tellAck, binary.AppendUvarint(nil, c.told)) // the next question repeats it
		}
		if m.kind == answerBye {
			c.leave(ErrEnded)
		}
		return true, nil
	case m.kind == answerRefused:
		return true, refusal(m.payload)
	case (m.kind == answerStats || m.kind == answerParcels) && c.to.Stat != nil:
		m.close()
		if k == askStats && !c.commits && m.kind == answerStats { // the parent keeps flushing what these are copies of
			return false, parseStats(m.payload, c.to.Stat)
		}
		c.parts = append(c.parts, *m)
		return false, nil
	case m.kind == answerSocket && socket != nil:
		s := Socket{Address: r.text(), Files: m.files}
		if err := r.done(); err != nil {
			return false, err
		}
		socket(s)
		return false, nil
	case m.kind == answerConnection && m.cut:
		m.close()
		c.cfg.Logger.Warn("hot restart: a connection is lost: there is no free descriptor for it")
		return false, nil
	case m.kind == answerConnection && len(m.files) == 1:
		conn := Connection{Address: r.text(), File: m.files[0], Read: r.b}
		if r.bad {
			return false, errMalformed
		}
		if c.to.Connection == nil {
			m.close()
			return false, nil
		}
		c.to.Connection(conn)
		return false, nil
	}
	return false, fmt.Errorf("%w: answer %d", errMalformed, m.kind)
}
