package statsd

import (
	"fmt"
	"hash/maphash"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/statsd-admin/statsd-admin/internal/shrinkmap"
	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// registry holds all received series. Workers use it for series that their own
// caches do not know: the slow path.
//
// Locks are taken in the order worker.mu, registry.mu, the store's.
type registry struct {
	cfg      *Config
	metrics  *serverMetrics
	scope    *store.Scope // of counters, gauges and histograms
	setScope *store.Scope // of sets, which are gauges to the store
	naming   *naming.Rules
	idSeed   maphash.Seed
	made     time.Time
	cells    cells

	// era changes when limits may decide otherwise than before: at flushes and
	// when series end. Cached decisions of limits, and about kinds in conflict, are
	// valid for one era.
	era atomic.Uint32

	conflictedTimes []atomic.Uint64 // by the values of conflicted; the slice never changes

	memory memory

	rulesMu sync.Mutex // serializes changes of rules
	rules   atomic.Pointer[ruleset]

	tagLimits *valueFilter
	unruled   keeping // of series that no rule is for
	help      helpTexts

	mu       sync.Mutex // guards the rest
	ruled    ruled
	exposed  cellIndex // series with labels, by what the exposition shows
	setCells shrinkmap.Map[uint32, *set]
	// histogramBytes is what histograms are charged beyond histogramMin.
	histogramBytes shrinkmap.Map[uint32, int]
	families       families
	segments       segments
	recycled       int // cells, since the last shrink
	live           int // series; overflow stats do not count
	perGroup       [groups]int
	crowded        [limits]int // first segments and names that have reached four fifths of their limit
	rate           perSecond
	overflowed     map[uint32]string // names that have an overflow stat, by its cell
	tagKeys        map[string]*tagKey
	values         tagValues // empty if unlimited
	newest         ring[report.NewSeries]
	conflicts      ring[report.Conflict]
	conflicted     map[conflictedMetric]uint32 // index in conflictedTimes, for exporterMetrics; nil if disabled
	limitLogged    [limits]time.Time           // when a limit was last logged

	pending atomic.Bool // ended is not empty

	endedMu sync.Mutex // taken after mu and the store's locks
	ended   []uint32   // cells of series that ended
}

// tagKey counts the different values of a tag key: exactly up to fewValues,
// then by an estimate.
type tagKey struct {
	few       []uint64 // hashes of the values, at most fewValues
	registers [256]uint8
}

const fewValues = 16

func (k *tagKey) add(h uint64) {
	if len(k.few) < fewValues && !slices.Contains(k.few, h) {
		k.few = append(k.few, h)
	}
	reg := &k.registers[h>>56]
	*reg = max(*reg, rank(h<<8))
}

func (k *tagKey) count() uint64 {
	if len(k.few) < fewValues {
		return uint64(len(k.few))
	}
	return max(fewValues, uint64(cardinality(k.registers[:])+0.5))
}

const (
	maxTagKeys    = 256 // that are watched
	newestKept    = 256
	conflictsKept = 100
	nameAttempts  = 8
)

func newRegistry(cfg *Config, f *serverMetrics) *registry {
	opts := func(t TTL, gauge time.Duration) store.ScopeOptions {
		return store.ScopeOptions{Network: true, ExtractTags: cfg.ExtractTags, TTL: store.TTL{Counter: t.Counter, Gauge: gauge, Histogram: t.Histogram}, Histograms: cfg.Histograms}
	}
	r := &registry{
		cfg:      cfg,
		made:     cfg.Now(),
		metrics:  f,
		memory:   newMemory(int64(cfg.Limits.MemoryBytes), cfg.Store.NetworkRemains),
		scope:    cfg.Store.ScopeWith(cfg.Prefix, opts(cfg.TTL, cfg.TTL.Gauge)),
		setScope: cfg.Store.ScopeWith(cfg.Prefix, opts(cfg.TTL, cfg.TTL.Set)),
		naming:   cfg.Store.Naming(),
		idSeed:   maphash.MakeSeed(),
		rate:     perSecond{max: cfg.Limits.NewPerSecond},
		tagKeys:  make(map[string]*tagKey),

		overflowed: make(map[uint32]string),

		newest:    newRing[report.NewSeries](newestKept),
		conflicts: newRing[report.Conflict](conflictsKept),
	}
	if cfg.ExporterMetrics {
		r.conflicted = make(map[conflictedMetric]uint32)
		r.conflictedTimes = make([]atomic.Uint64, maxConflictedTimes)
	}
	r.unruled = keeping{form: cfg.Histograms, timers: cfg.Histograms, summary: summarizes(cfg.Histograms), sets: newSetWindow(cfg.SetWindow, 0)}
	if cfg.Parse.Exporter {
		r.help.other = exporterHelp
	}
	cfg.Store.DescribeNetwork(r.help.describe)
	cfg.Store.OnNetworkInterval(r.interval)
	r.tagLimits = newValueFilter(cfg.Filters.Values, &r.memory)
	r.exposed = newCellIndex(&r.cells)
	r.families.owners = naming.NewOwners(r.ownsMetric)
	cfg.Store.OnNetworkEnd(func(mark uint32) {
		r.endedMu.Lock()
		r.ended = append(r.ended, mark-1)
		r.pending.Store(true)
		r.endedMu.Unlock()
	})
	return r
}

// found is the answer of the registry about a series.
type found struct {
	cell   *cell // nil if the sample is dropped
	number uint32
	gen    uint32
	limit  limit // why cell is not the series itself
	rule   ruleNumber
	drops  bool        // rule drops the sample
	reason line.Reason // why the line is rejected, or OK
	brief  bool        // the answer must not be cached
	made   bool        // the series is new; the caller passes it to noteNew
	logs   *message    // to log
}

// wanted describes the series of a sample.
type wanted struct {
	group group
	typ   line.Type
	name  string
	tags  []tags.Tag // in byte order of the keys

	rule    ruleNumber
	era     uint16 // of the rules
	kept    keeping
	help    string
	dropped bool        // by the rule
	reason  line.Reason // why the rule cannot be applied, or OK

	metric string
	labels []tags.Tag // what the exposition makes labels of
}

// want returns the series of a sample under filters and rules. It does not keep
// name and lineTags. Unless learn is set, the sample only is explained.
func (r *registry) want(rules *ruleset, name []byte, lineTags []line.Tag, typ line.Type, learn bool) wanted {
	w := wanted{group: groupOf(typ), typ: typ, name: string(name)}
	if typ == line.Counter && r.gaugeBacked(name) {
		w.group = gauges
	}
	for _, t := range lineTags {
		w.tags = append(w.tags, tags.Tag{Name: string(t.Key), Value: string(t.Value)})
	}
	w.kept = r.unruled
	if r.filter(&w, learn); w.dropped {
		return w
	}
	r.mapName(&w, rules)
	if bare := strings.TrimRight(w.name, "."); len(bare) != len(w.name) {
		if r.cfg.Parse.Exporter {
			bare += strings.Repeat("_", len(w.name)-len(bare))
		}
		w.name = bare
	}
	if w.name == "" && w.reason == line.OK && !w.dropped {
		w.reason = line.EmptyName
	}
	return w
}

// gaugeBacked reports whether the counter of that name is kept as a gauge.
func (r *registry) gaugeBacked(name []byte) bool {
	return r.cfg.GaugeBacked != nil && r.cfg.GaugeBacked(string(name))
}

// resolve returns a series that want returned, and creates it if it is new.
func (r *registry) resolve(w *wanted) (f found) {
	switch {
	case w.dropped:
		return found{number: noCell, rule: w.rule, drops: true}
	case w.reason != line.OK:
		return found{reason: w.reason}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	x, known, reason := r.place(w, r.addConflict)
	if reason != line.OK {
		return found{reason: reason, number: r.noteConflict(w.name, w.group.String()), gen: r.era.Load(), rule: w.rule}
	}
	r.checkForm(w, x, known)
	if known {
		c := r.cells.at(x)
		f = found{cell: c, number: x, gen: c.gen.Load()}
	} else {
		f = r.create(w)
	}
	if w.help != "" && f.limit == noLimit {
		r.help.set(r.full(w.name), w.help)
	}
	f.rule = w.rule
	return f
}

// lookup returns the cell of an existing series, or nil.
func (r *registry) lookup(rules *ruleset, name []byte, lineTags []line.Tag, typ line.Type) *cell {
	w := r.want(rules, name, lineTags, typ, false)
	if w.dropped {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if x, known, _ := r.place(&w, func(*store.Counter, report.Conflict) {}); known {
		return r.cells.at(x)
	}
	return nil
}

// place chooses the name of w: its own, unless that belongs to another series
// or kind. It returns the cell if the series exists. Conflicts are passed to
// note.
func (r *registry) place(w *wanted, note func(*store.Counter, report.Conflict)) (x uint32, known bool, reason line.Reason) {
	plain := w.name
	suffixed := plain + naming.Suffix(w.group.String())
	for attempt := range nameAttempts {
		if attempt > 0 {
			w.name = suffixed
			if attempt > 1 {
				w.name += "_" + strconv.Itoa(attempt)
			}
		}
		mark, same := r.scope.Marked(w.name, w.tags...)
		x = mark - 1
		if mark != 0 && same && r.cells.at(x).group == w.group {
			return x, true, line.OK
		}
		w.metric, w.labels = r.shown(w.name, w.tags)
		other, conflict := r.conflict(w)
		if mark != 0 {
			c := r.cells.at(x)
			other, conflict = r.cells.family(x), true
			if c.group == w.group {
				// Dots inside tags: another name and other tags read the same.
				note(r.metrics.collisions, report.Conflict{Name: w.name, Other: r.nameOf(other), What: "full name", Group: w.group.String()})
				continue
			}
		}
		if !conflict {
			return 0, false, line.OK
		}
		if r.cfg.RejectConflicts {
			return 0, false, line.TypeConflict
		}
		if attempt == 0 && !r.known(suffixed) {
			note(r.metrics.conflicts, report.Conflict{Name: plain, Other: r.nameOf(other), What: "kind", Group: w.group.String()})
		}
	}
	return 0, false, line.TypeConflict
}

func put(h *maphash.Hash, sep byte, s string) {
	_ = h.WriteByte(sep) // a hash takes everything
	_, _ = h.WriteString(s)
}

// shown returns the metric name in the exposition, without suffixes of kinds,
// and the tags that become labels: the given ones, or the tags that the store's
// rules extract from the name.
func (r *registry) shown(name string, tgs []tags.Tag) (metric string, labels []tags.Tag) {
	name = r.full(name)
	if len(tgs) == 0 && r.cfg.ExtractTags {
		name, tgs = r.cfg.Store.Tags().Extract(name, nil)
	}
	var buf [128]byte
	m, _ := r.naming.AppendMetric(buf[:0], name, true, false)
	if string(m) == name {
		return name, tgs
	}
	return string(m), tgs
}

// full returns a name with the configured prefix.
func (r *registry) full(name string) string {
	if p := r.scope.Prefix(); p != "" {
		return p + "." + name
	}
	return name
}

// known reports whether a stat of that name exists, with any tags.
func (r *registry) known(name string) bool {
	metric, _ := r.shown(name, nil)
	_, ok := r.familyNamed(metric)
	return ok
}

// addConflict counts and records cl.
func (r *registry) addConflict(c *store.Counter, cl report.Conflict) {
	c.Inc()
	if c == r.metrics.conflicts {
		r.noteConflict(cl.Name, cl.Group)
	}
	cl.Time = r.cfg.Now()
	r.conflicts.add(cl)
}

// exceeded returns the limit that prevents the creation of w.
func (r *registry) exceeded(w *wanted, now time.Time) limit {
	l := &r.cfg.Limits
	switch {
	case r.live >= l.Series:
		return limitSeries
	case r.segments.series(w.name) >= l.FirstSegment:
		return limitFirstSegment
	case w.group == sets && r.perGroup[sets] >= l.Sets:
		return limitSets
	}
	if x, ok := r.familyNamed(w.metric); ok && int(r.family(x).series) >= l.SeriesPerName {
		return limitPerName
	}
	if !r.memory.fits(r.cost(w)) {
		return limitMemory
	}
	if r.rate.full(now) {
		return limitRate
	}
	if l.ValuesPerTagKey != unlimited && r.values.full(w.tags, l.ValuesPerTagKey) {
		return limitTagValues
	}
	return noLimit
}

// create creates the series w unless a limit prevents it.
func (r *registry) create(w *wanted) found {
	now := r.cfg.Now()
	if lim := r.exceeded(w, now); lim != noLimit {
		r.cfg.Store.Own().Counter("server.stats_overflow." + storeKind(w.group).String()).Inc()
		f := r.overflow(w, lim)
		if r.limitSilent(lim, now) {
			return f
		}
		f.logs = r.limitMessage(lim, now, "name", strings.Clone(w.name)) // handlers of logs escape it
		return f
	}
	f, err := r.make(w, ordinary)
	if err != nil {
		f = found{limit: limitStore, number: noCell, gen: r.era.Load()}
		f.logs = r.limitMessage(limitStore, now, "error", err.Error())
		return f
	}
	r.rate.done++
	r.live++
	r.watchTags(w.tags)
	if r.cfg.Limits.ValuesPerTagKey != unlimited {
		r.values.hold(f.number, w.tags)
	}
	f.made = true
	return f
}

// noteNew notes that a sender made the series w.
func (r *registry) noteNew(w *wanted, sender string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.newest.add(report.NewSeries{Time: r.cfg.Now(), Name: w.name, Kind: w.group.String(), Tags: tagText(w.tags), Sender: sender})
}

// limitSilent reports whether a message about lim was returned less than a minute ago.
func (r *registry) limitSilent(lim limit, now time.Time) bool {
	t := r.limitLogged[lim]
	return !t.IsZero() && now.Sub(t) < time.Minute
}

// limitMessage returns a message about a limit, at most one per minute and
// limit.
func (r *registry) limitMessage(lim limit, now time.Time, key string, value any) *message {
	if r.limitSilent(lim, now) {
		return nil
	}
	r.limitLogged[lim] = now
	return &message{slog.LevelWarn, "statsd: a limit prevents new stats", []any{"limit", lim.String(), key, value}}
}

// overflow returns the target of samples over a limit. Counts and observations
// go to an overflow stat, that of the name if the name is known. Others are
// dropped, because adding them up means nothing.
func (r *registry) overflow(w *wanted, lim limit) found {
	f := found{limit: lim, number: noCell, gen: r.era.Load(), brief: lim == limitRate}
	if w.group != counters && w.group != histograms {
		return f
	}
	o := wanted{group: w.group, typ: w.typ, name: "overflow." + w.group.String(), kept: r.unruled, era: w.era}
	if r.known(w.name) {
		o.tags = []tags.Tag{{Name: "metric", Value: w.name}}
		if mark, _ := r.scope.Marked(o.name, o.tags...); mark == 0 && len(r.overflowed) >= r.cfg.Limits.OverflowedNames {
			o.tags = nil
		}
	}
	if mark, same := r.scope.Marked(o.name, o.tags...); mark != 0 {
		if c := r.cells.at(mark - 1); same && c.group == o.group {
			f.cell, f.number = c, mark-1
		}
		return f
	}
	o.metric, o.labels = r.shown(o.name, o.tags)
	if _, ok := r.conflict(&o); ok {
		return f
	}
	role := overflowBare
	if o.tags != nil {
		role = overflowNamed
	}
	made, err := r.make(&o, role)
	if err != nil {
		return f
	}
	if role == overflowNamed {
		r.overflowed[made.number] = w.name
	}
	f.cell, f.number = made.cell, made.number
	return f
}

// overflowHistogram returns the target of observations that histograms cannot keep
// at the memory budget, or nil.
func (r *registry) overflowHistogram(typ line.Type) *store.Histogram {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.overflow(&wanted{group: histograms, typ: typ}, limitMemory)
	if f.cell == nil {
		return nil
	}
	return f.cell.histogram()
}

// make creates the stat and the cell of w.
func (r *registry) make(w *wanted, as role) (found, error) {
	stat, err := r.stat(w)
	if err != nil {
		return found{}, err
	}
	r.dropEndedLocked() // a series of this name can have ended
	x, c := r.cells.take()
	if !r.scope.Mark(x+1, w.name, w.tags...) {
		r.cells.free = append(r.cells.free, x)
		return found{}, fmt.Errorf("statsd: %q ended while it was created", w.name)
	}
	c.group, c.role, c.stat = w.group, as, stat
	if w.typ == line.Timer {
		c.role |= timer
	}
	c.cost = uint16(r.cost(w) / costUnit)
	r.memory.charge(int(c.cost) * costUnit)
	r.join(w, x)
	if other, taken := r.expose(w, x); taken {
		// They differ only in bytes that the exposition cannot show.
		r.addConflict(r.metrics.collisions, report.Conflict{Name: w.name, Other: r.nameOf(other), What: "exposition", Group: w.group.String()})
	}
	if full := r.fullName(w); r.cfg.Store.Has(false, full) {
		r.conflicts.add(report.Conflict{Time: r.cfg.Now(), Name: w.name, Group: w.group.String(), Other: full, What: "own stat"})
	}
	c.first = r.segments.enter(w.name, &r.memory)
	r.grow(&r.segments.list[c.first].series, 1, limitFirstSegment, r.cfg.Limits.FirstSegment)
	r.perGroup[w.group]++
	r.metrics.created[w.group].Inc()
	switch w.group {
	case sets:
		r.setCells.Set(x, c.set())
	case histograms:
		r.histogramBytes.Set(x, 0)
		r.memory.watch(c.histogram().Layout())
		r.ruled.note(x, w.form(), r.cfg.Histograms)
	}
	return found{cell: c, number: x, gen: c.gen.Load()}, nil
}

// stat gets the stat of w from the store; see [cell.stat].
func (r *registry) stat(w *wanted) (unsafe.Pointer, error) {
	scope := r.scopeOf(w)
	switch w.group {
	case counters:
		c, err := scope.TryCounter(w.name, w.tags...)
		return unsafe.Pointer(c), err
	case gauges:
		g, err := scope.TryFloatGauge(w.name, w.tags...)
		return unsafe.Pointer(g), err
	case sets:
		g, err := scope.TryFloatGauge(w.name, w.tags...)
		if err != nil {
			return nil, err
		}
		if err := g.Set(0); err != nil { // nothing was flushed yet
			return nil, err
		}
		return unsafe.Pointer(&set{gauge: g, memory: &r.memory, window: w.kept.sets}), nil
	}
	unit := store.Unspecified
	if w.typ == line.Timer {
		unit = store.Milliseconds
	}
	h, err := scope.TryHistogram(w.name, unit, w.tags...)
	return unsafe.Pointer(h), err
}

// grow changes a number of series with a limit, and counts the numbers that are
// near it.
func (r *registry) grow(series *int32, by int32, lim limit, most int) {
	was := nearly(int(*series), most)
	*series += by
	switch is := nearly(int(*series), most); {
	case is && !was:
		r.crowded[lim]++
	case was && !is:
		r.crowded[lim]--
	}
}

// expose notes the series that the exposition shows of cell x. If another cell has
// the same, taken is true and other is its family. A series without labels is the
// alone in its family; others are found by a hash.
func (r *registry) expose(w *wanted, x uint32) (other uint32, taken bool) {
	c := r.cells.at(x)
	if len(w.labels) == 0 {
		family := r.cells.family(x)
		if family&solo == 0 {
			f := &r.families.list[family]
			if f.print&hasPlain != 0 {
				return family, true
			}
			f.print |= hasPlain
		}
		c.role |= bare
		return 0, false
	}
	var h maphash.Hash
	h.SetSeed(r.idSeed)
	put(&h, byte(w.group), w.metric)
	for _, l := range r.labels(w.labels) {
		put(&h, 0, l.Name)
		put(&h, 1, l.Value)
	}
	hash := max(h.Sum64(), 1)
	if x, taken := r.exposed.find(hash); taken {
		return r.cells.family(x), true
	}
	r.cells.setHash(x, hash)
	r.exposed.insert(x)
	return 0, false
}

// watchTags records the values of tags for the list of keys with the most
// values.
func (r *registry) watchTags(tgs []tags.Tag) {
	for _, t := range tgs {
		k := r.tagKeys[t.Name]
		if k == nil {
			if len(r.tagKeys) >= maxTagKeys {
				continue
			}
			k = new(tagKey)
			r.tagKeys[t.Name] = k
		}
		k.add(mix(maphash.String(r.idSeed, t.Value)))
	}
}

// dropEnded retires the cells of series that the store removed.
func (r *registry) dropEnded() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropEndedLocked()
}

func (r *registry) dropEndedLocked() {
	if !r.pending.Load() {
		return
	}
	r.endedMu.Lock()
	ended := r.ended
	r.ended = nil
	r.pending.Store(false)
	r.endedMu.Unlock()
	for _, x := range ended {
		c := r.cells.at(x)
		r.values.release(x)
		r.memory.charge(-int(c.cost) * costUnit)
		if c.group == sets {
			c.set().release()
			r.setCells.Delete(x)
		}
		r.memory.charge(-r.histogramBytes.At(x))
		r.histogramBytes.Delete(x)
		delete(r.ruled.odd, x)
		if r.cells.hashOf(x) != 0 {
			r.exposed.remove(x)
			r.cells.setHash(x, 0)
		}
		r.perGroup[c.group]--
		r.metrics.expired[c.group].Inc()
		r.grow(&r.segments.list[c.first].series, -1, limitFirstSegment, r.cfg.Limits.FirstSegment)
		r.segments.leave(c.first, &r.memory)
		switch c.role &^ flags {
		case ordinary:
			r.live--
		case overflowNamed:
			delete(r.overflowed, x)
		}
		r.leave(x)
		r.cells.retire(x)
	}
	fs, ss := &r.families, &r.segments
	fs.list, fs.free = trimUnused(fs.list, fs.free, func(f *family) bool { return f.print == 0 })
	ss.list, ss.free = trimUnused(ss.list, ss.free, func(s *segment) bool { return s.series == 0 })
	r.era.Add(1)
}

// takeRetired returns the cells of ended series. They can be recycled once
// every worker has been idle since.
func (r *registry) takeRetired() []uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	xs := r.cells.retired
	r.cells.retired = nil
	return xs
}

// shrink frees the memory of cells that are free. All workers must be held, and
// their caches hold no stale entries.
func (r *registry) shrink() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recycled = 0
	r.cells.shrink()
}

// recycle makes cells free for other series; see takeRetired. It reports whether so
// many series ended since the last shrink that it is worth the time.
func (r *registry) recycle(xs []uint32) (shrink bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recycled += len(xs)
	r.cells.recycle(xs)
	return r.recycled >= cellsPerChunk && r.recycled >= r.cells.count()/4
}

func tagText(tgs []tags.Tag) string {
	var b strings.Builder
	for i, t := range tgs {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(t.Name)
		if t.Value != "" {
			b.WriteString(":" + t.Value)
		}
	}
	return b.String()
}
