package hotrestart

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// link is a connection between two processes. One goroutine reads from it at a
// time, and one writes.
type link struct {
	conn    *net.UnixConn
	timeout time.Duration // for the rest of a message that has begun, and for writing one
	stopped atomic.Bool   // nothing is read any more
	side    string        // old or new, for failpoints

	sent, received uint32 // numbers of the last messages
}

// message is a received message. The receiver owns its files.
type message struct {
	kind    kind
	payload []byte
	files   []*os.File
	cut     bool // files are missing, since this process has no free descriptors
}

// close closes the files of a message that is not used.
func (m *message) close() { closeAll(m.files) }

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // duplicates: nothing was written
	}
}

// send sends one message. The files stay open.
func (l *link) send(k kind, payload []byte, files ...*os.File) error {
	if len(payload) > maxPayload || len(files) > maxFiles {
		return fmt.Errorf("%w: %d bytes and %d files", errMalformed, len(payload), len(files))
	}
	if err := l.conn.SetWriteDeadline(time.Now().Add(l.timeout)); err != nil {
		return err
	}
	l.point(k, "sending")
	l.sent++
	b := append(head{k, uint32(len(payload)), uint32(len(files)), l.sent}.append(make([]byte, 0, headBytes+len(payload))), payload...)
	for _, b := range l.copies(k, b) {
		if err := l.write(b, files); err != nil {
			return err
		}
	}
	return nil
}

// write writes the message b.
func (l *link) write(b []byte, files []*os.File) error {
	if len(files) == 0 {
		_, err := l.conn.Write(b)
		return err
	}
	fds := make([]int, len(files))
	for i, f := range files {
		raw, err := f.SyscallConn()
		if err != nil {
			return err
		}
		// Fd would set the socket, which others use, to blocking mode.
		if err := raw.Control(func(fd uintptr) { fds[i] = int(fd) }); err != nil {
			return err
		}
	}
	// The files go with the head, so that they cannot be overlooked.
	head := min(headBytes, len(b))
	if _, _, err := l.conn.WriteMsgUnix(b[:head], rights(fds), nil); err != nil {
		return err
	}
	_, err := l.conn.Write(b[head:])
	return err
}

// call sends a question and returns the first message of its answer.
func (l *link) call(k kind, payload []byte) (message, error) {
	if err := l.send(k, payload); err != nil {
		return message{}, err
	}
	return l.receive(l.timeout)
}

// receive waits up to wait for the next message to begin, without limit if that
// is 0, and then reads it. A message that was sent twice is received once.
func (l *link) receive(wait time.Duration) (message, error) {
	for {
		m, number, err := l.next(wait)
		switch {
		case err != nil:
			return m, err
		case number == l.received+1:
			l.received = number
			return m, nil
		case number != l.received:
			m.close()
			return message{}, fmt.Errorf("%w: number %d after %d", errMalformed, number, l.received)
		}
		m.close()
	}
}

// lateRead is the time for a read whose deadline passed before it began.
const lateRead = 100 * time.Millisecond

// next reads the next message and its number.
func (l *link) next(wait time.Duration) (m message, number uint32, err error) {
	defer func() {
		if err != nil {
			m.close()
			m = message{}
		}
	}()
	var until time.Time
	if wait > 0 {
		until = time.Now().Add(wait)
	}
	late := false
	read := func(b []byte) (int, error) {
		n, err := l.read(&m, b, until)
		if errors.Is(err, os.ErrDeadlineExceeded) && !late && !l.stopped.Load() {
			// This process may have been suspended: data that has arrived counts.
			late, until = true, time.Now().Add(lateRead)
			n, err = l.read(&m, b, until)
		}
		return n, err
	}
	var buf [headBytes]byte
	n, err := read(buf[:])
	if err != nil {
		return m, 0, err
	}
	until = time.Now().Add(l.timeout)
	for n < headBytes {
		k, err := read(buf[n:])
		if err != nil {
			return m, 0, unexpected(err)
		}
		n += k
	}
	h, err := parseHead(buf[:])
	if err != nil {
		return m, 0, err
	}
	m.kind = h.kind
	// Memory is taken as bytes arrive: a length alone costs nothing.
	const step = 64 << 10
	for len(m.payload) < int(h.length) {
		at := len(m.payload)
		m.payload = append(m.payload, make([]byte, min(step, int(h.length)-at))...)
		k, err := read(m.payload[at:])
		if err != nil {
			return m, 0, unexpected(err)
		}
		m.payload = m.payload[:at+k]
	}
	switch {
	case m.cut && m.kind == answerConnection: // is closed, the rest of the handoff is not affected
	case m.cut:
		return m, 0, fmt.Errorf("%w: its files did not arrive: some are missing", errMalformed)
	case len(m.files) != int(h.files):
		return m, 0, fmt.Errorf("%w: %d files, %d announced", errMalformed, len(m.files), h.files)
	}
	return m, h.number, nil
}

// errEnd is what receive returns when the other side has closed.
var errEnd = errors.New("hotrestart: the other process has closed the connection")

func unexpected(err error) error {
	if errors.Is(err, errEnd) {
		return fmt.Errorf("%w in the middle of a message", errEnd)
	}
	return err
}

// stop ends the read that goes on and refuses all further ones.
func (l *link) stop() {
	l.stopped.Store(true)
	_ = l.conn.SetReadDeadline(time.Unix(1, 0)) // fails if it is closed
}

// read reads some bytes and takes the files that come with them.
func (l *link) read(m *message, b []byte, until time.Time) (int, error) {
	if err := l.conn.SetReadDeadline(until); err != nil {
		return 0, err
	}
	if l.stopped.Load() { // perhaps before the deadline was set
		return 0, os.ErrDeadlineExceeded
	}
	oob := make([]byte, rightsRoom())
	n, oobn, flags, _, err := l.conn.ReadMsgUnix(b, oob)
	m.cut = m.cut || rightsCut(flags)
	files, bad := receivedFiles(oob[:oobn])
	m.files = append(m.files, files...)
	if err == nil && bad != nil {
		err = fmt.Errorf("%w: its files did not arrive: %w", errMalformed, bad)
	}
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return n, err
	case n == 0:
		return 0, errEnd
	case len(m.files) > maxFiles:
		return n, fmt.Errorf("%w: too many files", errMalformed)
	}
	return n, nil
}

// gone reports whether an error says that the other process is not there.
func gone(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrNotExist)
}

// lost reports whether an error means that the other process has closed the
// link, as its death does.
func lost(err error) bool {
	return errors.Is(err, errEnd) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// alive reports whether the process of an epoch lives: whether it answers on its
// socket. A process that has closed its link and does not answer is dying.
func (c Config) alive(epoch uint32, closed bool) bool {
	defer c.spare.fill()
	conn, err := c.spare.dial(c.address(epoch))
	if err != nil {
		return !gone(err)
	}
	defer conn.Close()
	l := &link{conn: conn, timeout: c.Timeout}
	m, err := l.call(askAlive, nil)
	m.close()
	return err == nil || !closed && !lost(err)
}

// spare holds a descriptor in reserve: a process that has no free ones must still find
// out whether another one lives.
type spare struct {
	mu   sync.Mutex
	file *os.File // nil while it is used
	shut bool
}

func newSpare() *spare {
	s := new(spare)
	s.fill()
	return s
}

// fill reserves a descriptor unless one is reserved.
func (s *spare) fill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil && !s.shut {
		s.file, _ = os.Open(os.DevNull) // tried again after the next use
	}
}

// dial connects to addr, with the reserved descriptor if there is no other.
func (s *spare) dial(addr *net.UnixAddr) (*net.UnixConn, error) {
	conn, err := net.DialUnix("unix", nil, addr)
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		s.free(false)
		conn, err = net.DialUnix("unix", nil, addr)
	}
	return conn, err
}

// free closes the reserved descriptor, for good if shut is set.
func (s *spare) free(shut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shut = s.shut || shut
	if s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
}
