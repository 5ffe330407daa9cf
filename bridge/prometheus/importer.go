package prometheus

import (
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// Importer copies the metrics of a gatherer into a scope of a store. Labels become
// tags. Counters become counters, without the fraction of their value; gauges and
// untyped metrics become gauges. A histogram becomes counters NAME_count and
// NAME_bucket, the latter with the tag le, and a gauge NAME_sum; a summary becomes a
// counter NAME_count, a gauge NAME_sum, and gauges NAME with the tag quantile.
//
// A metric that disappears from the gatherer keeps its last value in the store.
// An Importer is safe for concurrent use.
type Importer struct {
	from client.Gatherer
	to   *store.Scope

	mu       sync.Mutex
	counters map[string]*imported // by name and labels
	err      error
}

// imported is a counter that follows a counter of the gatherer.
type imported struct {
	counter *store.Counter
	last    uint64
}

// NewImporter returns an importer. Nothing is copied before the first
// [Importer.Refresh].
func NewImporter(from client.Gatherer, to *store.Scope) *Importer {
	return &Importer{from: from, to: to, counters: make(map[string]*imported)}
}

// Refresh copies the current values. Its signature is that of the elements of
// flush.Config.Before, so that each flush has fresh values.
func (im *Importer) Refresh(time.Time) {
	families, err := im.from.Gather()
	im.mu.Lock()
	defer im.mu.Unlock()
	im.err = err
	for _, f := range families {
		for _, m := range f.Metric {
			im.copyLocked(f, m)
		}
	}
}

// Err returns the error of the last Gather, if it had one. The families that Gather
// returned along with the error have been copied.
func (im *Importer) Err() error {
	im.mu.Lock()
	defer im.mu.Unlock()
	return im.err
}

// copyLocked copies one metric. im.mu is held.
func (im *Importer) copyLocked(f *dto.MetricFamily, m *dto.Metric) {
	name, labels := f.GetName(), tagsOf(m)
	switch {
	case m.Counter != nil:
		im.countLocked(name, labels, m.Counter.GetValue())
	case m.Gauge != nil:
		im.set(name, labels, m.Gauge.GetValue())
	case m.Untyped != nil:
		im.set(name, labels, m.Untyped.GetValue())
	case m.Histogram != nil:
		h := m.Histogram
		for _, b := range h.Bucket {
			im.countLocked(name+"_bucket", with(labels, "le", b.GetUpperBound()), count(b.GetCumulativeCount(), b.GetCumulativeCountFloat()))
		}
		im.countLocked(name+"_count", labels, count(h.GetSampleCount(), h.GetSampleCountFloat()))
		im.set(name+"_sum", labels, h.GetSampleSum())
	case m.Summary != nil:
		for _, q := range m.Summary.Quantile {
			im.set(name, with(labels, "quantile", q.GetQuantile()), q.GetValue())
		}
		im.countLocked(name+"_count", labels, float64(m.Summary.GetSampleCount()))
		im.set(name+"_sum", labels, m.Summary.GetSampleSum())
	}
}

// countLocked adds the growth of a counter since the last Refresh. A counter that fell
// has started again from zero. im.mu is held.
func (im *Importer) countLocked(name string, labels []tags.Tag, value float64) {
	if !(value >= 0 && value < math.MaxUint64) {
		return
	}
	var key strings.Builder
	key.WriteString(name)
	for _, l := range labels {
		key.WriteString("\x00" + l.Name + "\x00" + l.Value)
	}
	c := im.counters[key.String()]
	if c == nil {
		c = &imported{counter: im.to.Counter(name, labels...)}
		im.counters[key.String()] = c
	}
	now := uint64(value)
	if now < c.last {
		c.last = 0
	}
	c.counter.Add(now - c.last)
	c.last = now
}

// set sets a gauge. Values that are not finite leave it unchanged.
func (im *Importer) set(name string, labels []tags.Tag, value float64) {
	_ = im.to.FloatGauge(name, labels...).Set(value)
}

// count returns the count of a histogram, which has it as an integer or as a float.
func count(n uint64, f float64) float64 {
	if f > 0 {
		return f
	}
	return float64(n)
}

func tagsOf(m *dto.Metric) []tags.Tag {
	all := make([]tags.Tag, 0, len(m.Label)+1)
	for _, l := range m.Label {
		all = append(all, tags.Tag{Name: l.GetName(), Value: l.GetValue()})
	}
	return all
}

// with returns labels with one more, whose value is a number.
func with(labels []tags.Tag, name string, value float64) []tags.Tag {
	return append(labels[:len(labels):len(labels)], tags.Tag{Name: name, Value: strconv.FormatFloat(value, 'g', -1, 64)})
}
