package lifecycle

import "time"

// Strategy says when connections are told to close during a drain.
type Strategy uint8

// The strategies.
const (
	// Gradual closes with a probability that rises from 0 to 1 over the drain
	// time.
	Gradual Strategy = iota
	// Immediate closes at the first chance.
	Immediate
)

// String returns the name of s as the server information shows it.
func (s Strategy) String() string {
	if s == Immediate {
		return "Immediate"
	}
	return "Gradual"
}

// StartDrain begins a graceful drain of inbound traffic, or of all, and calls
// done in its own goroutine when the drain time is over. done may be nil. A
// drain that a running one covers is not started again: StartDrain returns
// false and done is never called. One that is wider than the running one is
// started; what drains already keeps its start.
func (s *Server) StartDrain(inboundOnly bool, done func()) bool {
	s.drainMu.Lock()
	defer s.drainMu.Unlock()
	if s.closed || s.inbound.Load() != 0 && (inboundOnly || s.outbound.Load() != 0) {
		return false
	}
	now := s.clock.Now().UnixNano()
	s.inbound.CompareAndSwap(0, now)
	if !inboundOnly {
		s.outbound.CompareAndSwap(0, now)
	}
	if done != nil {
		s.timers = append(s.timers, s.clock.AfterFunc(s.drainTime, func() { s.guard.Run("end of a drain", done) }))
	}
	return true
}

// EndDrain takes back all drains: connections are kept open again, and no
// function of a running drain is called.
func (s *Server) EndDrain() {
	s.drainMu.Lock()
	defer s.drainMu.Unlock()
	s.stopTimersLocked()
	s.inbound.Store(0)
	s.outbound.Store(0)
}

// Draining reports whether a drain of that direction has begun. It stays true
// after the drain time, until [Server.EndDrain].
func (s *Server) Draining(inbound bool) bool { return s.drainStart(inbound) != 0 }

func (s *Server) drainStart(inbound bool) int64 {
	if inbound {
		return s.inbound.Load()
	}
	return s.outbound.Load()
}

// ShouldClose reports whether a connection of that direction should be told to
// close with the response that is being sent: always when the health check was
// failed or the strategy is immediate, and with probability elapsed/drain time
// when it is gradual. Two calls may differ.
func (s *Server) ShouldClose(inbound bool) bool {
	if s.failed.Load() {
		return true
	}
	start := s.drainStart(inbound)
	if start == 0 {
		return false
	}
	elapsed := s.clock.Now().UnixNano() - start
	if s.strategy == Immediate || elapsed >= int64(s.drainTime) {
		return true
	}
	return elapsed > 0 && s.random()%uint64(s.drainTime) < uint64(elapsed)
}

// DrainTime returns how long a graceful drain takes.
func (s *Server) DrainTime() time.Duration { return s.drainTime }

// Close cancels running drains, so that none of their functions is called
// later, and refuses new ones. State and health can still be read.
func (s *Server) Close() {
	s.drainMu.Lock()
	defer s.drainMu.Unlock()
	s.closed = true
	s.stopTimersLocked()
}

// stopTimersLocked cancels running drains. s.drainMu must be held.
func (s *Server) stopTimersLocked() {
	for _, stop := range s.timers {
		stop()
	}
	s.timers = nil
}
