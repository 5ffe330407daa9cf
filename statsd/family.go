package statsd

import (
	"slices"
	"strings"

	"github.com/statsd-admin/statsd-admin/internal/shrinkmap"

	"github.com/statsd-admin/statsd-admin/render/naming"
)

// families holds the families of received series: the series of one metric name.
// Their names are not kept, but read from a stat. registry.mu guards it.
//
// Most families without tags have one series. Such a family is its cell, and is
// identified by solo and the number of the cell; others have a number in list.
type families struct {
	list   []family
	free   []uint32
	owners naming.Owners // families by metric name
	// named has the histograms, which own more than one metric name and whose
	// stats have no name.
	named shrinkmap.Map[uint32, familyName]
}

// solo marks a family of one series: in place of a family's number above the number
// of its cell, and in the cell above the upper 31 bits of the metric name's hash.
const solo = 1 << 31

// noFamily is in place of a family's number in cells of series that have ended.
const noFamily = solo - 1

// family is the common part of all series of one metric name.
type family struct {
	// print is the hash of the metric name, with the group and hasPlain in place of
	// the low bits. 0: the number is free.
	print  uint64
	series int32
	cell   uint32 // a series of the family, or noCell
}

const (
	groupBits = 3
	hasPlain  = 4 // a series without labels
	inUse     = 8
	printBits = ^uint64(groupBits | hasPlain)
)

func (f *family) group() group { return group(f.print & groupBits) }

// familyName is the name of a family as received, the first one if the exposition
// shows several alike, and its metric name. summary reports whether its
// histograms are shown as summaries, and era which rules said so.
type familyName struct {
	received, metric string
	summary          bool
	era              uint16
}

func (n familyName) cost() int { return 100 + len(n.received) + len(n.metric) }

// printOf returns the bits of a metric name in the print of its family.
func (fs *families) printOf(metric string) uint64 {
	return (fs.owners.Hash(metric) | inUse) & printBits
}

// soloPrint returns what the cell of a solo family keeps.
func (fs *families) soloPrint(metric string) uint32 {
	return solo | uint32(fs.owners.Hash(metric)>>33)
}

// family returns the family of cell x: its number, or solo and x.
func (c *cells) family(x uint32) uint32 {
	if f := c.at(x).family.Load(); f&solo == 0 {
		return f
	}
	return solo | x
}

// family returns family x without its print.
func (r *registry) family(x uint32) family {
	if x&solo == 0 {
		f := r.families.list[x]
		f.print &^= printBits
		return f
	}
	return family{print: uint64(r.cells.at(x &^ solo).group), series: 1, cell: x &^ solo}
}

// eachFamily calls f with all families.
func (r *registry) eachFamily(f func(x uint32, fam family)) {
	for x := range r.families.list {
		if fam := r.family(uint32(x)); fam.series > 0 {
			f(uint32(x), fam)
		}
	}
	r.cells.each(func(x uint32, _ *cell) {
		if x = r.cells.family(x); x&solo != 0 {
			f(x, r.family(x))
		}
	})
}

// ownsMetric reports whether a metric name is that of a family or, if it is a
// histogram, of its samples.
func (r *registry) ownsMetric(o naming.Owner, metric string) bool {
	fs, x := &r.families, uint32(o)
	if n, ok := fs.named.Get(x); ok {
		return naming.Owns(n.metric, true, metric)
	}
	if x&solo == 0 {
		return fs.list[x].print&printBits == fs.printOf(metric)
	}
	if r.cells.at(x&^solo).family.Load() != fs.soloPrint(metric) {
		return false
	}
	name := r.nameOf(x)
	if name == "" {
		return true // it has just ended: nearly all names have another hash
	}
	own, _ := r.shown(name, nil)
	return own == metric
}

func (r *registry) familyNamed(metric string) (x uint32, ok bool) {
	fs := &r.families
	o, ok := fs.owners.Find(metric, false)
	return uint32(o), ok && fs.isNamed(uint32(o), metric)
}

// isNamed reports whether family x, which owns a metric name, has it: it can be that
// of a histogram's samples.
func (fs *families) isNamed(x uint32, metric string) bool {
	return x&solo != 0 || fs.list[x].print&printBits == fs.printOf(metric)
}

// conflict reports whether another family owns the metric name of w or a name
// of its samples, and returns that family.
func (r *registry) conflict(w *wanted) (other uint32, ok bool) {
	fs := &r.families
	o, ok := fs.owners.Find(w.metric, w.group == histograms)
	if !ok {
		return 0, false
	}
	f := r.family(uint32(o))
	// Histograms in the form of older rules are about to be replaced.
	n := fs.named.At(uint32(o))
	otherForm := w.group == histograms && n.summary != w.kept.summary && n.era == w.era
	return uint32(o), f.group() != w.group || !fs.isNamed(uint32(o), w.metric) || otherForm
}

// join adds the series in cell c to the family of w.
func (r *registry) join(w *wanted, c uint32) {
	fs := &r.families
	x, ok := r.familyNamed(w.metric)
	if !ok {
		r.memory.charge(familyCost)
		if w.group != histograms && len(w.tags) == 0 {
			r.grow(new(int32), 1, limitPerName, r.cfg.Limits.SeriesPerName)
			r.cells.at(c).family.Store(fs.soloPrint(w.metric))
			fs.owners.Set(w.metric, false, solo|naming.Owner(c))
			return
		}
		x = fs.add(family{print: fs.printOf(w.metric) | uint64(w.group), cell: c})
		if w.group == histograms {
			n := familyName{w.name, w.metric, w.kept.summary, w.era}
			fs.named.Set(x, n)
			r.memory.charge(n.cost())
		}
		fs.owners.Set(w.metric, w.group == histograms, naming.Owner(x))
	} else if x&solo != 0 {
		first := r.cells.at(x &^ solo)
		f := family{fs.printOf(w.metric) | uint64(w.group), 1, x &^ solo}
		if first.role&bare != 0 {
			f.print |= hasPlain
		}
		x = fs.add(f)
		fs.owners.Set(w.metric, false, naming.Owner(x))
		first.family.Store(x)
	}
	f := &fs.list[x]
	if f.cell == noCell {
		f.cell = c
	}
	r.grow(&f.series, 1, limitPerName, r.cfg.Limits.SeriesPerName)
	r.cells.at(c).family.Store(x)
}

// add returns the number of a new family.
func (fs *families) add(f family) uint32 {
	if n := len(fs.free); n > 0 {
		x := fs.free[n-1]
		fs.list[x], fs.free = f, fs.free[:n-1]
		return x
	}
	fs.list = append(fs.list, f)
	return uint32(len(fs.list) - 1)
}

// leave removes the series in cell c from its family.
func (r *registry) leave(c uint32) {
	fs, ce := &r.families, r.cells.at(c)
	x := ce.family.Swap(noFamily)
	f := family{print: uint64(x) << 33, series: 1}
	if x&solo == 0 {
		f = fs.list[x]
	}
	if ce.role&bare != 0 {
		f.print &^= hasPlain
	}
	if f.cell == c {
		f.cell = noCell
	}
	r.grow(&f.series, -1, limitPerName, r.cfg.Limits.SeriesPerName)
	if x&solo == 0 && f.series > 0 {
		fs.list[x] = f
		return
	}
	r.memory.charge(-familyCost)
	r.help.ended.Add(1)
	if x&solo != 0 {
		fs.owners.DeleteHash(f.print, solo|naming.Owner(c))
		return
	}
	if n, ok := fs.named.Get(x); ok {
		fs.owners.Delete(n.metric, true, naming.Owner(x))
		fs.named.Delete(x)
		r.memory.charge(-n.cost())
	} else {
		fs.owners.DeleteHash(f.print, naming.Owner(x))
	}
	delete(r.ruled.reshaped, x)
	fs.list[x] = family{}
	fs.free = append(fs.free, x)
}

// nameOf returns the name of a family as received, "" if its series have just
// ended or there is no such family.
func (r *registry) nameOf(x uint32) string {
	if n, ok := r.families.named.Get(x); ok {
		return n.received
	}
	c := x &^ solo
	if x&solo == 0 {
		if int(x) >= len(r.families.list) || r.families.list[x].series == 0 {
			return ""
		}
		if r.families.list[x].cell == noCell {
			r.adopt()
		}
		if c = r.families.list[x].cell; c == noCell {
			return ""
		}
	}
	chunk := r.cells.chunks.Find(int(c / cellsPerChunk))
	if chunk == nil {
		return ""
	}
	ce := &chunk[c%cellsPerChunk]
	if ce.stat == nil || ce.group == histograms {
		return ""
	}
	name := r.cfg.Store.NameOf(ce.handle())
	if p := r.scope.Prefix(); p != "" {
		name = strings.TrimPrefix(name, p+".")
	}
	return name
}

// adopt names families after another series if theirs has ended.
func (r *registry) adopt() {
	r.cells.each(func(x uint32, c *cell) {
		family := c.family.Load()
		if int(family) >= len(r.families.list) || c.group == histograms {
			return
		}
		f := &r.families.list[family]
		if f.cell == noCell && r.cfg.Store.NameOf(c.handle()) != "" { // not ended
			f.cell = x
		}
	})
}

// trimUnused drops the unused elements at the end of list, whose other unused ones
// are in free, if that is worth it.
func trimUnused[T any](list []T, free []uint32, unused func(*T) bool) ([]T, []uint32) {
	n := len(list)
	if n < 1024 || len(free) < n/4*3 {
		return list, free
	}
	for n > 0 && unused(&list[n-1]) {
		n--
	}
	kept := make([]uint32, 0, len(free)-(len(list)-n))
	for _, x := range free {
		if int(x) < n {
			kept = append(kept, x)
		}
	}
	return slices.Clone(list[:n]), kept
}

// segments counts the series whose names share the first segment. registry.mu
// guards it.
type segments struct {
	list    []segment
	free    []uint32
	numbers shrinkmap.Map[string, uint32]
}

type segment struct {
	name   string
	series int32
}

func firstSegment(name string) string {
	first, _, _ := strings.Cut(name, ".")
	return first
}

// series returns the number of series that share the first segment of name.
func (ss *segments) series(name string) int {
	if x, ok := ss.numbers.Get(firstSegment(name)); ok {
		return int(ss.list[x].series)
	}
	return 0
}

// enter returns the number of the first segment of name.
func (ss *segments) enter(name string, m *memory) uint32 {
	first := firstSegment(name)
	if x, ok := ss.numbers.Get(first); ok {
		return x
	}
	first = strings.Clone(first)
	x := uint32(len(ss.list))
	if n := len(ss.free); n > 0 {
		x, ss.free = ss.free[n-1], ss.free[:n-1]
	} else {
		ss.list = append(ss.list, segment{})
	}
	ss.list[x].name = first
	ss.numbers.Set(first, x)
	m.charge(segmentCost + len(first))
	return x
}

// leave frees segment x if it has no series.
func (ss *segments) leave(x uint32, m *memory) {
	s := &ss.list[x]
	if s.series > 0 {
		return
	}
	m.charge(-segmentCost - len(s.name))
	ss.numbers.Delete(s.name)
	*s = segment{}
	ss.free = append(ss.free, x)
}
