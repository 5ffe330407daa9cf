package top

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/statsd-admin/statsd-admin/internal/numfmt"
)

const (
	maxRows  = 200_000 // stats that are kept
	trendLen = 24      // updates in the trend of a stat
)

// row is a stat.
type row struct {
	id         uint64
	name, kind string // as the server has them: untrusted
	unit       string // of a histogram
	text       string // the value as it was sent
	value      float64
	base       string  // the value at the zero point as it was sent
	moved      float64 // the change since then
	rate       float64
	quantiles  [3]float64
	recorded   bool  // the quantiles are there
	look       int   // number of the last update with a change
	changed    int64 // the server's time of it, in milliseconds; 0 before one was seen
	trend      [trendLen]float64
}

// change returns the exact change of a number since the zero point.
func (r *row) change() string { return numfmt.Difference(r.text, r.base) }

// rebase sets the zero point.
func (r *row) rebase(base string) {
	r.base = base
	r.moved, _ = strconv.ParseFloat(r.change(), 64)
}

// trendAt returns the rates of the last n updates, or the values of a gauge.
func (r *row) trendAt(look, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		at := look - (n - 1 - i)
		switch age := r.look - at; {
		case age < 0 && r.kind == "gauge":
			out[i] = r.value // no change since
		case age >= 0 && age < trendLen:
			out[i] = r.trend[trendLen-1-age]
		}
	}
	return out
}

// model has the stats of a stream.
type model struct {
	rows    map[uint64]*row
	bases   map[string]string // zero points from before a reset of the stream
	look    int               // number of the current update, from 1
	part    bool              // the next event belongs to the same update
	initial bool              // the current update has the initial values
	hot     []*row            // rows with a rate
	millis  int64             // the server's time of the update
	left    int               // stats that were left out
}

func newModel() *model { return &model{rows: make(map[uint64]*row), bases: make(map[string]string)} }

// apply applies an event and reports whether the rows are complete.
func (m *model) apply(e *event) bool {
	if e.kind == "reset" {
		m.reset(e.Reason)
		return false
	}
	if !m.part {
		m.begin(e)
	}
	if e.Millis < m.millis { // the clock of the server was set back
		for _, r := range m.rows {
			if r.changed != 0 {
				r.changed += e.Millis - e.Interval - m.millis
			}
		}
	}
	m.part, m.millis = e.More, e.Millis
	for _, n := range e.New {
		m.create(n)
	}
	for _, v := range e.Rows {
		if r := m.rows[v.id()]; r != nil {
			m.set(r, v)
		}
	}
	for _, id := range e.Gone {
		delete(m.rows, entry{id}.id())
	}
	return !e.More
}

// reset forgets the rows but for their zero points.
func (m *model) reset(reason string) {
	for _, r := range m.rows {
		m.bases[r.name] = r.base
		if reason == "counters" && r.kind == "counter" {
			m.bases[r.name] = "0"
		}
	}
	clear(m.rows)
	m.hot, m.part, m.left = nil, false, 0
}

// begin starts a look: stats without a row in it have not changed.
func (m *model) begin(e *event) {
	m.look++
	m.initial = e.Interval == 0
	m.cool()
}

// cool sets all rates to 0, except of histograms, which change with flushes.
func (m *model) cool() {
	for _, r := range m.hot {
		r.rate = 0
	}
	m.hot = m.hot[:0]
}

func (m *model) create(n entry) {
	if len(m.rows) >= maxRows {
		m.left++
		return
	}
	r := &row{id: n.id(), kind: n.text(1), name: n.text(2), unit: n.text(4), look: m.look, base: m.bases[n.text(2)]}
	if r.base == "" && !m.initial && r.kind != "gauge" {
		r.base = "0"
	}
	m.rows[r.id] = r
}

func (m *model) set(r *row, v entry) {
	first := r.text == ""
	r.text, r.value, r.rate = v.text(1), v.number(1), v.number(2)
	if r.kind == "text" {
		r.value, r.rate = 0, 0
	}
	r.rebase(cmp.Or(r.base, r.text))
	if r.kind == "histogram" {
		if q, ok := v.quantiles(); ok {
			r.quantiles, r.recorded = q, true
		}
	} else if r.rate != 0 {
		m.hot = append(m.hot, r)
	}
	moved := min(m.look-r.look, trendLen)
	copy(r.trend[:], r.trend[moved:])
	now, before := r.rate, 0.0
	if r.kind == "gauge" {
		now, before = r.value, r.trend[trendLen-1]
		if first { // what it was before is unknown
			moved, before = trendLen, r.value
		}
	}
	for i := range moved {
		r.trend[trendLen-1-i] = before
	}
	r.trend[trendLen-1], r.look = now, m.look
	if !first || !m.initial {
		r.changed = m.millis
	}
}

// zero makes the present values the zero point of changes.
func (m *model) zero() {
	clear(m.bases)
	for _, r := range m.rows {
		r.rebase(r.text)
	}
}

// Columns by which rows are sorted, in the order of the screen.
var columns = [...]string{"name", "type", "value", "rate", "change", "changed"}

// sorted returns the rows of a kind, or of all, in the order of a column, with the
// pinned ones on top.
func (m *model) sorted(kind string, pinned map[string]bool, column string, descending bool) []*row {
	list := make([]*row, 0, len(m.rows))
	for _, r := range m.rows {
		if kind == "" || r.kind == kind || pinned[r.name] {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *row) int {
		if on := pinned[a.name]; on != pinned[b.name] {
			if on {
				return -1
			}
			return 1
		}
		c := 0
		switch column {
		case "type":
			c = strings.Compare(a.kind, b.kind)
		case "value":
			c = cmp.Compare(a.value, b.value)
		case "rate":
			c = cmp.Compare(a.rate, b.rate)
		case "change":
			c = cmp.Compare(math.Abs(a.moved), math.Abs(b.moved))
		case "changed":
			c = cmp.Compare(a.changed, b.changed)
		case "name":
			c = strings.Compare(a.name, b.name)
		}
		if descending {
			c = -c
		}
		return cmp.Or(c, strings.Compare(a.name, b.name), cmp.Compare(a.id, b.id))
	})
	return list
}
