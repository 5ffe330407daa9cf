package naming

import (
	"hash/maphash"
	"slices"
	"strings"
)

// Owner identifies a family to [Owners]. It is less than 1<<36.
type Owner uint64

const ownerBits = 36

// Owners records which family owns each metric name. A histogram also owns the
// names of its samples. Owners is not safe for concurrent use.
//
// It is an open addressing table with linear probing that keeps no names: a slot
// has 28 bits of a seeded hash, from which its place follows, above the owner. The
// owner is asked whether a name with the same bits is its own.
type Owners struct {
	seed  maphash.Seed
	owns  func(o Owner, metric string) bool
	slots []uint64 // 0: empty
	used  int
}

const ownersFirst = 64

// NewOwners returns an Owners in which no name is owned. owns reports whether a
// metric name belongs to an owner, which has been set for some name and not been
// deleted; see [Owns].
func NewOwners(owns func(o Owner, metric string) bool) Owners {
	return Owners{seed: maphash.MakeSeed(), owns: owns, slots: make([]uint64, ownersFirst)}
}

// sampleSuffixes returns what the samples of a family append to its name.
func sampleSuffixes(histogram bool) []string {
	all := [...]string{"", "_bucket", "_sum", "_count"}
	if histogram {
		return all[:]
	}
	return all[:1]
}

// Owns reports whether the family with a metric name owns name: the metric name
// itself, or the name of a sample.
func Owns(metric string, histogram bool, name string) bool {
	rest, ok := strings.CutPrefix(name, metric)
	if !ok {
		return false
	}
	return slices.Contains(sampleSuffixes(histogram), rest)
}

// Find returns the owner of a metric name or, for a histogram, of the first of
// its sample names that has one.
func (o *Owners) Find(metric string, histogram bool) (owner Owner, ok bool) {
	for _, suffix := range sampleSuffixes(histogram) {
		name := metric + suffix
		if i := o.at(name); o.slots[i] != 0 {
			return ownerIn(o.slots[i]), true
		}
	}
	return 0, false
}

// Set makes owner the owner of a metric name, and of a histogram's sample names.
func (o *Owners) Set(metric string, histogram bool, owner Owner) {
	for _, suffix := range sampleSuffixes(histogram) {
		name := metric + suffix
		i := o.at(name)
		if o.slots[i] == 0 {
			if o.used++; o.used*4 > len(o.slots)*3 {
				o.resize(len(o.slots) * 5 / 4)
				i = o.at(name)
			}
		}
		o.slots[i] = tagOf(o.Hash(name)) | uint64(owner)
	}
}

// Delete frees the names if owner owns them.
func (o *Owners) Delete(metric string, histogram bool, owner Owner) {
	for _, suffix := range sampleSuffixes(histogram) {
		o.DeleteHash(o.Hash(metric+suffix), owner)
	}
}

// DeleteHash frees the metric name with a hash if owner owns it; see
// [Owners.Hash].
func (o *Owners) DeleteHash(h uint64, owner Owner) {
	slot := tagOf(h) | uint64(owner)
	i := o.home(slot)
	for o.slots[i] != slot {
		if o.slots[i] == 0 {
			return
		}
		i = o.after(i)
	}
	o.remove(i)
	if len(o.slots) > ownersFirst && o.used*8 < len(o.slots) {
		o.resize(max(ownersFirst, o.used*2))
	}
}

// Len returns how many names are owned.
func (o *Owners) Len() int { return o.used }

// Hash returns the hash of a name. Only the upper 28 bits matter to
// [Owners.DeleteHash].
func (o *Owners) Hash(name string) uint64 { return maphash.String(o.seed, name) }

// tagOf returns the bits of a hash in its slot, which are not all 0.
func tagOf(h uint64) uint64 { return (h | 1<<ownerBits) &^ (1<<ownerBits - 1) }

func ownerIn(slot uint64) Owner { return Owner(slot & (1<<ownerBits - 1)) }

// home returns the place where the probe for a slot starts.
func (o *Owners) home(slot uint64) int {
	return int((slot >> ownerBits) * uint64(len(o.slots)) >> (64 - ownerBits))
}

func (o *Owners) after(i int) int {
	if i++; i == len(o.slots) {
		return 0
	}
	return i
}

// at returns the slot of a name, or the empty one where its probe ended.
func (o *Owners) at(name string) int {
	tag := tagOf(o.Hash(name))
	i := o.home(tag)
	for ; o.slots[i] != 0; i = o.after(i) {
		if s := o.slots[i]; s&^(1<<ownerBits-1) == tag && o.owns(ownerIn(s), name) {
			break
		}
	}
	return i
}

// remove empties slot i and moves up the slots that it displaced.
func (o *Owners) remove(i int) {
	o.used--
	n := len(o.slots)
	for j := o.after(i); o.slots[j] != 0; j = o.after(j) {
		// The slot at j can move to i unless its home lies between.
		if home := o.home(o.slots[j]); (j-home+n)%n >= (j-i+n)%n {
			o.slots[i] = o.slots[j]
			i = j
		}
	}
	o.slots[i] = 0
}

func (o *Owners) resize(size int) {
	old := o.slots
	o.slots = make([]uint64, size)
	for _, s := range old {
		if s != 0 {
			i := o.home(s)
			for o.slots[i] != 0 {
				i = o.after(i)
			}
			o.slots[i] = s
		}
	}
}

// Suffix returns the suffix of a metric name that a family of another kind
// already has: an underscore and the word for the kind, such as "_gauge".
func Suffix(kind string) string { return "_" + kind }
