package render

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/store"
)

// merged collects the members of families that share a metric name or whose
// tags map to the same labels, since some can be the same series. Counters and
// histograms are then added up, except histograms whose layout is not that of the
// first; of gauges and text readouts the oldest counts. This rare case is the only
// one in which a renderer keeps more than a buffer.
type merged struct {
	open      bool
	metric    string // with underscores
	kind      store.Kind
	network   bool
	summaries bool // the histograms are shown as summaries
	described store.Description
	index     map[string]int
	names     map[string]int // as they are shown, and which comes when
	series    []mergedSeries
}

type mergedSeries struct {
	first    uint32 // number of the stat that was made first: they grow, but that of one that ended may come again
	name     string
	labels   string
	total    uint64
	value    []byte
	float    float64
	text     string
	layout   *histogram.Layout
	snapshot *histogram.Snapshot
	since    int64 // when the oldest of the stats was created, Unix time in milliseconds; 0: unknown
}

// add adds the stat under c, whose names are in e.
func (m *merged) add(e *exposer, c *store.Cursor, k store.Kind) {
	if !m.open {
		e.shape(c, k)
		*m = merged{open: true, metric: string(e.underscored()), kind: k, network: e.network, summaries: e.summaries, described: e.description, index: make(map[string]int), names: make(map[string]int)}
	}
	name := string(e.name)
	if _, known := m.names[name]; !known {
		m.names[name] = len(m.names)
	}
	id := name + "\x00" + string(e.seriesKey())
	if k == store.KindText {
		id += "\x00" + strings.ToValidUTF8(c.Text(), "\ufffd") // its value is a label
	}
	i, again := m.index[id]
	if !again {
		i = len(m.series)
		m.index[id] = i
		m.series = append(m.series, mergedSeries{name: name, labels: string(e.labels)})
	}
	s := &m.series[i]
	first := !again || c.ID() < s.first
	if first {
		s.first = c.ID()
	}
	if since := c.Since(); since.IsZero() {
		s.since = 0
	} else if ms := since.UnixMilli(); !again || ms < s.since {
		s.since = ms
	}
	switch k {
	case store.KindCounter:
		s.total += c.Uint()
		s.value, s.float = strconv.AppendUint(s.value[:0], s.total, 10), float64(s.total)
	case store.KindHistogram:
		h := c.Histogram()
		if !again {
			s.layout, s.snapshot = h.Layout(), h.Snapshot()
		} else if h.Layout() == s.layout {
			s.snapshot = histogram.MergeSnapshots(s.snapshot, h.Snapshot())
		}
	case store.KindText:
		if first {
			s.text = c.Text()
		}
	default:
		if first {
			s.value, s.float = c.AppendValue(nil), c.Float()
		}
	}
}

// close writes the collected members.
func (m *merged) close(e *exposer) {
	if !m.open {
		return
	}
	slices.SortStableFunc(m.series, func(a, b mergedSeries) int {
		return cmp.Compare(m.names[a.name], m.names[b.name])
	})
	e.network, e.summaries, e.description = m.network, m.summaries, m.described
	for i := range m.series {
		s := &m.series[i]
		e.begin([]byte(s.name), []byte(m.metric), m.kind)
		labels := []byte(s.labels)
		e.since = 0
		if e.created {
			e.since = max(s.since, 0)
		}
		switch {
		case m.kind == store.KindHistogram:
			e.histogram(labels, s.layout, s.snapshot)
		case m.kind == store.KindText:
			e.text(labels, s.text)
		case e.dialect == dialectProtobuf:
			e.proto.scalar(e.out, labels, s.float, e.since)
		default:
			e.sample("", labels, "")
			e.out.buf = append(append(e.out.buf, s.value...), '\n')
			e.createdSample(labels)
		}
	}
	*m = merged{}
}
