package admin

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Limits of patience: how long a client that got the reserved descriptor can be silent.
// A probe sends its request at once.
const (
	mostPatience  = 100 * time.Millisecond
	leastPatience = 5 * time.Millisecond
)

// spare holds a file descriptor in reserve, so that a connection can be accepted when
// the process has no other left.
type spare struct {
	mu   sync.Mutex
	file *os.File // nil while a connection has its descriptor
	shut bool     // nothing is reserved any more
	open func() (*os.File, error)

	// patience is for the next client. Each silent one halves it, so that a queue of
	// idle connections does not use up the time of a probe behind them, whose request
	// has long arrived.
	patience time.Duration
	most     time.Duration // patience after a client that spoke
}

// awaits reports whether the client of a connection with the reserved descriptor
// speaks in time.
func (s *spare) awaits(nc net.Conn) bool {
	s.mu.Lock()
	patience := s.patience
	s.mu.Unlock()
	spoke := speaks(nc, patience)
	s.mu.Lock()
	defer s.mu.Unlock()
	if spoke {
		s.patience = s.most
	} else {
		s.patience = max(patience/2, leastPatience)
	}
	return spoke
}

// fill reserves a descriptor if none is reserved, and reports whether none was free.
func (s *spare) fill() (full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil && !s.shut {
		var err error
		s.file, err = s.open() // tried again with the next connection
		return usedUp(err)
	}
	return false
}

// usedUp reports whether an error means that there is no free descriptor.
func usedUp(err error) bool { return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) }

// release frees the descriptor and reports whether there was one.
func (s *spare) release() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return false
	}
	_ = s.file.Close()
	s.file = nil
	return true
}

// close frees the descriptor for good: connections that end later reserve none.
func (s *spare) close() {
	s.mu.Lock()
	s.shut = true
	s.mu.Unlock()
	s.release()
}

// accept accepts a connection. last is set if no descriptor is left to reserve. Accept
// fails without one even if no client waits, so the shortage can be over when one comes.
func (s *spare) accept(ln net.Listener) (nc net.Conn, last bool, err error) {
	if nc, err = ln.Accept(); usedUp(err) && s.release() {
		nc, err = ln.Accept()
	} else if err != nil {
		return nil, false, err
	}
	return nc, s.fill() && err == nil, err
}

// openNull opens a file that takes a descriptor and nothing else.
func openNull() (*os.File, error) { return os.Open(os.DevNull) }
