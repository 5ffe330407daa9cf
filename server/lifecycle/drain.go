package lifecycle

import "time"

// Strategy determines when connections are closed during a drain.
type Strategy uint8

// The strategies.
const (
	// Gradual closes with a probability that rises from 0 to 1 over the drain time.
	Gradual Strategy = iota
	// Immediate closes at the first opportunity.
	Immediate
)

// String returns the name of s in the server information.
func (s Strategy) String() string {
	if s == Immediate {
		return "Immediate"
	}
	return "Gradual"
}

// StartDrain starts a graceful drain of inbound or all traffic and calls done, which
// may be nil, in its own goroutine after the drain time. If a running drain covers
// the new one, StartDrain returns false and never calls done. A wider drain is
// started; traffic that is already draining keeps its start time.
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

// EndDrain cancels all drains: connections are kept open again, and no function of a
// running drain is called.
func (s *Server) EndDrain() {
	s.drainMu.Lock()
	defer s.drainMu.Unlock()
	s.stopTimersLocked()
	s.inbound.Store(0)
	s.outbound.Store(0)
}

// Draining reports whether a drain of that direction has started. It stays true after
// the drain time, until [Server.EndDrain].
func (s *Server) Draining(inbound bool) bool { return s.drainStart(inbound) != 0 }

func (s *Server) drainStart(inbound bool) int64 {
	if inbound {
		return s.inbound.Load()
	}
	return s.outbound.Load()
}

// ShouldClose reports whether a connection of that direction should close after the
// current response: always if the health check has been failed or the strategy is
// immediate, and with probability elapsed/drain time if it is gradual. Two calls can
// differ.
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

// DrainTime returns the duration of a graceful drain.
func (s *Server) DrainTime() time.Duration { return s.drainTime }

// Close cancels running drains, so that none of their functions is called, and
// rejects new ones. State and health remain readable.
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
