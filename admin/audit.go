package admin

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Change is one change made by a request.
type Change struct{ What, Before, After string }

// AuditEntry is a request that changed something or tried to.
type AuditEntry struct {
	Seq     uint64 // from 1, without gaps
	Time    time.Time
	Method  string
	Path    string
	Keys    []string // parameter names; values can be secret
	Changes []Change
	Peer    string
	// Principal is the identity of the client, if known.
	Principal Principal
	Status    int
	Reason    string // why it was refused, or ""
}

// auditLog keeps the most recent entries.
type auditLog struct {
	logger *slog.Logger

	mu   sync.Mutex
	ring []AuditEntry
	size int // of a full ring; below 0 it grows without limit
	seq  uint64
}

func newAuditLog(size int, logger *slog.Logger) *auditLog {
	return &auditLog{size: size, logger: logger}
}

// add assigns e a sequence number, stores it and returns the number.
func (a *auditLog) add(e AuditEntry) uint64 {
	a.mu.Lock()
	a.seq++
	e.Seq = a.seq
	if a.size < 0 || len(a.ring) < a.size {
		a.ring = append(a.ring, e)
	} else {
		a.ring[(e.Seq-1)%uint64(a.size)] = e
	}
	a.mu.Unlock()

	attrs := []slog.Attr{slog.Uint64("seq", e.Seq), slog.String("method", e.Method), slog.String("path", e.Path),
		slog.String("keys", strings.Join(e.Keys, ",")), slog.String("peer", e.Peer), slog.String("principal", e.Principal.Name), slog.String("role", e.Principal.Role.String()), slog.Int("status", e.Status)}
	if e.Reason != "" {
		attrs = append(attrs, slog.String("reason", e.Reason))
	}
	for _, c := range e.Changes {
		attrs = append(attrs, slog.Group(c.What, slog.String("before", c.Before), slog.String("after", c.After)))
	}
	a.logger.LogAttrs(context.Background(), slog.LevelInfo, "audit", attrs...)
	return e.Seq
}

// auditRefusal records a mutation refused with 403. It limits the rate per address,
// so that a caller without permissions cannot evict all other entries.
func (s *Server) auditRefusal(r *Request, reason string) {
	now := s.now()
	if s.refusals.note(r.from, now) {
		s.audit.add(AuditEntry{Time: now, Method: r.method, Path: r.path, Peer: r.peer, Principal: r.principal, Status: 403, Reason: reason})
	}
}

// last returns up to n entries, newest first.
func (a *auditLog) last(n int) []AuditEntry {
	a.mu.Lock()
	defer a.mu.Unlock()
	n = min(n, len(a.ring))
	out := make([]AuditEntry, 0, max(n, 0))
	for i := range n {
		out = append(out, a.ring[(a.seq-1-uint64(i))%uint64(len(a.ring))])
	}
	return out
}

// Audit returns up to n requests that changed something or tried to, newest first.
func (s *Server) Audit(n int) []AuditEntry { return s.audit.last(n) }
