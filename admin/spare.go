package admin

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
)

// spare holds a file descriptor in reserve, so that a connection can be accepted when
// the process has no other left.
type spare struct {
	mu   sync.Mutex
	file *os.File // nil while a connection has its descriptor
}

// fill reserves a descriptor if none is reserved and one is free.
func (s *spare) fill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		s.file, _ = os.Open(os.DevNull) // tried again after the next connection
	}
}

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

// accept accepts a connection. last is set if the connection uses the reserved
// descriptor.
func (s *spare) accept(ln net.Listener) (nc net.Conn, last bool, err error) {
	nc, err = ln.Accept()
	if (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)) && s.release() {
		last = true
		if nc, err = ln.Accept(); err != nil {
			s.fill()
		}
	}
	return nc, last, err
}
