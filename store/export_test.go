package store

// BlocksInUse returns how many blocks the store has.
func (s *Store) BlocksInUse() int { return len(s.eachBlock()) }
