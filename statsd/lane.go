package statsd

import (
	"bytes"
	"math"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/store"
)

// lane parses and applies lines. A datagram socket has a lane of its own,
// stream connections share some. Whoever holds mu may use it; the one who holds
// the mu of all lanes knows that no sample is under way.
type lane struct {
	server   *Server
	registry *registry
	parser   *line.Parser

	mu      sync.Mutex // guards the rest
	line    line.Line
	table   *rawTable
	targets []target // of the line's samples
	tally   tally
	top     topSketch
	visits  uint64    // times that ln was entered; every busyEvery-th is timed
	entered time.Time // zero: this visit is not timed

	busy  *busyTime
	said  []message    // to log when ln is left
	tap   func(Tapped) // gets accepted lines, nil if nobody does
	gauge func() *cell // targetGauge, bound once
}

// target is where a sample goes.
type target struct {
	cell  *cell // nil: nowhere
	limit limit // that keeps it from its own series
}

// enter locks ln.
func (ln *lane) enter() {
	var tap func(Tapped)
	if asked := ln.server.cfg.Tap; asked != nil {
		tap = asked() // before ln is locked, since it may panic
	}
	ln.mu.Lock()
	ln.tap = tap
	if ln.visits++; ln.visits%busyEvery == 0 {
		ln.entered = time.Now()
	}
	if ln.registry.pending.Load() {
		ln.registry.dropEnded()
	}
}

// leave unlocks ln after publishing what was counted for l, also after a
// panic, which ends here.
func (ln *lane) leave(l *listener) {
	p := recover()
	if p != nil {
		ln.table = newRawTable(ln.server.cfg.Limits.RawEntries) // it may be half changed
	}
	ln.tally.publish(l.figures, ln.server.figures)
	if !ln.entered.IsZero() {
		ln.busy.add(ln.entered)
		ln.entered = time.Time{}
	}
	said := ln.said
	ln.said = nil
	ln.mu.Unlock()
	if p != nil {
		ln.server.guard.Report("lane", p)
	}
	if said != nil {
		ln.server.say(said)
	}
}

// batch takes in the first n datagrams that were read from so.
func (ln *lane) batch(l *listener, so *socket, n int) {
	ln.enter()
	defer ln.leave(l)
	filtered := len(l.cfg.Allowed) > 0
	l.figures.batchSize.Record(uint64(n))
	for i := range n {
		p, cut := so.batch.packet(i)
		ln.tally.packets++
		ln.tally.bytes += uint64(len(p))
		if filtered && !l.allowed(so.batch.sender(i).Addr()) {
			ln.tally.refused++
			continue
		}
		lines := ln.packet(l, p, cut, source{batch: so.batch, index: i})
		l.figures.linesPerPacket.Record(uint64(lines))
	}
	if v, ok := so.batch.dropped(); ok {
		l.figures.drops.Add(so.drops.observe(v))
	}
}

// packet takes in the lines of one datagram or frame and returns how many they
// were. cut says that the end of the datagram is missing.
func (ln *lane) packet(l *listener, p []byte, cut bool, from source) (n int) {
	most := ln.server.cfg.Limits.LinesPerPacket
	for len(p) > 0 {
		text := p
		if i := bytes.IndexByte(p, '\n'); i >= 0 {
			text, p = p[:i], p[i+1:]
		} else if p = nil; cut {
			ln.rejectLine(l, line.Truncated, text, from)
			ln.tally.truncated++
			return n + 1
		}
		if n >= most {
			if len(line.Trim(text)) > 0 {
				ln.rejectLine(l, line.TooManyLines, text, from)
				n++
			}
			continue
		}
		if ln.take(l, text, from) {
			n++
		}
	}
	if cut {
		ln.rejectLine(l, line.Truncated, nil, from)
		ln.tally.truncated++
		n++
	}
	return n
}

// chunk takes in complete lines of a stream.
func (ln *lane) chunk(l *listener, p []byte, from source) {
	ln.enter()
	defer ln.leave(l)
	ln.tally.bytes += uint64(len(p))
	for len(p) > 0 {
		text := p
		if i := bytes.IndexByte(p, '\n'); i >= 0 {
			text, p = p[:i], p[i+1:]
		} else {
			p = nil
		}
		ln.take(l, text, from)
	}
}

// frames takes in the complete frames that p begins with. It returns how many
// bytes they were, and how many the next frame needs if that is known. bad says
// that a frame is longer than allowed, so that nothing after it can be found.
func (ln *lane) frames(l *listener, p []byte, from source) (used, need int, bad bool) {
	ln.enter()
	defer ln.leave(l)
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
		ln.tally.packets++
		ln.tally.bytes += uint64(need)
		lines := ln.packet(l, rest[lengthPrefix:need], false, from)
		l.figures.linesPerPacket.Record(uint64(lines))
	}
}

// reject counts something that is not a line of its own right, such as what is
// left of a stream that broke, as a rejected line.
func (ln *lane) reject(l *listener, r line.Reason, text []byte, from source) {
	ln.enter()
	defer ln.leave(l)
	ln.tally.bytes += uint64(len(text))
	ln.rejectLine(l, r, text, from)
}

// rejectLine counts one line and its reason. ln.mu must be held.
func (ln *lane) rejectLine(l *listener, r line.Reason, text []byte, from source) {
	ln.tally.lines++
	ln.refuse(l, r, text, from)
}

// refuse counts why a line that was counted already is rejected.
func (ln *lane) refuse(l *listener, r line.Reason, text []byte, from source) {
	l.figures.reject(r)
	if m, ok := ln.server.rejects.note(l.name, r, text, from); ok {
		ln.said = append(ln.said, m)
	}
}

// take applies one line. It reports whether there was one: a blank line is none.
func (ln *lane) take(l *listener, text []byte, from source) bool {
	r := ln.parser.Split(&ln.line, text)
	if r == line.OK {
		switch ln.line.Kind {
		case line.KindBlank:
			return false
		case line.KindMetric:
			r = ln.metric()
		case line.KindEvent:
			r = ln.event()
		case line.KindServiceCheck:
			r = ln.check()
		}
	}
	ln.tally.lines++
	if r != line.OK {
		ln.refuse(l, r, ln.line.Text, from)
	} else if ln.tap != nil {
		ln.tap(Tapped{l.name, l.local, from.String(), ln.line.Text})
	}
	return true
}

// metric applies the metric in ln.line, all of it or nothing.
func (ln *lane) metric() line.Reason {
	li := &ln.line
	if li.Fields != line.OK {
		return ln.parser.Identify(li) // the name may be what is wrong first
	}
	key := ln.table.keyOf(li)
	ln.targets = ln.targets[:0]
	var tags tagCount
	known := true
	for i := range li.Samples {
		t, n, reason, ok := ln.recall(&key, li.Samples[i].Type)
		if reason != line.OK {
			return reason
		}
		if !ok {
			known = false
			break
		}
		tags = n
		ln.targets = append(ln.targets, t)
	}
	if known {
		ln.tally.hits++
		if r := ln.judgeFalling(); r != line.OK {
			return r
		}
		if r := ln.parser.Numbers(li); r != line.OK {
			return r
		}
		if r := ln.checkGauges(ln.gauge); r != line.OK {
			return r
		}
	} else {
		ln.tally.misses++
		if r := ln.learn(&key); r != line.OK {
			return r
		}
		tags = tagsOf(li)
	}
	ln.tally.tags += uint64(tags.well)
	ln.tally.tagErrors += uint64(tags.ill)
	ln.tally.unknown += uint64(li.Unknown)
	ln.apply()
	return line.OK
}

// tagCount counts the tags of a line: those that it has, and those that are left
// out because they are malformed.
type tagCount struct{ well, ill uint16 }

func tagsOf(li *line.Line) tagCount {
	const most = 1<<16 - 1
	return tagCount{uint16(min(len(li.Tags), most)), uint16(min(li.TagErrors, most))}
}

// recall looks a spelling up in the lane's table. ok is false if it is not
// there, or what it says is out of date.
func (ln *lane) recall(key *rawKey, typ line.Type) (t target, n tagCount, reason line.Reason, ok bool) {
	s := ln.table.find(key, typ)
	if s == nil {
		return target{}, tagCount{}, line.OK, false
	}
	if s.reason != line.OK {
		return target{}, tagCount{}, s.reason, false
	}
	if s.limit != noLimit {
		if s.gen != ln.registry.era.Load() {
			ln.table.forget(s)
			return target{}, tagCount{}, line.OK, false
		}
		t.limit = s.limit
		if s.cell != noCell {
			t.cell = ln.registry.cells.at(s.cell)
		}
		return t, s.tags, line.OK, true
	}
	t.cell = ln.registry.cells.at(s.cell)
	if t.cell.gen.Load() != s.gen {
		ln.table.forget(s)
		return target{}, tagCount{}, line.OK, false
	}
	return t, s.tags, line.OK, true
}

// learn finds or makes the series of the line, whose spelling is new, unless
// anything about the line is wrong.
func (ln *lane) learn(key *rawKey) line.Reason {
	li := &ln.line
	if r := ln.parser.Identify(li); r != line.OK {
		ln.remember(key, li.Samples[0].Type, rawSlot{reason: r})
		return r
	}
	li.Falling = ln.registry.falling(li.Name)
	if r := ln.parser.Numbers(li); r != line.OK {
		return r
	}
	if r := ln.checkGauges(ln.knownGauge); r != line.OK {
		return r
	}
	ln.targets = ln.targets[:0]
	for i := range li.Samples {
		typ := li.Samples[i].Type
		f := ln.resolve(typ)
		if f.reason != line.OK {
			return f.reason
		}
		ln.targets = append(ln.targets, target{f.cell, f.limit})
		if !f.brief {
			ln.remember(key, typ, rawSlot{cell: f.number, gen: f.gen, limit: f.limit, tags: tagsOf(li)})
		}
	}
	return line.OK
}

// resolve asks the registry for the series of a sample of the line.
func (ln *lane) resolve(typ line.Type) found {
	f := ln.registry.resolve(ln.line.Name, ln.line.Tags, typ)
	if f.said != nil {
		ln.said = append(ln.said, *f.said)
	}
	return f
}

func (ln *lane) remember(key *rawKey, typ line.Type, s rawSlot) {
	if ln.table.find(key, typ) == nil && ln.table.put(key, typ, s) {
		ln.tally.evicted++
	}
}

// judgeFalling sets ln.line.Falling for a line whose targets are known.
func (ln *lane) judgeFalling() line.Reason {
	if ln.server.cfg.Falling == nil {
		return line.OK
	}
	li := &ln.line
	for i, t := range ln.targets {
		if li.Samples[i].Type != line.Counter {
			continue
		}
		if t.cell != nil {
			li.Falling = t.cell.group == gauges
			return line.OK
		}
		// A limit keeps it from having a series, and no spelling tells the name.
		if r := ln.parser.Identify(li); r != line.OK {
			return r
		}
		li.Falling = ln.registry.falling(li.Name)
		return line.OK
	}
	return line.OK
}

// change returns what a value of s does to a gauge: it is added if relative,
// else it replaces what was there. Samples of counters that are kept as gauges
// are relative.
func (ln *lane) change(s *line.Sample, v line.Value) (number float64, relative bool) {
	if s.Type == line.Counter {
		return v.Number / s.Rate, true
	}
	return v.Number, ln.server.relative(v)
}

// relative reports whether v changes a gauge instead of setting it.
func (s *Server) relative(v line.Value) bool { return v.Signed && !s.cfg.Parse.AbsoluteGauges }

// checkGauges tries the line's gauge samples on the value of their gauge: no
// result may leave the finite numbers. All gauge samples of a line are of one
// gauge; nil stands for one that does not exist yet. Another lane may change it
// before they are applied; then the gauge refuses what would be too much, and
// keeps its value.
func (ln *lane) checkGauges(gauge func() *cell) line.Reason {
	value, loaded := 0.0, false
	for i := range ln.line.Samples {
		s := &ln.line.Samples[i]
		if !ln.gauges(s.Type) {
			continue
		}
		for _, v := range ln.line.Values[s.From:s.To] {
			number, relative := ln.change(s, v)
			if !relative {
				value, loaded = number, true
				continue
			}
			if !loaded {
				if c := gauge(); c != nil {
					value = c.stat.(*store.FloatGauge).Value()
				}
				loaded = true
			}
			if value += number; value-value != 0 {
				return line.OutOfRange
			}
		}
	}
	return line.OK
}

// gauges reports whether the line's samples of type t are of a gauge.
func (ln *lane) gauges(t line.Type) bool {
	return t == line.Gauge || t == line.Counter && ln.line.Falling
}

// targetGauge returns the cell of the line's gauge samples.
func (ln *lane) targetGauge() *cell {
	for i, t := range ln.targets {
		if ln.gauges(ln.line.Samples[i].Type) {
			return t.cell
		}
	}
	return nil
}

// knownGauge returns the cell that the line's gauge samples will get, if the
// gauge exists.
func (ln *lane) knownGauge() *cell { return ln.registry.lookup(ln.line.Name, ln.line.Tags, line.Gauge) }

// apply adds the line's samples to their targets.
func (ln *lane) apply() {
	limited, samples := noLimit, uint64(0)
	for i, t := range ln.targets {
		s := &ln.line.Samples[i]
		n := uint64(1)
		if s.Type != line.Set {
			n = uint64(s.To - s.From)
		}
		samples += n
		ln.tally.byType[s.Type] += n
		if t.limit != noLimit && limited == noLimit {
			limited = t.limit
		}
		if t.cell != nil {
			ln.applySample(t.cell, s)
		}
	}
	ln.tally.samples += samples
	if ln.top.wait--; ln.top.wait < 1 && ln.targets[0].cell != nil {
		ln.top.look(ln.targets[0].cell.name, samples)
	}
	if limited != noLimit {
		ln.tally.limited++
		ln.server.figures.limited[limited].Inc()
		return
	}
	ln.tally.applied++
}

func (ln *lane) applySample(c *cell, s *line.Sample) {
	values := ln.line.Values[s.From:s.To]
	switch stat := c.stat.(type) {
	case *store.Counter:
		if s.Rate == 1 {
			for _, v := range values {
				c.count(v.Number)
			}
			return
		}
		for _, v := range values {
			c.count(v.Number / s.Rate)
		}
	case *store.FloatGauge:
		for _, v := range values {
			if number, relative := ln.change(s, v); relative {
				_ = stat.Add(number) // see checkGauges
			} else {
				_ = stat.Set(number) // finite
			}
		}
	case *store.Histogram:
		for _, v := range values {
			if math.Abs(v.Number) > store.NetworkMax {
				ln.tally.beyond++
			}
			stat.RecordFloat(v.Number, 1/s.Rate)
		}
	case *set:
		stat.add(ln.server.setSeed, s.Text)
	}
}

// event keeps the event in ln.line.
func (ln *lane) event() line.Reason {
	n, r := ln.parser.ParseEvent(&ln.line)
	if r != line.OK {
		return r
	}
	ln.countEvent(n.Unknown)
	ln.server.events.event(n, ln.server.cfg.Now())
	ln.server.figures.events[n.Alert].Inc()
	return line.OK
}

// check keeps the state of the service check in ln.line.
func (ln *lane) check() line.Reason {
	c, r := ln.parser.ParseServiceCheck(&ln.line)
	if r != line.OK {
		return r
	}
	ln.countEvent(c.Unknown)
	ln.server.events.check(c, ln.server.cfg.Now())
	ln.server.figures.checks[c.Status].Inc()
	if ln.server.cfg.CheckGauges && ln.parser.IdentifyCheck(&ln.line, &c) == line.OK {
		f := ln.resolve(line.Gauge)
		if f.limit != noLimit {
			ln.server.figures.limited[f.limit].Inc()
		} else if f.cell != nil {
			_ = f.cell.stat.(*store.FloatGauge).Set(float64(c.Status)) // finite
		}
	}
	return line.OK
}

func (ln *lane) countEvent(unknown int) {
	ln.tally.applied++
	ln.tally.events++
	ln.tally.unknown += uint64(unknown)
	ln.tally.tags += uint64(len(ln.line.Tags))
	ln.tally.tagErrors += uint64(ln.line.TagErrors)
}

// takeTop adds what ln saw most to counts and begins anew. It returns how many
// spellings ln knows.
func (ln *lane) takeTop(counts map[uint32]uint64) (entries int) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.top.take(counts)
	return ln.table.used
}
