package naming

import (
	"hash/maphash"
	"maps"
)

// Owners records which family owns each metric name. A histogram also owns the
// names of its samples. It keeps hashes of names under a random seed, not the
// names. Owners is not safe for concurrent use.
type Owners[O comparable] struct {
	seed   maphash.Seed
	byName map[uint64]O
	peak   int // largest size of byName, which keeps the memory for it
}

// NewOwners returns an Owners in which no name is owned.
func NewOwners[O comparable]() Owners[O] {
	return Owners[O]{seed: maphash.MakeSeed(), byName: make(map[uint64]O)}
}

// sampleSuffixes returns what the samples of a family append to its name.
func sampleSuffixes(histogram bool) []string {
	all := [...]string{"", "_bucket", "_sum", "_count"}
	if histogram {
		return all[:]
	}
	return all[:1]
}

// Find returns the owner of a metric name or, for a histogram, of the first of
// its sample names that has one.
func (o *Owners[O]) Find(metric string, histogram bool) (owner O, ok bool) {
	for _, suffix := range sampleSuffixes(histogram) {
		if owner, ok = o.byName[o.hash(metric, suffix)]; ok {
			return owner, true
		}
	}
	return owner, false
}

// Set makes owner the owner of a metric name, and of a histogram's sample names.
func (o *Owners[O]) Set(metric string, histogram bool, owner O) {
	for _, suffix := range sampleSuffixes(histogram) {
		o.byName[o.hash(metric, suffix)] = owner
	}
	o.peak = max(o.peak, len(o.byName))
}

// Delete frees the names if owner owns them.
func (o *Owners[O]) Delete(metric string, histogram bool, owner O) {
	for _, suffix := range sampleSuffixes(histogram) {
		if h := o.hash(metric, suffix); o.byName[h] == owner {
			delete(o.byName, h)
		}
	}
	if n := len(o.byName); o.peak > 1024 && n < o.peak/8 {
		byName := make(map[uint64]O, n)
		maps.Copy(byName, o.byName)
		o.byName, o.peak = byName, n
	}
}

// Len returns how many names are owned.
func (o *Owners[O]) Len() int { return len(o.byName) }

func (o *Owners[O]) hash(metric, suffix string) uint64 {
	var h maphash.Hash
	h.SetSeed(o.seed)
	h.WriteString(metric)
	h.WriteString(suffix)
	return h.Sum64()
}

// Suffix returns what a metric name gets behind it if a family of another kind
// has the name: the word for the kind, such as "gauge", behind an underscore.
func Suffix(kind string) string { return "_" + kind }
