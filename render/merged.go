package render

import (
	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/store"
)

// merged collects the members of families that share a metric name, since
// some of them may be one series: counters and histograms are then added up,
// of gauges and text readouts the first one counts. It is the one place where
// a renderer keeps more than a buffer, and rare.
type merged struct {
	open   bool
	kind   store.Kind
	index  map[string]int
	series []mergedSeries
}

type mergedSeries struct {
	labels   string
	total    uint64
	value    []byte
	text     string
	layout   *histogram.Layout
	snapshot *histogram.Snapshot
}

// add takes in the stat under c.
func (m *merged) add(labels []byte, c *store.Cursor, k store.Kind) {
	if !m.open {
		*m = merged{open: true, kind: k, index: make(map[string]int)}
	}
	i, again := m.index[string(labels)]
	if !again {
		i = len(m.series)
		m.index[string(labels)] = i
		m.series = append(m.series, mergedSeries{labels: string(labels)})
	}
	s := &m.series[i]
	switch k {
	case store.KindCounter:
		s.total += c.Uint()
	case store.KindHistogram:
		h := c.Histogram()
		if !again {
			s.layout, s.snapshot = h.Layout(), h.Snapshot()
		} else if h.Layout() == s.layout {
			other := h.Snapshot()
			s.snapshot = &histogram.Snapshot{
				Used:       s.snapshot.Used || other.Used,
				Interval:   histogram.MergeStats(s.snapshot.Interval, other.Interval),
				Cumulative: histogram.MergeStats(s.snapshot.Cumulative, other.Cumulative),
			}
		}
	case store.KindText:
		if !again {
			s.text = c.Text()
		}
	default:
		if !again {
			s.value = c.AppendValue(nil)
		}
	}
}

// close writes what was collected.
func (m *merged) close(e *exposer) {
	if !m.open {
		return
	}
	for i := range m.series {
		s := &m.series[i]
		labels := []byte(s.labels)
		switch m.kind {
		case store.KindCounter:
			e.counter(labels)
			e.out.buf = appendUintLine(e.out.buf, s.total)
		case store.KindHistogram:
			e.histogram(labels, s.layout, s.snapshot)
		case store.KindText:
			e.text(labels, s.text)
		default:
			e.sample("", labels, "")
			e.out.buf = append(append(e.out.buf, s.value...), '\n')
		}
	}
	*m = merged{}
}
