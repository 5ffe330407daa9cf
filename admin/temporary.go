package admin

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/redact"
)

// Temporary is a setting whose previous value returns automatically. Values
// that look secret are masked.
type Temporary struct {
	Settings string // their name
	Name     string
	Value    string
	BackTo   string // "" if there was none
	Until    time.Time
	Seq      uint64 // of the entry in the audit log that set it
}

// temporary is a Temporary with its values.
type temporary struct {
	value, back string
	until       time.Time
	seq         uint64
}

// settingKey identifies a setting.
type settingKey struct {
	of   *Settings
	name string
}

// temporaries are the settings whose previous values return. They change while
// Server.mutating is held.
type temporaries struct {
	mu     sync.Mutex
	values map[settingKey]temporary
	ends   map[uint64]*ending // by Seq
	bytes  int                // of names and values
	closed bool
}

// ending is when the settings of an entry end.
type ending struct {
	keys  map[settingKey]bool
	timer *time.Timer // nil: not started
}

// temporaryBytes bounds the size of temporary settings.
const temporaryBytes = 1 << 20

// retryRestore is the time after which a value that could not be restored is tried
// again.
const retryRestore = time.Minute

func (k settingKey) size(t temporary) int { return len(k.name) + len(t.value) + len(t.back) + 256 }

// setLocked makes a setting temporary. t.mu must be held.
func (t *temporaries) setLocked(key settingKey, v temporary) {
	t.dropLocked(key)
	if t.values == nil {
		t.values, t.ends = make(map[settingKey]temporary), make(map[uint64]*ending)
	}
	t.values[key] = v
	t.bytes += key.size(v)
	e := t.ends[v.seq]
	if e == nil {
		e = &ending{keys: make(map[settingKey]bool)}
		t.ends[v.seq] = e
	}
	e.keys[key] = true
}

// dropLocked makes a setting permanent. t.mu must be held.
func (t *temporaries) dropLocked(key settingKey) {
	v, ok := t.values[key]
	if !ok {
		return
	}
	delete(t.values, key)
	t.bytes -= key.size(v)
	e := t.ends[v.seq]
	if delete(e.keys, key); len(e.keys) > 0 {
		return
	}
	if e.timer != nil {
		e.timer.Stop()
	}
	delete(t.ends, v.seq)
}

// full reports whether there is no space for more temporary settings.
func (t *temporaries) full() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bytes >= temporaryBytes
}

// note updates the temporary settings after an edit, which is temporary if ttl is
// positive. A value that is set again returns to the value before the first
// of the temporary values.
func (s *Server) note(e *edit, seq uint64, ttl time.Duration) {
	t := &s.temporaries
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range e.values {
		v := &e.values[i]
		key := settingKey{e.of, v.name}
		back := v.before
		if earlier, ok := t.values[key]; ok {
			v.earlier, back = &earlier, earlier.back
		}
		if ttl <= 0 || v.after == back {
			t.dropLocked(key)
		} else {
			t.setLocked(key, temporary{v.after, back, s.now().Add(ttl), seq})
		}
	}
	s.armLocked(seq, ttl)
}

// armLocked starts the timer of the settings of an entry. temporaries.mu must be held.
func (s *Server) armLocked(seq uint64, after time.Duration) {
	if e := s.temporaries.ends[seq]; e != nil && !s.temporaries.closed {
		e.timer = time.AfterFunc(after, func() {
			s.guard.Run("end of a temporary setting", func() { s.expire(seq) })
		})
	}
}

// expire restores the values before the temporary settings of an entry. A value that
// something else changed meanwhile stays.
func (s *Server) expire(seq uint64) {
	s.mutating.Lock()
	defer s.mutating.Unlock()
	restored := false
	defer func() {
		if !restored { // or Restore panicked
			s.retry(seq)
		}
	}()
	t := &s.temporaries
	t.mu.Lock()
	var of *Settings
	due := make(map[string]temporary)
	if e := t.ends[seq]; e != nil {
		for key := range e.keys {
			of, due[key.name] = key.of, t.values[key]
		}
	}
	t.mu.Unlock()
	if of == nil {
		restored = true
		return
	}
	names := slices.Sorted(maps.Keys(due))
	values, present := make(map[string]string), of.current(names)
	cause, _ := s.audit.find(seq)
	entry := AuditEntry{Time: s.now(), Path: cmp.Or(cause.Path, of.Name), Status: 200, Reason: "ttl ended", Undoes: seq}
	for _, name := range names {
		if v := due[name]; present[name] == v.value {
			values[name] = v.back
			entry.Changes = append(entry.Changes, Change{name, redact.Masked(name, v.value), redact.Masked(name, v.back)})
		}
	}
	if len(values) == 0 {
		// All have changed since.
	} else if err := of.Restore(values); err != nil {
		s.logger.Error("cannot restore temporary settings", "settings", of.Name, "error", err)
		return
	}
	restored = true
	t.mu.Lock()
	for name := range due {
		t.dropLocked(settingKey{of, name})
	}
	t.mu.Unlock()
	if len(entry.Changes) > 0 {
		s.audit.add(entry)
	}
}

// retry restores the values before the settings of an entry later.
func (s *Server) retry(seq uint64) {
	s.temporaries.mu.Lock()
	defer s.temporaries.mu.Unlock()
	s.armLocked(seq, retryRestore)
}

// stop keeps the temporary values as they are.
func (t *temporaries) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, e := range t.ends {
		if e.timer != nil {
			e.timer.Stop()
		}
	}
}

// Temporary returns the temporary settings, in the order in which they expire.
func (s *Server) Temporary() []Temporary {
	s.temporaries.mu.Lock()
	defer s.temporaries.mu.Unlock()
	var list []Temporary
	for key, v := range s.temporaries.values {
		list = append(list, Temporary{key.of.Name, key.name, redact.Masked(key.name, v.value), redact.Masked(key.name, v.back), v.until, v.seq})
	}
	slices.SortFunc(list, func(a, b Temporary) int {
		return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.Settings, b.Settings), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// undo restores the values before an entry of the audit log.
func (s *Server) undo(w *Response, r *Request) error {
	seq, err := parseSeq(r.query.Value("id"))
	if err != nil {
		return err
	}
	entry, ok := s.audit.find(seq)
	switch {
	case !ok:
		return &Error{Status: 404, Msg: fmt.Sprintf("the audit log has no entry %d\n", seq)}
	case entry.UndoneBy != 0:
		return &Error{Status: 409, Msg: fmt.Sprintf("entry %d was undone by entry %d\n", seq, entry.UndoneBy)}
	case !entry.edit.changed():
		return badRequest(fmt.Sprintf("entry %d has no values to restore\n", seq))
	}
	need := RoleAdmin
	if e := s.table.Load().byPath[entry.Path]; e != nil {
		need = e.needs()
	}
	if r.principal.Role < need {
		s.metrics.denied.Inc()
		return &Error{Status: 403, Msg: "undoing this needs the role " + need.String() + ", yours is " + r.principal.Role.String() + "\n"}
	}
	of, values := entry.edit.of, make(map[string]string)
	names := make([]string, 0, len(entry.edit.values))
	for _, v := range entry.edit.values {
		names = append(names, v.name)
	}
	present := of.current(names)
	var again []setting // values that were temporary, and are again
	for _, v := range entry.edit.values {
		if v.before == v.after {
			continue
		}
		if present[v.name] != v.after {
			return &Error{Status: 409, Msg: fmt.Sprintf("%s has changed since entry %d: it is %s, not %s\n", quoted(v.name), seq,
				quoted(redact.Masked(v.name, present[v.name])), quoted(redact.Masked(v.name, v.after)))}
		}
		back := v.before
		if v.earlier != nil && !v.earlier.until.After(s.now()) {
			back = v.earlier.back
		} else if v.earlier != nil {
			again = append(again, v)
		}
		values[v.name] = back
		r.Changed(v.name, v.after, back)
	}
	if r.dryRun {
		return nil
	}
	if err := r.tracked(of, names, func() error { return of.Restore(values) }); err != nil {
		return badRequest(err.Error() + "\n")
	}
	r.undoes, r.again = seq, again
	return w.text(200, "OK\n")
}

// renew makes values temporary that an undo restored before their time.
func (s *Server) renew(of *Settings, again []setting) {
	t := &s.temporaries
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, v := range again {
		t.setLocked(settingKey{of, v.name}, *v.earlier)
		if t.ends[v.earlier.seq].timer == nil {
			s.armLocked(v.earlier.seq, v.earlier.until.Sub(s.now()))
		}
	}
}
