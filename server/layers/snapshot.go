package layers

import (
	"iter"
	"maps"
	"slices"
)

// Snapshot is a consistent, immutable view of all runtime values. The typed methods
// return the caller's default if the key does not exist or cannot be converted.
type Snapshot struct {
	layers  []string
	admin   int // index of the admin layer; -1: none
	entries map[string]*entry
	keys    []string // sorted
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
	s := &Snapshot{admin: -1, entries: make(map[string]*entry)}
	for i, layer := range stack {
		if layer.admin {
			s.admin = i
		}
		s.layers = append(s.layers, layer.name)
		for key, c := range layer.cells {
			e := s.entries[key]
			if e == nil {
				e = &entry{perLayer: make([]string, len(stack))}
				s.entries[key] = e
			}
			e.perLayer[i] = c.raw
			if c.raw != "" {
				e.final = c
			}
		}
	}
	s.keys = slices.Sorted(maps.Keys(s.entries))
	return s
}

// Layers returns the names of the layers in order, except layers that could not be
// loaded.
func (s *Snapshot) Layers() []string { return s.layers }

// AdminLayer returns the index of the admin layer in Layers, -1 if there is none.
func (s *Snapshot) AdminLayer() int { return s.admin }

// Len returns the number of keys over all layers.
func (s *Snapshot) Len() int { return len(s.keys) }

// All yields the keys in byte order with the raw value in each layer, "" where it has
// none, and the final value. The caller must not modify the slice.
func (s *Snapshot) All() iter.Seq2[string, Values] {
	return func(yield func(string, Values) bool) {
		for _, key := range s.keys {
			e := s.entries[key]
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
	if e := s.entries[key]; e != nil {
		return e.final.raw, true
	}
	return "", false
}

// Bool returns a boolean: true and false in any letter case, or a whole number.
func (s *Snapshot) Bool(key string, byDefault bool) bool {
	if e := s.entries[key]; e != nil && e.final.value.isBool {
		return e.final.value.boolean
	}
	return byDefault
}

// Uint returns a non-negative number, rounded down.
func (s *Snapshot) Uint(key string, byDefault uint64) uint64 {
	if e := s.entries[key]; e != nil && e.final.value.isInteger {
		return e.final.value.integer
	}
	return byDefault
}

// Float returns any number.
func (s *Snapshot) Float(key string, byDefault float64) float64 {
	if e := s.entries[key]; e != nil && e.final.value.isDouble {
		return e.final.value.double
	}
	return byDefault
}

// FractionalPercent returns a fraction: a fraction value, or a whole number of
// percent. Values above 100 mean always.
func (s *Snapshot) FractionalPercent(key string, byDefault FractionalPercent) FractionalPercent {
	if e := s.entries[key]; e != nil {
		switch v := &e.final.value; {
		case v.isFraction:
			return v.fraction
		case v.isInteger:
			return FractionalPercent{uint32(min(v.integer, 100)), Hundred}
		}
	}
	return byDefault
}

// FeatureEnabled decides one case with a random number from the caller. Equal numbers
// give equal answers, which makes decisions sticky.
func (s *Snapshot) FeatureEnabled(key string, byDefault FractionalPercent, random uint64) bool {
	return s.FractionalPercent(key, byDefault).Enabled(random)
}
