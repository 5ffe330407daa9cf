package lifecycle

import (
	"cmp"
	"time"
)

// The directions of traffic, as indices.
const (
	inbound = iota
	outbound
)

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
	if s.closed || s.drains[inbound] != 0 && (inboundOnly || s.drains[outbound] != 0) {
		return false
	}
	now := s.now()
	s.drains[inbound] = cmp.Or(s.drains[inbound], now)
	if !inboundOnly {
		s.drains[outbound] = cmp.Or(s.drains[outbound], now)
	}
	s.publishDrainsLocked()
	if done != nil {
		s.timers = append(s.timers, s.clock.AfterFunc(s.drainTime, func() { s.guard.Run("end of a drain", done) }))
	}
	return true
}

// StartHandoff drains all traffic until [Server.EndHandoff], beside the drains of
// [Server.StartDrain]: neither of the two starts or ends the other.
func (s *Server) StartHandoff() { s.setHandoff(s.now()) }

// EndHandoff ends the drain of [Server.StartHandoff]. Connections are kept open again
// unless another drain is running.
func (s *Server) EndHandoff() { s.setHandoff(0) }

// now returns the age of the server plus one nanosecond, so that it is not 0. Setting the
// clock of the system does not change it.
func (s *Server) now() int64 { return int64(s.clock.Now().Sub(s.made)) + 1 }

func (s *Server) setHandoff(start int64) {
	s.drainMu.Lock()
	defer s.drainMu.Unlock()
	s.handoff = start
	s.publishDrainsLocked()
}

// publishDrainsLocked stores the start of each direction's first drain. s.drainMu must
// be held.
func (s *Server) publishDrainsLocked() {
	for i, start := range s.drains {
		if start == 0 || s.handoff != 0 && s.handoff < start {
			start = s.handoff
		}
		s.draining[i].Store(start)
	}
}

// Draining reports whether a drain of that direction has started. It stays true after
// the drain time.
func (s *Server) Draining(inbound bool) bool { return s.drainStart(inbound) != 0 }

func (s *Server) drainStart(in bool) int64 {
	if in {
		return s.draining[inbound].Load()
	}
	return s.draining[outbound].Load()
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
	elapsed := s.now() - start
	if s.strategy == Immediate || elapsed >= int64(s.drainTime) {
		return true
	}
	return s.random()%uint64(s.drainTime) < uint64(elapsed)
}

// DrainEnd returns when the drain of that direction is over, or the zero time if none
// has started. It can lie in the past.
func (s *Server) DrainEnd(inbound bool) time.Time {
	if start := s.drainStart(inbound); start != 0 {
		return s.made.Add(time.Duration(start - 1)).Add(s.drainTime)
	}
	return time.Time{}
}

// DrainTime returns the duration of a graceful drain.
func (s *Server) DrainTime() time.Duration { return s.drainTime }

// Close cancels running drains, so that none of their functions is called, and
// rejects new ones. State and health remain readable.
func (s *Server) Close() {
	s.drainMu.Lock()
	defer s.drainMu.Unlock()
	s.closed = true
	for _, stop := range s.timers {
		stop()
	}
	s.timers = nil
}
