package statsd

import (
	"bytes"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/statsd/relay"
	"github.com/statsd-admin/statsd-admin/store"
)

// A worker yields after fairShare bytes of lines, about half a millisecond. A line
// that is not cached counts as missShare more, which it takes the time of.
const (
	fairShare = 64 << 10
	missShare = 512
)

// worker parses and applies lines. A datagram socket has one worker, stream
// connections share some. mu must be held to use it; holding the mu of all
// workers guarantees that no sample is being applied.
type worker struct {
	server   *Server
	registry *registry
	parser   *line.Parser

	mu      sync.Mutex // guards the rest
	line    line.Line
	cache   *seriesCache
	targets []target // of the samples of line
	tally   tally
	top     topSketch
	visits  uint64    // calls of enter; every busyEvery-th is timed
	entered time.Time // zero if this visit is not timed

	share int // since the last yield; see fairShare

	busy  *busyTime
	logs  []message    // to log on leave
	tap   func(Tapped) // receives accepted lines; may be nil
	gauge func() *cell // targetGauge, bound once

	rules   *ruleset      // of cache; nil before the first
	matches []uint32      // of the batch, by rule
	matched []ruleNumber  // rules with matches
	wants   []wanted      // of the samples of a line that is not cached
	relay   *relay.Writer // nil if there is none
	tracer  bool          // line is one of a relay
}

// target is the destination of a sample.
type target struct {
	cell  *cell // nil to drop it
	limit limit // that it exceeds
	drops bool  // rule drops it
	rule  ruleNumber

	number uint32 // of cell
}

// enter locks w.
func (w *worker) enter() {
	var tap func(Tapped)
	if asked := w.server.cfg.Tap; asked != nil {
		tap = asked() // before w is locked, since it can panic
	}
	w.lock(tap)
}

// lock locks w, which passes accepted lines to tap.
func (w *worker) lock(tap func(Tapped)) {
	w.mu.Lock()
	w.tap = tap
	if w.visits++; w.visits%busyEvery == 0 {
		w.entered = time.Now()
	}
	if w.registry.pending.Load() {
		w.registry.dropEnded()
	}
	if rules := w.registry.rules.Load(); rules != w.rules {
		w.cache.clear()
		w.rules, w.matches, w.matched = rules, make([]uint32, rules.rules.Len()), nil
	}
}

// leave publishes the counts for l and unlocks w, also after a panic, which it
// recovers.
func (w *worker) leave(l *listener) {
	p := recover()
	if p != nil {
		w.cache.clear() // it can be inconsistent
	}
	w.tally.publish(l.metrics, w.server.metrics)
	w.publishMatches()
	if !w.entered.IsZero() {
		w.busy.add(w.entered)
		w.entered = time.Time{}
	}
	logs := w.logs
	w.logs = nil
	w.mu.Unlock()
	if p != nil {
		w.server.guard.Report("worker", p)
	}
	if logs != nil {
		w.server.logAll(logs)
	}
}

// yield lets other goroutines run before the next line: requests are not to wait
// for a flood of lines to end.
func (w *worker) yield(l *listener) {
	w.share = 0
	tap := w.tap
	w.leave(l)
	runtime.Gosched()
	w.lock(tap)
}

// batch applies the first n datagrams that so read.
func (w *worker) batch(l *listener, so *socket, n int) {
	w.enter()
	defer w.leave(l)
	if so.batch.waited {
		w.share = 0 // others could run meanwhile
	}
	filtered := len(l.cfg.Allowed) > 0
	l.metrics.batchSize.Record(uint64(n))
	for i := range n {
		p, cut := so.batch.packet(i)
		w.tally.packets++
		w.tally.bytes += uint64(len(p))
		if filtered && !l.allowed(so.batch.sender(i).Addr()) {
			w.tally.refused++
			continue
		}
		lines := w.packet(l, p, cut, source{batch: so.batch, index: i})
		l.metrics.linesPerPacket.Record(uint64(lines))
	}
	if v, ok := so.batch.dropped(); ok {
		l.metrics.drops.Add(so.drops.observe(v))
	}
}

// packet applies the lines of one datagram or frame and returns their number.
// cut means that the end of the datagram is missing.
func (w *worker) packet(l *listener, p []byte, cut bool, from source) (n int) {
	most := w.server.cfg.Limits.LinesPerPacket
	for len(p) > 0 {
		text := p
		if i := bytes.IndexByte(p, '\n'); i >= 0 {
			text, p = p[:i], p[i+1:]
		} else if p = nil; cut {
			w.rejectLine(l, line.Truncated, text, from)
			w.tally.truncated++
			return n + 1
		}
		if n >= most {
			if len(line.Trim(text)) > 0 {
				w.rejectLine(l, line.TooManyLines, text, from)
				n++
			}
			continue
		}
		if w.take(l, text, from) {
			n++
		}
	}
	if cut {
		w.rejectLine(l, line.Truncated, nil, from)
		w.tally.truncated++
		n++
	}
	return n
}

// chunk applies complete lines of a stream.
func (w *worker) chunk(l *listener, p []byte, from source) {
	w.enter()
	defer w.leave(l)
	w.tally.bytes += uint64(len(p))
	for len(p) > 0 {
		text := p
		if i := bytes.IndexByte(p, '\n'); i >= 0 {
			text, p = p[:i], p[i+1:]
		} else {
			p = nil
		}
		w.take(l, text, from)
	}
}

// frames applies the complete frames at the start of p. It returns their
// length, and the length of the next frame if known. bad means that a frame is
// longer than allowed, so that the following ones cannot be found.
func (w *worker) frames(l *listener, p []byte, from source) (used, need int, bad bool) {
	w.enter()
	defer w.leave(l)
	for {
		rest := p[used:]
		need = nextFrame(rest)
		if need > l.cfg.PacketBytes+lengthPrefix {
			return used, 0, true
		}
		if need == 0 || need > len(rest) {
			return used, need, false
		}
		used += need
		if need == lengthPrefix {
			continue // an empty frame
		}
		w.tally.packets++
		w.tally.bytes += uint64(need)
		lines := w.packet(l, rest[lengthPrefix:need], false, from)
		l.metrics.linesPerPacket.Record(uint64(lines))
	}
}

// reject counts input that is not a complete line, such as the rest of a broken
// stream, as a rejected line.
func (w *worker) reject(l *listener, r line.Reason, text []byte, from source) {
	w.enter()
	defer w.leave(l)
	w.tally.bytes += uint64(len(text))
	w.rejectLine(l, r, text, from)
}

// rejectLine counts a line and its reason. w.mu must be held.
func (w *worker) rejectLine(l *listener, r line.Reason, text []byte, from source) {
	w.tally.lines++
	w.refuse(l, r, text, from)
}

// refuse counts the reason of a rejected line that was counted already.
func (w *worker) refuse(l *listener, r line.Reason, text []byte, from source) {
	l.metrics.reject(r)
	if m, ok := w.server.rejects.note(l.name, r, text, from); ok {
		w.logs = append(w.logs, m)
	}
}

// take applies one line. It reports false for a blank line, and for a tracer of a relay,
// which is not counted.
func (w *worker) take(l *listener, text []byte, from source) bool {
	if w.share += len(text); w.share > fairShare {
		w.yield(l)
	}
	r := w.parser.Split(&w.line, text)
	if r == line.OK {
		switch kind := w.line.Kind; {
		case kind == line.KindBlank:
			return false
		case w.server.cfg.RelayOnly:
			r = w.relayOnly()
		case kind == line.KindMetric:
			r = w.metric(&from)
		case kind == line.KindEvent:
			r = w.event()
		case kind == line.KindServiceCheck:
			r = w.check(&from)
		}
	}
	if w.tracer {
		w.tracer = false
		if w.relay != nil {
			w.server.relay.Trace(&w.line)
		}
		return false
	}
	w.tally.lines++
	if r != line.OK {
		w.refuse(l, r, w.line.Text, from)
		if w.relay != nil && w.server.relay.TakesInvalid() {
			w.relay.AddInvalid(w.line.Text)
		}
		return true
	}
	if w.relay != nil {
		w.forward()
	}
	if w.tap != nil {
		w.tap(Tapped{l.name, l.local, from.String(), w.line.Text})
	}
	return true
}

// forward relays the line, which is valid.
func (w *worker) forward() {
	if li := &w.line; li.Kind == line.KindMetric && li.Name == nil && w.server.relay.NeedsName() {
		_ = w.parser.Identify(li) // valid, since its key is cached
	}
	w.relay.Add(&w.line)
}

// relayOnly checks and counts a line that makes no stats here.
func (w *worker) relayOnly() (r line.Reason) {
	li := &w.line
	switch li.Kind {
	case line.KindMetric:
		if r = w.parser.Identify(li); r != line.OK {
			return r
		}
		if w.tracer = relay.IsTracer(li.Name); w.tracer {
			return line.OK
		}
		li.SignedCounters = w.registry.gaugeBacked(li.Name)
		r = w.parser.Numbers(li)
	case line.KindEvent:
		_, r = w.parser.ParseEvent(li)
	case line.KindServiceCheck:
		_, r = w.parser.ParseServiceCheck(li)
	}
	if r != line.OK {
		return r
	}
	for i := range li.Samples {
		s := &li.Samples[i]
		n := uint64(max(s.To-s.From, 1))
		w.tally.samples += n
		w.tally.byType[s.Type] += n
	}
	w.tally.relayOnly++
	w.tally.tags += uint64(len(li.Tags))
	w.tally.tagErrors += uint64(li.TagErrors)
	w.tally.unknown += uint64(li.Unknown)
	return line.OK
}

// metric applies the metric in w.line completely or not at all.
func (w *worker) metric(from *source) line.Reason {
	li := &w.line
	if li.Fields != line.OK {
		return w.parser.Identify(li) // errors of the name come first
	}
	key := w.cache.keyOf(li)
	w.targets = w.targets[:0]
	var tags tagCount
	known := true
	for i := range li.Samples {
		n, reason, ok := w.recall(&key, li.Samples[i].Type)
		switch {
		case reason == line.TypeConflict && len(li.Samples) > 1:
			ok = false
		case reason == line.TypeConflict:
			w.tally.hits++
			return w.conflict(&w.targets[0])
		case reason != line.OK:
			return reason
		}
		if !ok {
			known = false
			break
		}
		tags = n
	}
	if known {
		w.tally.hits++
		if r := w.judgeSigned(); r != line.OK {
			return r
		}
		if r := w.parser.Numbers(li); r != line.OK {
			return r
		}
		if r := w.checkKnown(); r != line.OK {
			return r
		}
	} else {
		w.tally.misses++
		w.share += missShare
		if r := w.learn(&key, from); r != line.OK || w.tracer {
			return r
		}
	}
	well, ill := int(tags.well), int(tags.ill)
	if !known {
		well, ill = len(li.Tags), li.TagErrors
	}
	w.tally.tags += uint64(well)
	w.tally.tagErrors += uint64(ill)
	w.tally.unknown += uint64(li.Unknown)
	w.apply()
	return line.OK
}

// checkKnown scales the samples of w.line by the rules of its targets, and
// checks gauges.
func (w *worker) checkKnown() line.Reason {
	if w.rules != nil {
		for i := range w.targets {
			if r := w.scale(w.targets[i].rule, &w.line.Samples[i]); r != line.OK {
				return r
			}
		}
	}
	return w.checkGauges(w.gauge)
}

// conflict returns the reason to reject w.line, whose only sample is cached as in
// conflict with the kind of its name: an error of its value comes first.
func (w *worker) conflict(t *target) line.Reason {
	li := &w.line
	if w.server.cfg.GaugeBacked != nil {
		if r := w.parser.Identify(li); r != line.OK {
			return r
		}
		li.SignedCounters = w.registry.gaugeBacked(li.Name)
	}
	if r := w.parser.Numbers(li); r != line.OK {
		return r
	}
	if r := w.scale(t.rule, &li.Samples[0]); r != line.OK {
		return r
	}
	if r := w.checkGauges(func() *cell { return nil }); r != line.OK { // there is no gauge
		return r
	}
	if t.number != noCell {
		w.registry.conflictedTimes[t.number].Add(1)
	}
	return line.TypeConflict
}

// tagCount counts the tags of a line: the valid ones, and the malformed ones
// that are ignored.
type tagCount struct{ well, ill uint8 }

// tagsOf returns the tag count of a line. ok is false if there are too many for
// it; such lines are not cached.
func tagsOf(li *line.Line) (n tagCount, ok bool) {
	n = tagCount{uint8(len(li.Tags)), uint8(li.TagErrors)}
	return n, int(n.well) == len(li.Tags) && int(n.ill) == li.TagErrors
}

// recall adds the cached target of a key to w.targets. ok is false if none is cached, it
// is out of date, or reason says why the line is rejected: then only a target in conflict
// is added.
func (w *worker) recall(key *lineKey, typ line.Type) (n tagCount, reason line.Reason, ok bool) {
	s := w.cache.find(key, typ)
	if s == nil {
		return tagCount{}, line.OK, false
	}
	c, ok := w.current(s)
	if !ok {
		w.cache.forget(s)
		return tagCount{}, line.OK, false
	}
	if s.reason != line.OK && s.reason != line.TypeConflict {
		return tagCount{}, s.reason, false
	}
	limit := s.limit()
	w.targets = append(w.targets, target{c, limit, c == nil && limit == noLimit, s.rule, s.cell})
	return s.tags, s.reason, s.reason == line.OK
}

// current returns the cell of the series of a cached entry, if it has one, and reports
// whether the entry is up to date.
func (w *worker) current(s *cacheEntry) (c *cell, ok bool) {
	switch {
	case s.reason == line.TypeConflict:
		return nil, s.gen == w.registry.era.Load()
	case s.reason != line.OK:
		return nil, true
	}
	if s.cell != noCell {
		c = w.registry.cells.at(s.cell)
	}
	if s.limit() != noLimit {
		return c, s.gen == w.registry.era.Load()
	}
	return c, c == nil || c.gen.Load() == s.gen // a rule drops samples without a cell
}

// valid reports whether a cached entry is up to date.
func (w *worker) valid(s *cacheEntry) bool {
	_, ok := w.current(s)
	return ok
}

// learn finds or creates the series of a line that is not cached, unless the
// line is invalid.
func (w *worker) learn(key *lineKey, from *source) line.Reason {
	li := &w.line
	if r := w.parser.Identify(li); r != line.OK {
		w.remember(key, li.Samples[0].Type, cacheEntry{reason: r})
		return r
	}
	if w.tracer = relay.IsTracer(li.Name); w.tracer {
		return line.OK
	}
	li.SignedCounters = w.registry.gaugeBacked(li.Name)
	if r := w.parser.Numbers(li); r != line.OK {
		return r
	}
	normal, reordered := w.cache.normalKey(li)
	if reordered && w.recallNormal(&normal) {
		if r := w.checkKnown(); r != line.OK {
			return r
		}
		w.rememberVariant(key, &normal)
		return line.OK
	}
	w.wants = w.wants[:0]
	for i := range li.Samples {
		s := &li.Samples[i]
		w.wants = append(w.wants, w.registry.want(w.rules, li.Name, li.Tags, s.Type, true))
		if r := w.scale(w.wants[i].rule, s); r != line.OK {
			return r
		}
	}
	if r := w.checkGauges(w.knownGauge); r != line.OK {
		return r
	}
	w.targets = w.targets[:0]
	for i := range w.wants {
		typ := li.Samples[i].Type
		f := w.resolve(&w.wants[i], from)
		if f.reason != line.OK {
			if f.reason == line.TypeConflict && len(li.Samples) == 1 {
				w.remember(key, typ, cacheEntry{reason: f.reason, cell: f.number, gen: f.gen, rule: f.rule})
			}
			return f.reason
		}
		w.targets = append(w.targets, target{f.cell, f.limit, f.drops, f.rule, f.number})
		if tags, ok := tagsOf(li); ok && !f.brief {
			e := cacheEntry{cell: f.number, gen: f.gen, state: uint8(f.limit), rule: f.rule, tags: tags}
			if !w.cache.firstVariant(f.number) && reordered {
				w.remember(&normal, typ, e)
			}
			w.remember(key, typ, e)
		}
	}
	return line.OK
}

// recallNormal sets w.targets to the targets that are cached under the normal form
// of w.line. It reports whether all are.
func (w *worker) recallNormal(key *lineKey) bool {
	w.targets = w.targets[:0]
	for i := range w.line.Samples {
		if _, _, ok := w.recall(key, w.line.Samples[i].Type); !ok {
			return false
		}
	}
	return true
}

// rememberVariant caches key for the samples of w.line, whose targets are cached
// under normal, unless enough of its variants are.
func (w *worker) rememberVariant(key, normal *lineKey) {
	tags, ok := tagsOf(&w.line)
	for i := range w.line.Samples {
		typ := w.line.Samples[i].Type
		if s := w.cache.find(normal, typ); ok && s != nil && s.addVariant() {
			e := *s
			e.tags, e.state = tags, uint8(s.limit())
			w.remember(key, typ, e)
		}
	}
}

// resolve returns the series of a sample.
func (w *worker) resolve(wanted *wanted, from *source) found {
	f := w.registry.resolve(wanted)
	if f.made {
		w.registry.noteNew(wanted, from.String())
	}
	if f.logs != nil {
		w.logs = append(w.logs, *f.logs)
	}
	return f
}

func (w *worker) remember(key *lineKey, typ line.Type, s cacheEntry) {
	if w.cache.find(key, typ) == nil && w.cache.put(key, typ, s) {
		w.tally.evicted++
	}
}

// judgeSigned sets w.line.SignedCounters for a line with cached targets.
func (w *worker) judgeSigned() line.Reason {
	if w.server.cfg.GaugeBacked == nil {
		return line.OK
	}
	li := &w.line
	for i, t := range w.targets {
		if li.Samples[i].Type != line.Counter {
			continue
		}
		if t.cell != nil {
			li.SignedCounters = t.cell.group == gauges
			return line.OK
		}
		// Over a limit there is no series that the name could be read from.
		if r := w.parser.Identify(li); r != line.OK {
			return r
		}
		li.SignedCounters = w.registry.gaugeBacked(li.Name)
		return line.OK
	}
	return line.OK
}

// change returns the effect of a value of s on a gauge: it is added if
// relative, and replaces the old value otherwise. Samples of gauge-backed
// counters are relative.
func (w *worker) change(s *line.Sample, v line.Value) (number float64, relative bool) {
	if s.Type == line.Counter {
		return v.Number / s.Rate, true
	}
	return v.Number, w.server.relative(v)
}

// relative reports whether v changes a gauge instead of setting it.
func (s *Server) relative(v line.Value) bool { return v.Signed && !s.cfg.Parse.AbsoluteGauges }

// checkGauges applies the line's gauge samples to a copy of the gauge's value:
// no result may be infinite. All gauge samples of a line belong to one gauge,
// or to none that exists yet (nil). Another worker can change it before they
// are applied; then the gauge itself refuses an infinite result and keeps its
// value.
func (w *worker) checkGauges(gauge func() *cell) line.Reason {
	value, loaded := 0.0, false
	for i := range w.line.Samples {
		s := &w.line.Samples[i]
		if !w.gauges(s.Type) {
			continue
		}
		for _, v := range w.line.Values[s.From:s.To] {
			number, relative := w.change(s, v)
			if !relative {
				value, loaded = number, true
				continue
			}
			if !loaded {
				if c := gauge(); c != nil {
					value = c.gauge().Value()
				}
				loaded = true
			}
			if value += number; math.IsNaN(value) || math.IsInf(value, 0) {
				return line.OutOfRange
			}
		}
	}
	return line.OK
}

// gauges reports whether samples of type t of the line belong to a gauge.
func (w *worker) gauges(t line.Type) bool {
	return t == line.Gauge || t == line.Counter && w.line.SignedCounters
}

// targetGauge returns the cell of the line's gauge samples.
func (w *worker) targetGauge() *cell {
	for i, t := range w.targets {
		if w.gauges(w.line.Samples[i].Type) {
			return t.cell
		}
	}
	return nil
}

// knownGauge returns the cell of the line's gauge samples if the gauge exists.
func (w *worker) knownGauge() *cell {
	return w.registry.lookup(w.rules, w.line.Name, w.line.Tags, line.Gauge)
}

// apply applies the samples of the line to their targets.
func (w *worker) apply() {
	limited, samples, dropped := noLimit, uint64(0), 0
	for i := range w.targets {
		t, s := &w.targets[i], &w.line.Samples[i]
		n := uint64(1)
		if s.Type != line.Set {
			n = uint64(s.To - s.From)
		}
		samples += n
		w.tally.byType[s.Type] += n
		if t.limit != noLimit && limited == noLimit {
			limited = t.limit
		}
		if t.rule != noRule {
			w.match(t.rule, n)
		}
		if t.drops {
			dropped++
		}
		if t.cell != nil && !w.applySample(t.cell, s) && limited == noLimit {
			limited = limitMemory
		}
	}
	w.tally.samples += samples
	if w.top.wait--; w.top.wait < 1 && w.targets[0].cell != nil {
		w.top.look(w.registry.cells.family(w.targets[0].number), samples)
	}
	if limited != noLimit {
		w.tally.limited++
		w.server.metrics.limited[limited].Inc()
		return
	}
	if dropped == len(w.targets) {
		w.tally.dropped++
		return
	}
	w.tally.applied++
}

// applySample applies a sample to the series in c. It reports false if the memory
// budget kept some values out of it; they went to the overflow series.
func (w *worker) applySample(c *cell, s *line.Sample) (whole bool) {
	whole = true
	values := w.line.Values[s.From:s.To]
	switch c.group {
	case counters:
		if s.Rate == 1 {
			for _, v := range values {
				c.count(v.Number)
			}
			return whole
		}
		for _, v := range values {
			c.count(v.Number / s.Rate)
		}
	case gauges:
		stat := c.gauge()
		at, now := uint64(w.line.Time), uint64(0)
		if at != 0 {
			now = uint64(w.server.cfg.Now().Unix())
			if at > now+maxAhead {
				at = now
				w.tally.ahead++
			}
		}
		for _, v := range values {
			if number, relative := w.change(s, v); relative {
				_ = stat.Add(number) // see checkGauges
			} else if at == 0 || c.newest(at, now) {
				_ = stat.Set(number) // finite
			}
		}
	case histograms:
		if w.server.seconds {
			c.convert(s.Type, values)
		}
		full := c.role&^bare == ordinary && !w.registry.memory.fits(0)
		for _, v := range values {
			if math.Abs(v.Number) > store.NetworkMax {
				w.tally.beyond++
			}
			stat := c.histogram()
			if full && !stat.HasRoom(v.Number, 1/s.Rate) {
				whole = false
				if stat = w.registry.overflowHistogram(s.Type); stat == nil {
					continue
				}
			}
			stat.RecordFloat(v.Number, 1/s.Rate)
		}
	case sets:
		c.set().add(w.server.setSeed, s.Text)
	}
	return whole
}

func (w *worker) event() line.Reason {
	n, r := w.parser.ParseEvent(&w.line)
	if r != line.OK {
		return r
	}
	w.countEvent(n.Unknown)
	w.server.events.event(n, w.server.cfg.Now())
	w.server.metrics.events[n.Alert].Inc()
	return line.OK
}

// check records the state of the service check in w.line.
func (w *worker) check(from *source) line.Reason {
	c, r := w.parser.ParseServiceCheck(&w.line)
	if r != line.OK {
		return r
	}
	w.countEvent(c.Unknown)
	w.server.events.check(c, w.server.cfg.Now())
	w.server.metrics.checks[c.Status].Inc()
	if w.server.cfg.CheckGauges && w.parser.IdentifyCheck(&w.line, &c) == line.OK {
		wanted := w.registry.want(w.rules, w.line.Name, w.line.Tags, line.Gauge, true)
		f := w.resolve(&wanted, from)
		if f.limit != noLimit {
			w.server.metrics.limited[f.limit].Inc()
		} else if f.cell != nil {
			_ = f.cell.gauge().Set(float64(c.Status)) // finite
		}
	}
	return line.OK
}

func (w *worker) countEvent(unknown int) {
	w.tally.applied++
	w.tally.events++
	w.tally.unknown += uint64(unknown)
	w.tally.tags += uint64(len(w.line.Tags))
	w.tally.tagErrors += uint64(w.line.TagErrors)
	if f := w.server.cfg.OnEvent; f != nil {
		f(w.line.Text)
	}
}

// takeTop moves the top counts of w to counts. It returns the number of cached
// keys.
func (w *worker) takeTop(counts map[uint32]uint64) (entries int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.top.take(counts)
	return w.cache.used
}
