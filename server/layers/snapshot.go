package layers

import (
	"iter"
	"maps"
	"slices"
	"sync/atomic"
)

// maxRecent balances what a change of one override copies, the recent entries, with how
// often all entries are copied.
const maxRecent = 64

// Snapshot is a consistent, immutable view of all runtime values. The typed methods
// return the caller's default if the key does not exist or cannot be converted.
//
// A change of overrides puts new entries into recent, a small copy of that of the snapshot
// before it, and shares all others. Once recent has more than maxRecent entries, they move
// to a copy of base. So the cost of a change does not grow with the number of keys, except
// for that copy, and a read takes a second lookup only while there are recent entries.
type Snapshot struct {
	layers []string
	admin  int // index of the admin layer; -1: none
	base   map[string]*entry
	recent map[string]*entry        // wins over base; nil entry: no such key
	length int                      // number of keys
	keys   atomic.Pointer[[]string] // sorted; nil: not needed yet
}

// entry is one key.
type entry struct {
	perLayer []string // raw values; "" where the layer has none
	final    cell     // of the last layer whose raw value is not empty
}

// layerCells is one loaded layer.
type layerCells struct {
	name  string
	cells map[string]cell
	admin bool
}

func newSnapshot(stack []layerCells) *Snapshot {
	s := &Snapshot{admin: -1, base: make(map[string]*entry), recent: make(map[string]*entry)}
	for i, layer := range stack {
		if layer.admin {
			s.admin = i
		}
		s.layers = append(s.layers, layer.name)
		for key := range layer.cells {
			if s.base[key] == nil {
				s.base[key] = newEntry(stack, key, nil)
			}
		}
	}
	s.length = len(s.base)
	return s
}

// with returns a copy of s in which the admin layer has other values, "" for none. s must
// have been built from these layers.
func (s *Snapshot) with(stack []layerCells, overrides map[string]cell) *Snapshot {
	next := &Snapshot{layers: s.layers, admin: s.admin, base: s.base, recent: maps.Clone(s.recent), length: s.length}
	sameKeys := true
	for key := range overrides {
		e, had := newEntry(stack, key, overrides), s.entry(key) != nil
		next.recent[key] = e
		switch has := e != nil; {
		case has && !had:
			next.length++
		case had && !has:
			next.length--
		default:
			continue
		}
		sameKeys = false
	}
	if sameKeys {
		next.keys.Store(s.keys.Load())
	}
	if len(next.recent) > maxRecent {
		next.base, next.recent = next.merged(), make(map[string]*entry)
	}
	return next
}

// merged returns all entries in one new map.
func (s *Snapshot) merged() map[string]*entry {
	all := maps.Clone(s.base)
	for key, e := range s.recent {
		if e == nil {
			delete(all, key)
		} else {
			all[key] = e
		}
	}
	return all
}

// newEntry returns the entry of a key, nil if no layer has it. A key in
// overrides has its value there in the admin layer, or none if it is empty.
func newEntry(stack []layerCells, key string, overrides map[string]cell) *entry {
	e, exists := &entry{perLayer: make([]string, len(stack))}, false
	for i, layer := range stack {
		c, ok := layer.cells[key]
		if override, set := overrides[key]; set && layer.admin {
			c, ok = override, override.raw != ""
		}
		exists = exists || ok
		e.perLayer[i] = c.raw
		if c.raw != "" {
			e.final = c
		}
	}
	if !exists {
		return nil
	}
	return e
}

// entry returns the entry of a key, nil if there is none.
func (s *Snapshot) entry(key string) *entry {
	if len(s.recent) > 0 {
		if e, ok := s.recent[key]; ok {
			return e
		}
	}
	return s.base[key]
}

// sortedKeys returns the keys in byte order.
func (s *Snapshot) sortedKeys() []string {
	if keys := s.keys.Load(); keys != nil {
		return *keys
	}
	keys := slices.Sorted(maps.Keys(s.merged()))
	s.keys.Store(&keys)
	return keys
}

// Layers returns the names of the layers in order, except layers that could not be
// loaded.
func (s *Snapshot) Layers() []string { return s.layers }

// AdminLayer returns the index of the admin layer in Layers, -1 if there is none.
func (s *Snapshot) AdminLayer() int { return s.admin }

// Len returns the number of keys over all layers.
func (s *Snapshot) Len() int { return s.length }

// Override returns the raw value of a key in the admin layer, "" if it has none.
func (s *Snapshot) Override(key string) string {
	if e := s.entry(key); e != nil && s.admin >= 0 {
		return e.perLayer[s.admin]
	}
	return ""
}

// All yields the keys in byte order with the raw value in each layer, "" where it has
// none, and the final value. The caller must not modify the slice.
func (s *Snapshot) All() iter.Seq2[string, Values] {
	return func(yield func(string, Values) bool) {
		for _, key := range s.sortedKeys() {
			e := s.entry(key)
			if !yield(key, Values{e.perLayer, e.final.raw}) {
				return
			}
		}
	}
}

// Values are the raw values of one key.
type Values struct {
	PerLayer []string // in the order of Snapshot.Layers
	Final    string
}

// Get returns the final raw value, and whether the key exists.
func (s *Snapshot) Get(key string) (string, bool) {
	if e := s.entry(key); e != nil {
		return e.final.raw, true
	}
	return "", false
}

// Bool returns a boolean: true and false in any letter case, or a whole number.
func (s *Snapshot) Bool(key string, byDefault bool) bool {
	if e := s.entry(key); e != nil && e.final.value.isBool {
		return e.final.value.boolean
	}
	return byDefault
}

// Uint returns a non-negative number, rounded down.
func (s *Snapshot) Uint(key string, byDefault uint64) uint64 {
	if e := s.entry(key); e != nil && e.final.value.isInteger {
		return e.final.value.integer
	}
	return byDefault
}

// Float returns any number.
func (s *Snapshot) Float(key string, byDefault float64) float64 {
	if e := s.entry(key); e != nil && e.final.value.isDouble {
		return e.final.value.double
	}
	return byDefault
}

// FractionalPercent returns a fraction: a fraction value, or a whole number of
// percent. Values above 100 mean always.
func (s *Snapshot) FractionalPercent(key string, byDefault FractionalPercent) FractionalPercent {
	if e := s.entry(key); e != nil {
		switch v := &e.final.value; {
		case v.isFraction:
			return v.fraction
		case v.isInteger:
			return FractionalPercent{uint32(min(v.integer, 100)), Hundred}
		}
	}
	return byDefault
}
