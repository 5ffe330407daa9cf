package store

// BlocksInUse returns how many blocks the store has.
func (s *Store) BlocksInUse() int { return len(s.eachBlock()) }

// NoteEnds notes n times that the first stat has ended.
func (w *Watch) NoteEnds(n int) {
	w.s.orderMu.Lock()
	defer w.s.orderMu.Unlock()
	w.end(w.s, make([]id, n))
}

// NamesHeld returns how many names of families and tags there are.
func (s *Store) NamesHeld() int { return s.names.byKey.Len() }

// DropIndex removes the index of the chunks of a finished walk, and reports whether there
// was one.
func (sel *Selection) DropIndex(set NameSet) bool {
	s := sel.byName[set].Load()
	had := s.index != nil
	s.index = nil
	return had
}
