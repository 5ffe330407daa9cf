package hotrestart

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/statsd-admin/statsd-admin/store"
)

// ErrNoParent is wrapped by what [Dial] returns when there is no server to
// follow.
var ErrNoParent = errors.New("no server of the epoch before answers")

// ErrGone is wrapped by what the methods of [Child] return once the parent is
// no longer there, or was left because it does not answer as it should.
var ErrGone = errors.New("hotrestart: the parent is gone")

// Heir takes what comes from a parent.
type Heir struct {
	// Stat takes a stat. The argument is valid during the call. Nil: no stats
	// are wanted.
	Stat func(*store.ExportedStat)
	// Connection takes a connection and owns its file. Nil: it is closed.
	Connection func(Connection)
}

// Child is a process that follows another one. Its methods may be called by any
// number of goroutines.
type Child struct {
	heir   Heir
	origin Origin
	link   *link

	mu      sync.Mutex // held during a question; guards the rest
	gone    error      // why there is no parent any more
	figures Figures
}

// Dial connects to the server of the epoch before that of cfg. The error wraps
// [ErrNoParent] if there is none.
func Dial(cfg Config, heir Heir) (*Child, error) {
	cfg = cfg.withDefaults()
	if cfg.Epoch == 0 {
		return nil, errors.New("hotrestart: epoch 0 follows nobody")
	}
	addr := cfg.address(cfg.Epoch - 1)
	conn, err := net.DialUnix("unix", nil, addr)
	if gone(err) {
		err = ErrNoParent
	}
	if err != nil {
		return nil, fmt.Errorf("hotrestart: socket %s: %w", addr.Name, err)
	}
	c := &Child{heir: heir, link: &link{conn: conn, timeout: cfg.Timeout}}
	if err := c.greet(cfg.Epoch); err != nil {
		return nil, errors.Join(fmt.Errorf("hotrestart: socket %s: %w", addr.Name, err), conn.Close())
	}
	return c, nil
}

func (c *Child) greet(epoch uint32) error {
	if err := checkPeer(c.link.conn); err != nil {
		return err
	}
	if err := c.link.send(askHello, hello{uint64(epoch), c.heir.Stat != nil}.append(nil)); err != nil {
		return err
	}
	m, err := c.link.receive(c.link.timeout)
	if err != nil {
		return err
	}
	m.close()
	switch m.kind {
	case answerRefused:
		return refusal(m.payload)
	case answerHello:
		c.origin, err = parseOrigin(m.payload)
		return err
	}
	return fmt.Errorf("%w: answer %d to the greeting", errMalformed, m.kind)
}

// refusal is the error for a text of the other process.
func refusal(text []byte) error {
	const most = 1 << 10
	return errors.New(strings.ToValidUTF8(string(text[:min(len(text), most)]), "_"))
}

// Origin tells where the line of processes began.
func (c *Child) Origin() Origin { return c.origin }

// Sockets returns duplicates of the parent's sockets, which belong to the
// caller.
func (c *Child) Sockets() (all []Socket, err error) {
	err = c.ask(askSockets, func(s Socket) { all = append(all, s) })
	if err != nil {
		for _, s := range all {
			closeAll(s.Files)
		}
		return nil, err
	}
	return all, nil
}

// CloseAdmin has the parent close its administration port.
func (c *Child) CloseAdmin() error { return c.ask(askCloseAdmin, nil) }

// Stats has the heir take what changed in the parent's stats since the last
// time.
func (c *Child) Stats() error { return c.ask(askStats, nil) }

// Watch takes what a parent that ends has left, and its figures. Call it now
// and then: a parent that ends waits for it, but not for ever.
func (c *Child) Watch() error { return c.ask(askFigures, nil) }

// Drain has the parent stop accepting and reading datagrams.
func (c *Child) Drain() error { return c.ask(askDrain, nil) }

// Terminate ends the parent. When it returns nil the heir has got all
// connections and the last stats.
func (c *Child) Terminate() error {
	err := c.ask(askTerminate, nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone == errBye {
		return nil
	}
	c.leave(err)
	return err
}

// Figures returns what the parent last told of itself, zero once it is gone.
func (c *Child) Figures() Figures {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone != nil {
		return Figures{}
	}
	return c.figures
}

// Close leaves the parent alone.
func (c *Child) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leave(errors.New("it was left"))
}

// leave ends the connection; c.mu must be held.
func (c *Child) leave(why error) {
	if c.gone == nil {
		if why == nil {
			why = errors.New("it was left")
		}
		c.gone = why
		_ = c.link.conn.Close() // nothing that was sent matters any more
	}
}

// errBye is why a parent is gone that has said so.
var errBye = errors.New("it has ended")

// ask sends a question and takes what comes until the answer is complete. A
// parent that ends says so unasked: then that is the answer.
func (c *Child) ask(k kind, socket func(Socket)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone != nil {
		return fmt.Errorf("%w: %w", ErrGone, c.gone)
	}
	sent := c.link.send(k, nil) // if the parent has ended, its last words can still be read
	for {
		m, err := c.link.receive(c.link.timeout)
		if err != nil {
			c.leave(errors.Join(sent, err))
			break
		}
		done, err := c.take(&m, socket)
		if err != nil {
			m.close()
			c.leave(err)
		}
		if done || err != nil {
			break
		}
	}
	if c.gone != nil {
		return fmt.Errorf("%w: %w", ErrGone, c.gone)
	}
	return nil
}

// take takes one message and reports whether it completes the answer.
func (c *Child) take(m *message, socket func(Socket)) (done bool, err error) {
	switch {
	case m.kind == answerDone || m.kind == answerBye:
		m.close()
		if c.figures, err = parseFigures(m.payload); err != nil {
			return true, err
		}
		if m.kind == answerBye {
			c.leave(errBye)
		}
		return true, nil
	case m.kind == answerRefused:
		return true, refusal(m.payload)
	case m.kind == answerStats && c.heir.Stat != nil:
		m.close()
		return false, parseStats(m.payload, c.heir.Stat)
	case m.kind == answerSocket && socket != nil:
		r := reader{b: m.payload}
		s := Socket{Address: r.text(), Files: m.files}
		if err := r.done(); err != nil {
			return false, err
		}
		socket(s)
		return false, nil
	case m.kind == answerConnection && len(m.files) == 1:
		r := reader{b: m.payload}
		conn := Connection{Address: r.text(), File: m.files[0], Read: r.b}
		if r.bad {
			return false, errMalformed
		}
		if c.heir.Connection == nil {
			m.close()
			return false, nil
		}
		c.heir.Connection(conn)
		return false, nil
	}
	return false, fmt.Errorf("%w: answer %d", errMalformed, m.kind)
}
