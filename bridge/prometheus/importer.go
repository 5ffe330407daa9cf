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
// tags, and the help text describes the stats.
//
//   - Counters become counters, without the fraction of their value. Totals of
//     seconds, whose names end in _seconds_total, become gauges that expositions show
//     as counters.
//   - Gauges and untyped metrics become gauges.
//   - Histograms become histograms with the same buckets. Counts at the bounds are
//     exact. Values inside a bucket are not known, so the importer chooses some that
//     have the sum of the histogram: quantiles are estimates. Of a histogram without
//     buckets, the count becomes a counter NAME_count and the sum a gauge NAME_sum.
//   - Summaries become a counter NAME_count, a gauge NAME_sum, and gauges NAME with the
//     tag quantile, which expositions show as the label exported_quantile.
//
// The default registry has collectors for the process and for Go, which would give the
// stats of package store/process a second time: unregister them, or leave out
// server.Config.ProcessStats.
//
// Names begin with the scope and, in expositions, with the product, unless
// naming.Rules.Namespaces of the store lists the scope: then metrics keep their names.
//
// A metric that disappears from the gatherer keeps its last value in the store.
// An Importer is safe for concurrent use.
type Importer struct {
	from client.Gatherer
	to   *store.Scope

	mu         sync.Mutex
	described  map[string]bool          // families
	counters   map[string]uint64        // their last values, by name and labels
	histograms map[string]*distribution // by name and labels
	scopes     map[string]*store.Scope  // of histograms, by their bounds
	err        error
}

// NewImporter returns an importer. Nothing is copied before the first
// [Importer.Refresh].
func NewImporter(from client.Gatherer, to *store.Scope) *Importer {
	return &Importer{
		from: from, to: to,
		described:  make(map[string]bool),
		counters:   make(map[string]uint64),
		histograms: make(map[string]*distribution),
		scopes:     make(map[string]*store.Scope),
	}
}

// Refresh copies the current values. Its signature is that of the elements of
// flush.Config.Before, so that each flush has fresh values.
func (im *Importer) Refresh(time.Time) {
	im.mu.Lock()
	defer im.mu.Unlock()
	families, err := im.from.Gather() // an older value after a newer one would count as a restart
	im.err = err
	for _, f := range families {
		im.describeLocked(f)
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

// isSeconds reports whether a counter is a total of seconds, which has fractions.
func isSeconds(name string) bool { return strings.HasSuffix(name, "_seconds_total") }

// describeLocked describes the stats of a family when it is first seen. im.mu is held.
func (im *Importer) describeLocked(f *dto.MetricFamily) {
	name := f.GetName()
	if im.described[name] {
		return
	}
	im.described[name] = true
	d := store.Description{Help: f.GetHelp(), Unit: f.GetUnit(), Counter: f.GetType() == dto.MetricType_COUNTER && isSeconds(name)}
	if d != (store.Description{}) {
		im.to.Describe(name, d)
	}
}

// copyLocked copies one metric. im.mu is held.
func (im *Importer) copyLocked(f *dto.MetricFamily, m *dto.Metric) {
	name, labels := f.GetName(), tagsOf(m)
	switch {
	case m.Counter != nil && isSeconds(name):
		im.set(name, labels, m.Counter.GetValue())
	case m.Counter != nil:
		im.countLocked(name, labels, m.Counter.GetValue())
	case m.Gauge != nil:
		im.set(name, labels, m.Gauge.GetValue())
	case m.Untyped != nil:
		im.set(name, labels, m.Untyped.GetValue())
	case m.Histogram != nil && len(m.Histogram.Bucket) > 0:
		im.distributeLocked(name, labels, m.Histogram)
	case m.Histogram != nil:
		h := m.Histogram
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
	k, now := key(name, labels), uint64(value)
	last, known := im.counters[k]
	if known && now == last {
		return
	}
	if now < last {
		last = 0
	}
	im.counters[k] = now
	im.to.Counter(name, labels...).Add(now - last) // looked up, as the scope may end stats
}

// key identifies a metric by its name and labels.
func key(name string, labels []tags.Tag) string {
	var b strings.Builder
	b.WriteString(name)
	for _, l := range labels {
		b.WriteString("\x00" + l.Name + "\x00" + l.Value)
	}
	return b.String()
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
