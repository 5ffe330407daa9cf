package hotrestart

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/store"
)

// Process is a server that can have a successor. Its methods are called one at
// a time, except for Lost.
type Process interface {
	// Ready returns an error if the server cannot have a successor now.
	Ready() error
	// Serving reports whether the server serves, or has served. It can be called
	// at any time.
	Serving() bool
	Origin() Origin
	// Sockets returns duplicates of the sockets, which are closed after they were
	// sent.
	Sockets() ([]Socket, error)
	// Stats calls yield for all stats that have changed since the last call, the
	// first time for all that are used.
	Stats(yield func(*store.ExportedStat) bool)
	// Commit flushes the stats a last time. From then on the successor does so.
	Commit()
	// Acknowledged is called when the successor has everything that Stats has
	// yielded.
	Acknowledged()
	// Parcels returns the parcels that sinks have not delivered, after Commit.
	// The successor owns them once Acknowledged is called.
	Parcels() []flush.Parcel
	Usage() Usage
	// Drain stops accepting connections and reading datagrams, in a way that
	// both can resume.
	Drain()
	// Terminate starts the shutdown of the server and does not wait for it.
	Terminate()
	// Lost is called when the connection to the successor ends before Part. If
	// replaced is set, the successor is alive and has committed: the server
	// must exit. Otherwise it must return to the state before there was a
	// successor, unless it was terminated.
	Lost(replaced bool)
}

// Socket is one address with its sockets.
type Socket struct {
	Address string
	Files   []*os.File
}

// Connection is an open connection that is handed over.
type Connection struct {
	Address string // of the listener
	File    *os.File
	Read    []byte // bytes read but not consumed
}

// Parent waits for a successor. Create it with [Listen], then call Run.
type Parent struct {
	cfg Config
	ln  listener

	closing sync.Once

	mu        sync.Mutex // guards the rest, and is held while a question is answered
	link      *link      // to the successor, nil without one
	with      hello
	committed bool
	left      bool          // Part was called
	finished  bool          // and the last batch was sent
	batch     uint64        // of stats, the last that was sent
	acked     uint64        // the last that was acknowledged
	quiet     chan struct{} // closed when all batches are acknowledged after Part, or the link is closed
}

// Listen binds the socket of this process. The error wraps [ErrInUse] if
// another process has it.
func Listen(cfg Config) (*Parent, error) {
	cfg = cfg.withDefaults()
	if !available {
		return nil, errors.New("hotrestart: not available on this system")
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	ln, err := bind(cfg)
	if err != nil {
		return nil, cfg.listenError(err)
	}
	cfg.spare = newSpare()
	return &Parent{cfg: cfg, ln: ln}, nil
}

// Close stops listening and removes the socket, unless another one has taken
// its place.
func (p *Parent) Close() {
	p.closing.Do(func() {
		_ = p.ln.Close() // what waits is refused
		p.cfg.spare.free(true)
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
				l := &link{conn: c, timeout: p.cfg.Timeout, side: "old"}
				defer context.AfterFunc(ctx, l.stop)()
				if err := p.serve(l, process); err != nil && !lost(err) && ctx.Err() == nil {
					p.cfg.Logger.Warn("hot restart: successor", "error", err)
				}
			})
		})
	}
}

func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
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
	if m.kind == askAlive {
		if !process.Serving() {
			return nil
		}
		return l.send(answerDone, nil)
	}
	with, err := parseHello(m.payload)
	if err != nil || m.kind != askHello {
		return fmt.Errorf("%w: no greeting", errMalformed)
	}
	l.point(m.kind, "asked")
	err = p.admit(l, with, process)
	if errors.Is(err, errEnding) {
		return l.send(answerBye, nil)
	}
	if err != nil {
		return errors.Join(err, l.send(answerRefused, []byte(err.Error())))
	}
	err = errors.New("a panic")
	defer func() { p.leave(l, process, err) }()
	for {
		l.point(m.kind, "answered")
		if m, err = l.receive(0); err != nil {
			return err
		}
		m.close()
		l.point(m.kind, "asked")
		if err = p.answer(l, &m, process); err != nil {
			return err
		}
	}
}

// leave ends the link to a successor after an error. Another one is admitted
// when that is done.
func (p *Parent) leave(l *link, process Process, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.link = nil
	close(p.quiet)
	if p.left {
		return
	}
	if !lost(err) { // the successor may be waiting
		_ = l.send(answerRefused, []byte("the running server cannot continue: "+err.Error()))
	}
	_ = l.conn.Close()
	// The successor may have been replaced itself while this process was suspended.
	next := p.cfg.Epoch + 1
	process.Lost(p.committed && (p.cfg.alive(next, lost(err)) || p.cfg.alive(next+1, true)))
}

// errEnding is why a server that ends admits no successor.
var errEnding = errors.New("the running server is ending")

// admit makes l the link to the successor, or returns why it is not.
func (p *Parent) admit(l *link, with hello, process Process) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if want := uint64(p.cfg.Epoch) + 1; with.epoch != want {
		return fmt.Errorf("the running server has epoch %d; its successor has epoch %d, not %d", p.cfg.Epoch, want, with.epoch)
	}
	switch {
	case p.link != nil:
		return errors.New("the running server has a successor already")
	case p.left:
		return errEnding
	}
	if err := process.Ready(); err != nil {
		return err
	}
	if err := l.send(answerHello, process.Origin().append(nil)); err != nil {
		return err
	}
	p.link, p.with, p.committed, p.batch, p.acked, p.quiet = l, with, false, 0, 0, make(chan struct{})
	return nil
}

func (p *Parent) answer(l *link, m *message, process Process) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := reader{b: m.payload}
	applied := r.number()
	if err := r.done(); err != nil || applied > p.batch || applied < p.acked {
		return fmt.Errorf("%w: question %d after batch %d", errMalformed, m.kind, applied)
	}
	if applied > p.acked {
		p.acked = applied
		process.Acknowledged()
	}
	if p.left { // the answer to all questions has been sent
		if p.finished && p.acked == p.batch {
			return errEnd
		}
		return nil
	}
	switch m.kind {
	case askSockets:
		if err := sendSockets(l, process); err != nil {
			return err
		}
	case askStats:
		if err := p.sendStats(l, process); err != nil {
			return err
		}
	case askCommit:
		p.commit(process)
		if err := p.sendStats(l, process); err != nil {
			return err
		}
	case askDrain:
		process.Drain()
	case tellAck: // see above
		return nil
	case askUsage: // are part of every answer
	case askTerminate:
		process.Terminate() // Part sends the answer
		return nil
	default:
		return fmt.Errorf("%w: question %d", errMalformed, m.kind)
	}
	return l.send(answerDone, process.Usage().append(binary.AppendUvarint(nil, p.batch)))
}

// commit moves the duty to flush the stats to the successor, if it wants them.
// p.mu must be held.
func (p *Parent) commit(process Process) {
	if p.with.stats && !p.committed {
		process.Commit()
	}
	p.committed = true
}

func sendSockets(l *link, process Process) error {
	all, err := process.Sockets()
	if err != nil {
		return errors.Join(err, l.send(answerRefused, []byte(err.Error())))
	}
	for _, s := range all {
		for rest := s.Files; err == nil; { // one message even without files
			n := min(len(rest), maxFiles)
			err = l.send(answerSocket, appendText(nil, s.Address), rest[:n]...)
			if rest = rest[n:]; len(rest) == 0 {
				break
			}
		}
		closeAll(s.Files)
	}
	return err
}

// sendStats sends the stats that have changed as one batch. p.mu must be held.
func (p *Parent) sendStats(l *link, process Process) (err error) {
	if !p.with.stats {
		return nil
	}
	p.batch++
	var part []byte
	process.Stats(func(h *store.ExportedStat) bool {
		part = appendStat(part, h)
		if len(part) >= batchPart {
			err, part = l.send(answerStats, part), part[:0]
			l.point(answerStats, "part")
		}
		return err == nil
	})
	if err == nil && len(part) > 0 {
		err = l.send(answerStats, part)
	}
	return err
}

// sendParcels sends what sinks have not delivered as a part of the batch that sendStats
// has begun. p.mu must be held.
func (p *Parent) sendParcels(l *link, all []flush.Parcel) error {
	var part []byte
	for i := range all {
		part = appendParcel(part, &all[i])
		if len(part) < batchPart && i < len(all)-1 {
			continue
		}
		if err := l.send(answerParcels, part); err != nil {
			return err
		}
		part = part[:0]
	}
	return nil
}

// Handoff passes the last state of a process to its successor.
type Handoff struct {
	p    *Parent
	link *link
	mu   sync.Mutex // held while something is sent
	err  error
}

// Part starts the handoff at the end of this process. It returns nil if there
// is no successor. Otherwise Finish must be called.
func (p *Parent) Part() *Handoff {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.link == nil || p.left {
		p.left = true
		return nil
	}
	p.left = true
	return &Handoff{p: p, link: p.link}
}

// Connection hands an open connection to the successor and closes the file. It
// returns false if that was not possible. It is safe for concurrent use.
func (t *Handoff) Connection(c Connection) bool {
	defer c.File.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = t.link.send(answerConnection, append(appendText(nil, c.Address), c.Read...), c.File)
	}
	return t.err == nil
}

// Finish sends the last stats and the packets that sinks have not delivered, if
// the successor takes stats, and closes the connection when the successor has
// acknowledged them. After an error, this process must still flush and deliver
// them. A successor that keeps the connection open without answering may be
// suspended and still read them.
func (t *Handoff) Finish(process Process) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.p
	p.mu.Lock()
	if t.err == nil {
		p.commit(process)
		t.err = p.sendStats(t.link, process)
	}
	if t.err == nil && p.with.stats {
		t.err = p.sendParcels(t.link, process.Parcels())
	}
	if t.err == nil {
		t.link.point(answerBye, "asked")
		t.err = t.link.send(answerBye, process.Usage().append(binary.AppendUvarint(nil, p.batch)))
	}
	p.finished = true
	p.mu.Unlock()
	_ = t.link.conn.CloseWrite() // the successor may be gone
	if !p.with.stats {
		return t.err
	}
	select { // also after an error: an acknowledgement of the batch before may have arrived
	case <-p.quiet:
	case <-time.After(t.link.timeout):
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.err == nil && p.acked < p.batch && p.link == nil {
		t.err = errors.New("hotrestart: the successor did not acknowledge the last stats")
	}
	return t.err
}
