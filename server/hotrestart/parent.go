package hotrestart

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/store"
)

// Process is a server that another one can follow. Its methods are called one
// at a time, except for Lost.
type Process interface {
	// Ready returns why the server cannot be followed now, nil if it can.
	Ready() error
	Origin() Origin
	// Sockets returns duplicates of the sockets, which are closed when they
	// were sent.
	Sockets() ([]Socket, error)
	// CloseAdmin closes the administration port.
	CloseAdmin()
	// Stats calls yield for all stats that changed since the last call, the
	// first time for all that are used. From then on the server must not flush.
	Stats(yield func(*store.ExportedStat) bool)
	Figures() Figures
	// Drain stops accepting and reading datagrams.
	Drain()
	// Terminate begins the end of the server and does not wait for it.
	Terminate()
	// Lost tells that the successor went away without having ended the server.
	// drained is whether Drain was called.
	Lost(drained bool)
}

// Socket is one address with its sockets.
type Socket struct {
	Address string
	Files   []*os.File
}

// Connection is an open connection that is given away.
type Connection struct {
	Address string // of the listener
	File    *os.File
	Read    []byte // what was read and not taken in
}

// Parent waits for a successor. Make it with [Listen], then Run.
type Parent struct {
	cfg Config
	ln  listener

	closing sync.Once

	mu   sync.Mutex // guards the rest, and is held while a question is answered
	link *link      // to the successor, nil without one
	with hello
	left bool // Part was called
}

// Listen binds the socket of this process. The error wraps [ErrInUse] if
// another one has it.
func Listen(cfg Config) (*Parent, error) {
	cfg = cfg.withDefaults()
	if !available {
		return nil, errors.New("hotrestart: not available on this system")
	}
	ln, err := bind(cfg)
	if err != nil {
		return nil, fmt.Errorf("hotrestart: base id %d, socket %s: %w", cfg.BaseID, cfg.address(cfg.Epoch).Name, err)
	}
	return &Parent{cfg: cfg, ln: ln}, nil
}

// Close ends listening and removes the socket, unless another one has taken its
// place.
func (p *Parent) Close() {
	p.closing.Do(func() {
		_ = p.ln.Close() // what waits is refused
	})
}

// Run answers successors, one at a time, until ctx ends. Then it closes p.
func (p *Parent) Run(ctx context.Context, process Process) error {
	defer context.AfterFunc(ctx, p.Close)()
	defer p.Close()
	var served sync.WaitGroup
	defer served.Wait()
	for {
		c, err := p.ln.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			p.cfg.Logger.Warn("hot restart: accept failed", "error", err)
			if !wait(ctx, 100*time.Millisecond) {
				return nil
			}
			continue
		}
		served.Go(func() {
			defer c.Close()
			guard.New(p.cfg.Logger).Run("answer to a successor", func() {
				l := &link{conn: c, timeout: p.cfg.Timeout}
				defer context.AfterFunc(ctx, l.stop)()
				if err := p.serve(l, process); err != nil && !errors.Is(err, errEnd) && ctx.Err() == nil {
					p.cfg.Logger.Warn("hot restart: successor", "error", err)
				}
			})
		})
	}
}

func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// serve answers the questions of one successor.
func (p *Parent) serve(l *link, process Process) error {
	if err := checkPeer(l.conn); err != nil {
		return err
	}
	m, err := l.receive(l.timeout)
	if err != nil {
		return err
	}
	m.close()
	with, err := parseHello(m.payload)
	if err != nil || m.kind != askHello {
		return fmt.Errorf("%w: no greeting", errMalformed)
	}
	if err := p.admit(l, with, process); err != nil {
		return errors.Join(err, l.send(answerRefused, []byte(err.Error())))
	}
	drained, terminated := false, false
	defer func() {
		p.mu.Lock()
		p.link = nil
		lost := !p.left && !terminated
		p.mu.Unlock()
		if lost {
			process.Lost(drained)
		}
	}()
	if err := l.send(answerHello, process.Origin().append(nil)); err != nil {
		return err
	}
	for {
		m, err := l.receive(0)
		if err != nil {
			return err
		}
		m.close()
		drained = drained || m.kind == askDrain
		terminated = terminated || m.kind == askTerminate
		if err := p.answer(l, m.kind, process); err != nil {
			return err
		}
	}
}

// admit makes l the link to the successor, or says why it is not.
func (p *Parent) admit(l *link, with hello, process Process) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if want := uint64(p.cfg.Epoch) + 1; with.epoch != want {
		return fmt.Errorf("the running server has epoch %d; its successor has epoch %d, not %d", p.cfg.Epoch, want, with.epoch)
	}
	if p.link != nil || p.left {
		return errors.New("the running server has a successor already")
	}
	if err := process.Ready(); err != nil {
		return err
	}
	p.link, p.with = l, with
	return nil
}

// answer answers one question.
func (p *Parent) answer(l *link, k kind, process Process) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left {
		return nil // the answer to all questions has been sent
	}
	switch k {
	case askSockets:
		if err := sendSockets(l, process); err != nil {
			return err
		}
	case askCloseAdmin:
		process.CloseAdmin()
	case askStats:
		if err := sendStats(l, process.Stats); err != nil {
			return err
		}
	case askDrain:
		process.Drain()
	case askFigures: // which come with every answer
	case askTerminate:
		process.Terminate() // Part sends the answer
		return nil
	default:
		return fmt.Errorf("%w: question %d", errMalformed, k)
	}
	return l.send(answerDone, process.Figures().append(nil))
}

func sendSockets(l *link, process Process) error {
	all, err := process.Sockets()
	if err != nil {
		return errors.Join(err, l.send(answerRefused, []byte(err.Error())))
	}
	for _, s := range all {
		if err == nil {
			err = l.send(answerSocket, appendText(nil, s.Address), s.Files...)
		}
		closeAll(s.Files)
	}
	return err
}

// sendStats sends what stats yields in parts.
func sendStats(l *link, stats func(func(*store.ExportedStat) bool)) (err error) {
	var part []byte
	stats(func(h *store.ExportedStat) bool {
		part = appendStat(part, h)
		if len(part) >= statsPart {
			err, part = l.send(answerStats, part), part[:0]
		}
		return err == nil
	})
	if err == nil && len(part) > 0 {
		err = l.send(answerStats, part)
	}
	return err
}

// Parting is the end of a process that has a successor.
type Parting struct {
	p    *Parent
	link *link
	mu   sync.Mutex // held while something is sent
	err  error
}

// Part begins the end of this process. It returns nil if there is no successor
// that could be given anything. Call Finish afterwards.
func (p *Parent) Part() *Parting {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.link == nil || p.left {
		return nil
	}
	p.left = true
	return &Parting{p: p, link: p.link}
}

// Connection gives an open connection to the successor and closes the file. It
// reports false if that was not possible. Any number of goroutines may call it
// at a time.
func (t *Parting) Connection(c Connection) bool {
	defer c.File.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = t.link.send(answerConnection, append(appendText(nil, c.Address), c.Read...), c.File)
	}
	return t.err == nil
}

// Finish sends the last stats, if the successor wanted any, and ends the
// connection. It returns what went wrong on the way.
func (t *Parting) Finish(process Process) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil && t.p.with.stats {
		t.err = sendStats(t.link, process.Stats)
	}
	if t.err == nil {
		t.err = t.link.send(answerBye, process.Figures().append(nil))
	}
	_ = t.link.conn.CloseWrite() // all was sent, and the successor may be gone
	return t.err
}
