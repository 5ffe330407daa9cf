package store

// NameSet is a set of kinds whose stats are listed together by name.
type NameSet uint8

// The sets of [View.ByName].
const (
	Texts      NameSet = iota // text readouts
	Scalars                   // counters and gauges
	Histograms                // histograms

	nameSets = 3
)

// SetOf returns the set that contains a kind.
func SetOf(k Kind) NameSet {
	switch k {
	case KindText:
		return Texts
	case KindHistogram:
		return Histograms
	default:
		return Scalars
	}
}

// View is an immutable list of the ordered names of a store. Values are read
// live, and stats that end while the view is open are skipped, except for a few
// that a cursor has already fetched.
//
// An open view keeps the memory of ended stats, so it must be closed. It holds
// no lock. Only one goroutine can use a view at a time.
type View struct {
	s     *Store
	epoch uint64

	byName   [nameSets][][]id
	byFamily [kinds][][]id
	haveN    [nameSets]bool
	haveF    [kinds]bool
}

// View opens a view.
func (s *Store) View() *View {
	s.refresh()
	s.purge()
	s.orderMu.Lock()
	defer s.orderMu.Unlock()
	return s.viewLocked()
}

// viewLocked opens a view. Store.orderMu must be held.
func (s *Store) viewLocked() *View {
	s.views[s.epoch]++
	return &View{s: s, epoch: s.epoch}
}

// Close closes the view. Its cursors must not be used afterwards. Closing twice
// does nothing.
func (v *View) Close() {
	s := v.s
	if s == nil {
		return
	}
	v.s = nil
	s.orderMu.Lock()
	if s.views[v.epoch]--; s.views[v.epoch] == 0 {
		delete(s.views, v.epoch)
	}
	ended := s.endedLocked()
	s.orderMu.Unlock()
	s.release(ended)
}

// OpenViews returns the number of open views, including the views of snapshots.
// A view that is never closed keeps the memory of stats that have ended.
func (s *Store) OpenViews() (n int) {
	s.orderMu.Lock()
	defer s.orderMu.Unlock()
	for _, open := range s.views {
		n += int(open)
	}
	return n
}

// Store returns the store of v.
func (v *View) Store() *Store { return v.s }

// ByName returns a cursor over a set of stats, by byte order of the full name.
// Where the program and network input have the same name, the program's stat
// comes first.
func (v *View) ByName(set NameSet) Cursor {
	if !v.haveN[set] {
		v.byName[set], v.haveN[set] = v.s.namesOf(set), true
	}
	return v.cursor(v.byName[set])
}

// ByFamily returns a cursor over the stats of one kind, ordered by
// tag-extracted name and then by full name, both token by token.
func (v *View) ByFamily(k Kind) Cursor {
	if !v.haveF[k] {
		v.byFamily[k], v.haveF[k] = v.s.familiesOf(k), true
	}
	c := v.cursor(v.byFamily[k])
	c.scattered = true
	return c
}

func (v *View) cursor(chunks [][]id) Cursor {
	return Cursor{s: v.s, blocks: v.s.blocks.All(), chunks: chunks}
}

// Find returns a cursor at the stat called name, or false if there is none. The
// program's own stat takes precedence over one from network input. The cursor
// is valid while v is open.
func (v *View) Find(name string) (Cursor, bool) {
	for _, network := range []bool{false, true} {
		if b, i, ok := v.s.find(v.s.lookup.hash(network, name), network, name); ok {
			c := v.cursor(nil)
			return c, c.stand(makeID(b.index, i))
		}
	}
	return v.cursor(nil), false
}

// namesOf returns the up-to-date order of a set, which is maintained from the
// first call on. A view must be open: see sortFirst.
func (s *Store) namesOf(set NameSet) [][]id {
	o := &s.byName[set]
	wanted := func(k Kind) bool { return SetOf(k) == set }
	o.sorting.Lock()
	defer o.sorting.Unlock()
	s.orderMu.Lock()
	if !o.asked {
		ids := s.takePending(o, wanted)
		s.orderMu.Unlock()
		s.sortFirst(o, ids)
		s.orderMu.Lock()
	}
	defer s.orderMu.Unlock()
	o.update(s, s.takePending(o, wanted))
	return o.chunks
}

// sortFirst sorts the ids of an order that has none yet. That takes long, so no lock of
// the store is held meanwhile. A view must be open, which keeps the records.
func (s *Store) sortFirst(o *order, ids []id) {
	sorted := order{key: o.key}
	sorted.update(s, ids)
	s.orderMu.Lock()
	defer s.orderMu.Unlock()
	o.chunks = sorted.chunks
	o.drop(s.isDead)
}

// familiesOf returns the up-to-date family order of a kind, which is maintained
// from the first call on.
func (s *Store) familiesOf(k Kind) [][]id {
	s.orderMu.Lock()
	defer s.orderMu.Unlock()
	o := &s.byFamily[k]
	ids := s.takePending(o, func(other Kind) bool { return other == k })
	for _, x := range ids {
		s.enterSeries(x)
	}
	o.update(s, ids)
	return o.chunks
}

// takePending returns the new ids of an order of some kinds: all when it is first used.
func (s *Store) takePending(o *order, wanted func(Kind) bool) []id {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := o.pending
	o.pending = nil
	if !o.asked {
		o.asked = true
		ids = s.idsOf(wanted)
	}
	return ids
}

// idsOf returns the ids of all stats of some kinds. Store.mu must be held.
func (s *Store) idsOf(wanted func(Kind) bool) []id {
	n := 0
	for k, have := range s.byKind {
		if wanted(Kind(k)) {
			n += have
		}
	}
	ids := make([]id, 0, n)
	for _, b := range s.eachBlock() {
		if !wanted(b.variant.kind()) {
			continue
		}
		for i := range b.n {
			if b.alive.has(i) {
				ids = append(ids, makeID(b.index, i))
			}
		}
	}
	return ids
}

// eachBlock returns the blocks in use.
func (s *Store) eachBlock() []*block {
	list := s.blocks.All()
	blocks := make([]*block, 0, len(list))
	for i := range list {
		if b := list[i].Load(); b != nil {
			blocks = append(blocks, b)
		}
	}
	return blocks
}
