package admin

import (
	"context"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Change is one change made by a request.
type Change struct{ What, Before, After string }

// AuditEntry is a request that changed something or attempted to.
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

	// DryRun is set if the Changes were not made.
	DryRun bool
	// Until is when the previous values return automatically; the zero time
	// means never.
	Until time.Time
	// Undoes is the Seq of the entry whose changes this entry undid, and
	// UndoneBy the Seq of the entry that undid this one; 0 means none.
	Undoes, UndoneBy uint64

	edit  *edit // nil: no settings
	bytes int   // of memory
}

// Undoable reports whether /audit/undo can restore the values before the entry, unless
// they changed since.
func (e *AuditEntry) Undoable() bool { return e.UndoneBy == 0 && e.edit.changed() }

// size returns the memory of the entry in bytes, about.
func (e *AuditEntry) size() int {
	n := 512 + len(e.Path) + len(e.Peer) + len(e.Principal.Name) + len(e.Reason)
	for _, key := range e.Keys {
		n += 16 + len(key)
	}
	for _, c := range e.Changes {
		n += 48 + len(c.What) + len(c.Before) + len(c.After)
	}
	if e.edit != nil {
		for _, v := range e.edit.values {
			n += 128 + len(v.name) + len(v.before) + len(v.after)
		}
	}
	return n
}

// auditLog keeps the most recent entries.
type auditLog struct {
	logger *slog.Logger

	mu    sync.Mutex
	list  []AuditEntry // the oldest first
	seq   uint64       // of the last entry
	bytes int          // of list

	most, mostBytes int // below 0: no limit
}

func newAuditLog(most, mostBytes int, logger *slog.Logger) *auditLog {
	return &auditLog{most: most, mostBytes: mostBytes, logger: logger}
}

// add assigns e a sequence number, stores it and returns the number.
func (a *auditLog) add(e AuditEntry) uint64 {
	a.mu.Lock()
	e.Seq, e.bytes = a.seq+1, e.size()
	if done := a.atLocked(e.Undoes); done != nil {
		done.UndoneBy = e.Seq
		if first := a.atLocked(done.Undoes); first != nil {
			first.UndoneBy = 0 // its changes are in effect again
		}
	}
	a.seq, a.list, a.bytes = e.Seq, append(a.list, e), a.bytes+e.bytes
	for len(a.list) > 1 && (a.most >= 0 && len(a.list) > a.most || over(a.bytes, a.mostBytes)) {
		a.bytes -= a.list[0].bytes
		a.list[0] = AuditEntry{}
		a.list = a.list[1:]
	}
	a.mu.Unlock()

	attrs := []slog.Attr{slog.Uint64("seq", e.Seq), slog.String("method", e.Method), slog.String("path", e.Path),
		slog.String("keys", strings.Join(e.Keys, ",")), slog.String("peer", e.Peer), slog.String("principal", e.Principal.Name), slog.String("role", e.Principal.Role.String()), slog.Int("status", e.Status)}
	if e.DryRun {
		attrs = append(attrs, slog.Bool("dry_run", true))
	}
	if !e.Until.IsZero() {
		attrs = append(attrs, slog.Time("until", e.Until))
	}
	if e.Undoes != 0 {
		attrs = append(attrs, slog.Uint64("undoes", e.Undoes))
	}
	if e.Reason != "" {
		attrs = append(attrs, slog.String("reason", e.Reason))
	}
	for _, c := range e.Changes {
		attrs = append(attrs, slog.Group(strings.ReplaceAll(c.What, " ", "_"), slog.String("before", c.Before), slog.String("after", c.After)))
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

// atLocked returns an entry, or nil if it is not kept. a.mu must be held.
func (a *auditLog) atLocked(seq uint64) *AuditEntry {
	first := a.seq - uint64(len(a.list)) + 1
	if seq < first || seq > a.seq || seq == 0 {
		return nil
	}
	return &a.list[seq-first]
}

// find returns an entry, and false if it is not kept.
func (a *auditLog) find(seq uint64) (AuditEntry, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e := a.atLocked(seq); e != nil {
		return *e, true
	}
	return AuditEntry{}, false
}

// Audit returns up to n requests that changed something or tried to, newest first.
func (s *Server) Audit(n int) []AuditEntry {
	s.audit.mu.Lock()
	defer s.audit.mu.Unlock()
	return tail(s.audit.list, max(n, 0))
}

func (s *Server) showAudit(w *Response, r *Request) error {
	limit, err := listLimit(r.query)
	if err != nil {
		return err
	}
	p, now := newFacts(r), s.now()
	listOf(p, "temporary", s.Temporary(), func(t Temporary) {
		p.string("settings", t.Settings)
		p.string("name", t.Name)
		p.string("value", t.Value)
		p.string("back_to", t.BackTo)
		p.time("until", t.Until)
		p.float("remaining_seconds", math.Ceil(max(t.Until.Sub(now), 0).Seconds()))
		p.number("seq", t.Seq)
	})
	listOf(p, "entries", s.Audit(limit), p.auditEntry)
	return p.send(w)
}

func (p *facts) auditEntry(e AuditEntry) {
	p.number("seq", e.Seq)
	p.time("time", e.Time)
	p.optional("method", e.Method)
	p.string("path", e.Path)
	if len(e.Keys) > 0 {
		p.strings("keys", e.Keys)
	}
	p.optional("who", e.Principal.Name)
	if e.Principal.Role != RoleNone {
		p.string("role", e.Principal.Role.String())
	}
	p.optional("peer", e.Peer)
	p.number("status", uint64(max(e.Status, 0)))
	p.optional("reason", e.Reason)
	p.flag("dry_run", e.DryRun)
	p.moment("until", e.Until)
	p.flag("undoable", e.Undoable())
	p.positive("undoes", e.Undoes)
	p.positive("undone_by", e.UndoneBy)
	if len(e.Changes) > 0 {
		listOf(p, "changes", e.Changes, func(c Change) {
			p.string("name", c.What)
			p.string("before", c.Before)
			p.string("after", c.After)
		})
	}
}

// parseSeq parses the number of an entry.
func parseSeq(text string) (uint64, error) {
	seq, err := strconv.ParseUint(text, 10, 64)
	if err != nil || seq == 0 {
		return 0, badRequest("usage: /audit/undo?id=<number of the change in /audit>\n")
	}
	return seq, nil
}
