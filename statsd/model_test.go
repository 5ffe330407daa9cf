package statsd

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/store"
)

// model is what datagrams should lead to, kept in maps: one line at a time,
// without tables, cells or workers.
type model struct {
	parser   *line.Parser
	most     int // lines of a packet
	lines    uint64
	rejected map[string]uint64
	unknown  uint64
	tagErrs  uint64
	events   uint64
	series   map[string]*modelSeries
}

type modelSeries struct {
	group   string
	name    string
	tags    []line.Tag
	typ     line.Type
	sum     float64 // of counters, and of the weights of histograms
	samples float64 // of these
	gauge   float64
	members map[string]bool
}

func newModel(cfg Config) *model {
	return &model{
		parser:   line.New(cfg.lineConfig()),
		most:     cfg.Limits.LinesPerPacket,
		rejected: map[string]uint64{},
		series:   map[string]*modelSeries{},
	}
}

func (m *model) packet(p string) {
	n := 0
	for _, text := range strings.Split(p, "\n") {
		var l line.Line
		r := m.parser.Parse(&l, []byte(text))
		if l.Kind == line.KindBlank && r == line.OK {
			continue
		}
		m.lines++
		if n++; n > m.most {
			m.rejected["too_many_lines"]++
			continue
		}
		if r == line.OK {
			r = m.line(&l)
		}
		if r != line.OK {
			m.rejected[r.String()]++
		}
	}
}

func (m *model) line(l *line.Line) line.Reason {
	switch l.Kind {
	case line.KindEvent:
		n, r := m.parser.ParseEvent(l)
		if r == line.OK {
			m.events++
			m.unknown += uint64(n.Unknown)
			m.tagErrs += uint64(l.TagErrors)
		}
		return r
	case line.KindServiceCheck:
		c, r := m.parser.ParseServiceCheck(l)
		if r == line.OK {
			m.events++
			m.unknown += uint64(c.Unknown)
			m.tagErrs += uint64(l.TagErrors)
		}
		return r
	}
	// Gauges first: they may refuse the line.
	key := fmt.Sprintf("%q", l.Tags)
	gauge := 0.0
	if s := m.series["gauge"+string(l.Name)+key]; s != nil {
		gauge = s.gauge
	}
	for _, s := range l.Samples {
		for _, v := range l.Values[s.From:s.To] {
			switch {
			case s.Type != line.Gauge:
			case v.Signed:
				gauge += v.Number
			default:
				gauge = v.Number
			}
			if math.IsInf(gauge, 0) {
				return line.OutOfRange
			}
		}
	}
	m.unknown += uint64(l.Unknown)
	m.tagErrs += uint64(l.TagErrors)
	for _, s := range l.Samples {
		group := map[string]string{"c": "counter", "g": "gauge", "s": "set"}[s.Type.String()]
		if group == "" {
			group = "histogram"
		}
		id := group + string(l.Name) + key
		ser := m.series[id]
		if ser == nil {
			ser = &modelSeries{group: group, name: string(l.Name), typ: s.Type, members: map[string]bool{}}
			for _, t := range l.Tags {
				ser.tags = append(ser.tags, line.Tag{Key: slices.Clone(t.Key), Value: slices.Clone(t.Value)})
			}
			m.series[id] = ser
		}
		switch group {
		case "set":
			ser.members[string(s.Text)] = true
		case "gauge":
			ser.gauge = gauge
		}
		for _, v := range l.Values[s.From:s.To] {
			switch group {
			case "counter":
				ser.sum += v.Number / s.Rate
			case "histogram":
				ser.sum += 1 / s.Rate
			}
			ser.samples++
		}
	}
	return line.OK
}

// compare checks a server against the model.
func (m *model) compare(t *testing.T, r *rig) {
	t.Helper()
	l := r.conserved().Listeners[0]
	if l.Lines != m.lines || l.UnknownFields != m.unknown || l.TagErrors != m.tagErrs || l.Events != m.events {
		t.Errorf("lines %d, unknown %d, tag errors %d, events %d; the model says %d, %d, %d, %d",
			l.Lines, l.UnknownFields, l.TagErrors, l.Events, m.lines, m.unknown, m.tagErrs, m.events)
	}
	if fmt.Sprint(l.Rejected) != fmt.Sprint(m.rejected) {
		t.Errorf("rejected %v, the model says %v", l.Rejected, m.rejected)
	}
	before := r.registry.live
	r.store.Flush(store.FlushOptions{}).Close()
	seen := map[unsafe.Pointer]bool{}
	for id, s := range m.series {
		w := r.registry.want(r.registry.rules.Load(), []byte(s.name), s.tags, s.typ, true)
		f := r.registry.resolve(&w)
		if f.cell == nil || seen[f.cell.stat] {
			t.Fatalf("%q has no cell of its own", id)
		}
		seen[f.cell.stat] = true
		got, want := 0.0, s.sum
		switch f.cell.group {
		case counters:
			stat := f.cell.counter()
			got = float64(stat.Total())
		case histograms:
			stat := f.cell.histogram()
			got = float64(stat.Snapshot().Cumulative.Count())
		case gauges:
			stat := f.cell.gauge()
			if stat.Value() != s.gauge {
				t.Errorf("%q is %v, the model says %v", id, stat.Value(), s.gauge)
			}
			continue
		case sets:
			stat := f.cell.set()
			if n := count(stat); n != float64(len(s.members)) {
				t.Errorf("%q has %v members, the model says %d", id, n, len(s.members))
			}
			continue
		}
		// Whole numbers, fractions rounded up by less than 2^-32 each.
		slack := want*1e-12 + 1e-6
		if got > want+s.samples/(1<<32)+slack || got <= want-1-slack {
			t.Errorf("%q is %v, the model says %v", id, got, want)
		}
	}
	if r.registry.live != before || before != len(m.series) {
		t.Errorf("%d series, the model says %d", before, len(m.series))
	}
}

// explained checks the explanation of a line against parsing it.
func (m *model) explained(t *testing.T, r *rig, text []byte) {
	t.Helper()
	var l line.Line
	reason := m.parser.Parse(&l, text)
	if reason == line.OK && l.Kind == line.KindEvent {
		_, reason = m.parser.ParseEvent(&l)
	} else if reason == line.OK && l.Kind == line.KindServiceCheck {
		_, reason = m.parser.ParseServiceCheck(&l)
	}
	e := r.Explain(text)
	if e.Reason == "" {
		e.Reason = "ok"
	}
	if e.Reason != reason.String() || e.Offset < 0 || e.Offset > len(text) || e.Reason == "ok" && len(e.Samples) != len(l.Samples) {
		t.Errorf("%q: explained as %+v, parsed as %v", text, e, reason)
	}
}

func modelConfig() Config {
	return Config{Limits: Limits{LinesPerPacket: 12, LineBytes: 300, NameBytes: 60, Segments: 8, Tags: 4, TagKeyBytes: 10, TagValueBytes: 20}}
}

// newFuzzRig returns a rig for many inputs, with a reset before each: making a server
// takes longer than most inputs do.
func newFuzzRig(f *testing.F, cfg Config) *rig {
	cfg.Limits.MemoryBytes = 64 << 20 // asking the system takes time
	return newRig(f, cfg)
}

// reset removes all series, and hands the rig to the test of an input. Time goes on, for the
// limit of new series in a second.
func (r *rig) reset(t *testing.T) {
	t.Helper()
	r.t = t
	r.now = r.now.Add(time.Minute)
	r.Forget(func(string) bool { return true })
	r.flush()
	if r.registry.live != 0 {
		t.Fatalf("%d series are left", r.registry.live)
	}
}

// FuzzDatagram sends a datagram three times, so that its lines are new, known
// and known again, and compares with the model. Half of the tables are so small
// that cached keys are evicted all the time.
func FuzzDatagram(f *testing.F) {
	for _, s := range []string{
		"a:1|c\nb:2:3|ms|@0.1|#x:1\nbad\na:1|g\na:+2:-1|g\nu:x|s\nu:y|s",
		"a:1|c|#x:1,y\na,y=1:1|c\na:1|c|#y,x:1\r\n\n_e{1,1}:a|b|#:x|q\n_sc|a|1|zz",
		"a:1|c:2|g:3|ms:x|s:4|h|@0.3:5|c|@0.7\na:0.4|c\na:0.4|c",
		"g:1e308:+1e308|g\ng:+1e308|g\ng:+1e308|g",
		"a.b:1|c|#c:d\na:1|c|#b:c.d\nfoo_count:1|c\nfoo:1|ms\na[x=1]b:1|c\na;x=1:1|c\xff",
		strings.Repeat("a:1|c\n", 20),
		"a,b=c:1|c|#d:e\na,b=c:1|c|#d:e|@7\na,b=c:x|c|#d:e\na:1|c|#1,2,3,4,5\na:z|c|#1,2,3,4,5",
	} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	type pair struct {
		rig   *rig
		model *model
	}
	pairs := map[bool]pair{}
	for _, small := range []bool{false, true} {
		cfg := modelConfig()
		if small {
			cfg.Limits.CacheEntries = 4
		}
		r := newFuzzRig(f, cfg)
		pairs[small] = pair{r, newModel(r.cfg)}
	}
	f.Fuzz(func(t *testing.T, p []byte, small bool) {
		r, m := pairs[small].rig, pairs[small].model
		r.reset(t)
		clear(m.series)
		collisions := r.metrics.collisions.Total()
		for text := range bytes.SplitSeq(p, []byte("\n")) {
			m.explained(t, r, text)
		}
		for range 3 {
			r.send(string(p))
			m.packet(string(p))
		}
		if r.metrics.collisions.Total() > collisions || len(m.series) > 50 {
			return // a model of renamed series would be the registry again
		}
		m.compare(t, r)
	})
}
