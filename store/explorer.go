package store

import (
	"bytes"
	"cmp"
	"errors"
	"hash/maphash"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Explorer counts the stats under a prefix, or with a tag, by the segment or value
// that follows, without visiting each of them: the cost of an answer grows with its
// groups and with what changed since the last one, not with the number of stats.
//
// Counts are differences of positions in the sorted index. What cannot be computed
// from positions is summed for runs of the index, about six bytes for each stat in
// all, from the first question on.
//
// All methods are safe for concurrent use; answers are made one after the other.
type Explorer struct {
	s    *Store
	seed maphash.Seed // of tag values

	mu       sync.Mutex // guards the rest; taken before the locks of the store
	names    [nameSets]ranking
	tags     []*tagOrder   // latest use last
	blocks   []blockBirths // see births
	rebirths uint64        // of the store when the sums were made
	counted  bool          // tags of all stats have been counted

	ready atomic.Pointer[map[string][]*order] // by tag that is in order; "" is for the names, if counted
}

// NewExplorer returns an explorer of s.
func (s *Store) NewExplorer() *Explorer {
	x := &Explorer{s: s, seed: maphash.MakeSeed()}
	for set := range x.names {
		x.names[set].key = func(dst []byte, one id) []byte { return textKey(s, dst, one) }
	}
	return x
}

// By is an order of groups. All but ByName are descending.
type By uint8

// The orders of [Explore].
const (
	BySeries  By = iota // number of stats
	ByNew               // number of new stats
	ByRate              // changes per second
	BySamples           // received samples per second
	ByBytes             // memory
	ByName              // ascending
)

// Explore is a query for an [Explorer].
type Explore struct {
	// Prefix is the beginning of the names. It can end in the middle of a segment.
	Prefix string
	// Tag is the name of a tag, whose values make the groups instead of segments.
	Tag string
	// Tags asks for the tags of the stats with the prefix.
	Tags bool

	By    By
	Limit int // of groups; at most 1000
	// Since is when the oldest stat was created that counts as new, also if the clock was
	// set since.
	Since time.Time
	// Rates yields the stats that changed last, by [Cursor.Ref], and their changes per
	// second. Nil: there are no rates.
	Rates iter.Seq2[uint64, float64]
	// Samples are the names with the most samples per second. Stats that the name is
	// a prefix of, by whole segments, share them.
	Samples []Sampled
}

// Sampled is a name and the number of samples that it receives per second.
type Sampled struct {
	Name      string
	PerSecond float64
}

// Explored is the result of [Explorer.Explore].
type Explored struct {
	Total  Group   // all stats with the prefix, and with the tag
	Groups []Group // in the order of Explore.By
	Others Group   // the stats in Total that are in none of Groups

	// Complete is set if all groups were compared. If there are too many, Found groups
	// were, each with more than Bound stats among them.
	Complete bool
	Bound    int
	Found    int

	Tags []TagCount // most stats first; with Explore.Tags
}

// Group is a set of stats.
type Group struct {
	// Name is the prefix of the names, with a dot at its end, or the full name of
	// stats, or the value of the tag.
	Name string
	Leaf bool // Name is a full name

	Series int
	New    int // created since Explore.Since
	// Bytes estimates the memory of the stats without the texts of their segments,
	// which stats share. Histograms are measured again now and then.
	Bytes uint64
	// First and Last are when the oldest and the newest stat were created; zero if the
	// stat is older than the process.
	First, Last time.Time
	PerSecond   float64 // changes
	Samples     float64 // samples per second of the names in Explore.Samples
}

// TagCount is a tag and how many stats have it.
type TagCount struct {
	Name   string
	Series int
	Values int  // different values
	Exact  bool // Values is not an estimate
}

// ErrTooManySeries is returned by [Explorer.Explore] for a tag if too many
// stats have the prefix.
var ErrTooManySeries = errors.New("store: too many stats have the prefix")

// Bounds of the work for an answer.
const (
	comparedGroups = 1024    // groups that are all compared
	sampledGroups  = 512     // positions at which groups are looked for otherwise
	heavyGroups    = 64      // runs in which groups with a high rate or size are looked for
	walkedSeries   = 50_000  // stats whose tags are read one by one
	promptStats    = 16_384  // stats that a first answer puts in order
	lateStats      = 131_072 // new stats that a later answer puts in order, in 0.2 s
	maxGroups      = 1000    // in an answer
)

// Ready reports whether answers need no [Explorer.Prepare]. With a tag, these are answers
// about its values. It waits for no answer.
func (x *Explorer) Ready(tag string) bool {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	if x.s.stats <= promptStats {
		return true
	}
	orders := x.ready.Load()
	if orders == nil {
		return false
	}
	ready := func(tag string) bool {
		list, known := (*orders)[tag]
		n := 0 // stats to sort
		for _, o := range list {
			n += len(o.pending)
		}
		return known && n <= lateStats
	}
	return ready("") && ready(tag)
}

// Prepare puts all stats in order and counts their tags, for about a second with a
// million stats. With a tag, it also puts the stats in the order of its values. Answers
// wait meanwhile. Without it, the first questions do the same.
func (x *Explorer) Prepare(tag string) {
	_, _ = x.Explore(Explore{Tags: true}) // cannot fail without a prefix
	if tag != "" {
		_, _ = x.Explore(Explore{Tag: tag})
	}
}

// noteReady notes what needs no preparation.
func (x *Explorer) noteReady() {
	ready := make(map[string][]*order)
	if x.counted {
		for set := range x.s.byName {
			ready[""] = append(ready[""], &x.s.byName[set])
		}
	}
	for _, o := range x.tags {
		ready[o.name] = []*order{&o.order}
	}
	x.ready.Store(&ready)
}

// Explore answers a query. It returns [ErrTooManySeries] for a tag if more than
// 50,000 stats have the prefix. The last four tags are kept in order; see
// [Explorer.Prepare].
func (x *Explorer) Explore(q Explore) (Explored, error) {
	v := x.s.View()
	defer v.Close()
	x.mu.Lock()
	defer x.mu.Unlock()
	defer x.noteReady()
	last := x.followClock()
	x.blocks = nil
	defer func() { x.blocks = nil }()
	a := answer{x: x, q: &q, since: math.MaxInt64, prefix: []byte(q.Prefix), found: make(map[string]*places)}
	if !q.Since.IsZero() {
		a.since = last.before(q.Since.UnixMilli())
	}
	if q.Tag != "" && q.Prefix == "" {
		a.rankings = append(a.rankings, x.tagRanking(q.Tag))
	} else {
		for set := range NameSet(nameSets) {
			v.ByName(set)
		}
		for set := range NameSet(nameSets) {
			r := &x.names[set]
			r.update(x, v.byName[set])
			if set == Histograms {
				r.refreshSizes(x)
			}
			a.rankings = append(a.rankings, r)
		}
	}
	a.setRates()
	for _, r := range a.rankings {
		r.setSince(a.since)
		a.within = append(a.within, r.find(a.prefix, span{0, r.size()}))
	}
	if q.Tag != "" && q.Prefix != "" {
		return a.walkTag(v)
	}
	out := a.groups()
	if q.Tags {
		out.Tags = a.tags(v)
		x.counted = x.counted || q.Prefix == ""
	}
	return out, nil
}

// followClock forgets the sums if times of the store were corrected since. It returns when
// the clock was last set forward.
func (x *Explorer) followClock() leap {
	n, last := x.s.clock()
	if n == x.rebirths {
		return last
	}
	x.rebirths = n
	for i := range x.names {
		x.names[i] = ranking{key: x.names[i].key}
	}
	for _, o := range x.tags {
		o.ranking = ranking{key: o.ranking.key}
	}
	return last
}

// Bytes estimates the memory of the explorer, excluding the index of names,
// which it shares with other readers.
func (x *Explorer) Bytes() (n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range x.names {
		n += x.names[i].bytes()
	}
	for _, o := range x.tags {
		n += o.bytes() + 4*o.size()
	}
	return n
}

// statBytes is what a stat takes besides its record: its value, its value as of the
// last flush, its entries in the index by name and in two orders.
const statBytes = 48

// sizeOf estimates the memory of a stat.
func (b *block) sizeOf(slot int) uint64 {
	n := statBytes + uint64(b.offset[slot+1]-b.offset[slot])
	if b.variant == variantHistogram {
		n += uint64((*b.hists.Load())[slot].Bytes())
	}
	return n
}

// blockBirths is a block and when its first and last stats were created.
type blockBirths struct {
	*block
	oldest, newest int64
}

// births returns the blocks by their indexes. During an answer, it reads them once.
func (x *Explorer) births() []blockBirths {
	if x.blocks != nil {
		return x.blocks
	}
	for _, b := range x.s.eachBlock() {
		runs := b.born.Load()
		if runs == nil {
			continue
		}
		all := blockBirths{b, math.MaxInt64, 0}
		for _, run := range *runs {
			all.oldest, all.newest = min(all.oldest, run.at), max(all.newest, run.at)
		}
		if b.older.Load() != nil {
			all.oldest = 0
		}
		x.blocks = append(x.blocks, make([]blockBirths, int(b.index)+1-len(x.blocks))...)
		x.blocks[b.index] = all
	}
	return x.blocks
}

// answer is the state of an [Explorer] for a question.
type answer struct {
	x        *Explorer
	q        *Explore
	since    int64
	prefix   []byte
	rankings []*ranking
	within   []span // of the prefix in each ranking

	found map[string]*places // the groups by the prefix of their keys
}

// places are the positions of a group in each ranking.
type places [nameSets]span

func (a *answer) setRates() {
	for _, r := range a.rankings {
		r.clearRates()
	}
	if a.q.Rates == nil {
		return
	}
	for ref, rate := range a.q.Rates {
		b, slot := a.x.s.at(id(ref))
		if b == nil || b.ref(slot) != ref {
			continue
		}
		r := a.rankings[0]
		if len(a.rankings) > 1 {
			r = a.rankings[SetOf(b.variant.kind())]
		}
		r.setRate(id(ref), rate)
	}
}

// group returns the part of a key that is common to its group.
func (a *answer) group(key []byte) []byte {
	if a.q.Tag != "" {
		return key
	}
	text, from := key[:len(key)-2], len(a.prefix) // see originKey
	if from < len(text) {
		if n := bytes.IndexByte(text[from:], '.'); n >= 0 {
			return text[:from+n+1]
		}
	}
	return key[:len(key)-1] // stats that have exactly this name
}

// note notes the group of a position, which begins at from or behind it, unless its weight
// in the ranking is below least. It returns the position behind the group.
func (a *answer) note(i, pos, from int, least float64) (end int) {
	r := a.rankings[i]
	key := a.group(r.keyAt(pos))
	p := a.found[string(key)]
	if p != nil && p[i].len() > 0 {
		return p[i].to
	}
	key = bytes.Clone(key)
	s := r.find(key, span{from, a.within[i].to})
	if least > 0 && r.weigh(a.x, s, a.q.By) < least {
		return s.to
	}
	if p == nil {
		p = new(places)
		a.found[string(key)] = p
	}
	p[i] = s
	return s.to
}

// search returns the positions of a group.
func (a *answer) search(i int, key string) span {
	return a.rankings[i].find([]byte(key), a.within[i])
}

// find finds the groups of a ranking. It reports whether it found all.
func (a *answer) find(i int) bool {
	w := a.within[i]
	pos := w.from
	for n := 0; pos < w.to; n++ {
		if n == comparedGroups {
			break
		}
		pos = a.note(i, pos, pos, 0)
	}
	if pos >= w.to {
		return true
	}
	for k := range sampledGroups {
		a.note(i, w.from+k*w.len()/sampledGroups, w.from, 0)
	}
	switch a.q.By {
	case ByBytes, ByRate, ByNew:
		r := a.rankings[i]
		runs, part := r.heavyRuns(a.x, w, heavyGroups, a.q.By)
		for _, s := range runs {
			for pos, from := s.from, w.from; pos < s.to; from = pos {
				pos = a.note(i, pos, from, part)
			}
		}
	}
	return false
}

// candidate is a group that may be part of the answer.
type candidate struct {
	key    string
	places *places
	tally  tally
	sort   float64
}

// groups returns the groups and their sums.
func (a *answer) groups() (out Explored) {
	out.Complete = true
	var partial []int
	for i := range a.rankings {
		if !a.find(i) {
			partial, out.Complete = append(partial, i), false
			out.Bound += (a.within[i].len() + sampledGroups - 1) / sampledGroups
		}
	}
	samples := a.samples()
	list := make([]candidate, 0, len(a.found))
	for _, key := range slices.Sorted(maps.Keys(a.found)) {
		p := a.found[key]
		list = append(list, candidate{key: key, places: p})
	}
	for _, i := range partial {
		rest := a.within[i]
		for _, c := range list {
			if p := &c.places[i]; p.len() == 0 {
				*p = a.rankings[i].find([]byte(c.key), rest)
			}
			rest.from = c.places[i].to
		}
	}
	out.Found = len(list)
	var total tally
	for i, r := range a.rankings {
		r.addTo(a.x, a.within[i], &total)
	}
	return a.answer(list, total, out, samples)
}

// answer completes out: it sorts the list and takes the first groups.
func (a *answer) answer(list []candidate, total tally, out Explored, samples map[string]float64) Explored {
	for i := range list {
		c := &list[i]
		switch a.q.By {
		case BySeries:
			c.sort = float64(c.series())
		case BySamples:
			c.sort = samples[c.key]
		case ByNew, ByRate, ByBytes:
			c.sort = a.weigh(c)
		}
	}
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.sort, a.sort), strings.Compare(a.key, b.key))
	})
	out.Total, out.Others = total.group(a.q.Prefix), total.group("")
	for _, rate := range samples {
		out.Total.Samples += rate
	}
	out.Others.Samples = out.Total.Samples
	for i := range list[:min(len(list), max(a.q.Limit, 0), maxGroups)] {
		c := &list[i]
		g := a.measure(c).group(strings.TrimSuffix(c.key, "\x00"))
		g.Leaf = a.q.Tag == "" && len(g.Name) < len(c.key)
		g.Samples = samples[c.key]
		out.Groups = append(out.Groups, g)
		out.Others.subtract(&g)
	}
	return out
}

// series returns the number of stats of a group.
func (c *candidate) series() int {
	if c.places == nil {
		return c.tally.series
	}
	n := 0
	for _, s := range c.places {
		n += s.len()
	}
	return n
}

// weigh returns what the order of the answer is about.
func (a *answer) weigh(c *candidate) (sum float64) {
	if c.places == nil {
		switch a.q.By {
		case ByNew:
			return float64(c.tally.fresh)
		case ByRate:
			return c.tally.rate
		default:
			return float64(c.tally.bytes)
		}
	}
	for i, r := range a.rankings {
		sum += r.weigh(a.x, c.places[i], a.q.By)
	}
	return sum
}

// measure sums up the stats of a group.
func (a *answer) measure(c *candidate) *tally {
	if c.places != nil {
		for i, r := range a.rankings {
			r.addTo(a.x, c.places[i], &c.tally)
		}
	}
	return &c.tally
}

func (t *tally) group(name string) Group {
	return Group{Name: name, Series: t.series, New: t.fresh, Bytes: t.bytes, First: moment(t.oldest), Last: moment(t.newest), PerSecond: t.rate}
}

// subtract removes the stats of o from g, whose times become unknown.
func (g *Group) subtract(o *Group) {
	g.Series -= o.Series
	g.New -= o.New
	g.Bytes -= min(g.Bytes, o.Bytes)
	g.PerSecond = max(0, g.PerSecond-o.PerSecond)
	g.Samples = max(0, g.Samples-o.Samples)
	g.First, g.Last = time.Time{}, time.Time{}
	if g.Series == 0 {
		g.PerSecond, g.Samples = 0, 0 // not the error of the sums
	}
}

// samples returns the samples per second of groups, and adds the groups to found.
func (a *answer) samples() map[string]float64 {
	if a.q.Tag != "" {
		return nil
	}
	sums := make(map[string]float64)
	for _, sampled := range a.q.Samples {
		rest, ok := strings.CutPrefix(sampled.Name, a.q.Prefix)
		if !ok {
			continue
		}
		segment, _, deeper := strings.Cut(rest, ".")
		keys := []string{a.q.Prefix + segment + "."}
		if !deeper { // a stat, or stats with tags
			keys = []string{a.q.Prefix + segment + "\x00", a.q.Prefix + segment + "."}
		}
		for _, key := range keys {
			if a.found[key] == nil {
				p := new(places)
				for i := range a.rankings {
					p[i] = a.search(i, key)
				}
				if c := (candidate{places: p}); c.series() == 0 {
					continue
				}
				a.found[key] = p
			}
			sums[key] += sampled.PerSecond
			break
		}
	}
	return sums
}
