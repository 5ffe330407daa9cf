package render

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/statsd-admin/statsd-admin/internal/protobuf"
	"github.com/statsd-admin/statsd-admin/store"
)

// createdSuffix is the suffix of the samples in OpenMetrics that say when a series was
// created.
const createdSuffix = "_created"

// showsCreated reports whether the series of the current family say when they were
// created; under is its metric name in the old alphabet. In OpenMetrics they do not if
// another family has the name of the sample.
func (e *exposer) showsCreated(k store.Kind, under []byte) bool {
	if k != store.KindCounter && (k != store.KindHistogram || e.ofInterval()) {
		return false
	}
	switch e.dialect {
	case dialectProtobuf:
		return true
	case dialectOpenMetrics:
		if k == store.KindCounter {
			return e.total && !e.omitCreated
		}
		return !e.omitCreated && !e.st.HasMetric(string(under)+createdSuffix)
	}
	return false
}

// takenByOther reports whether another family prevents that a counter has a family name, its
// metric name without the suffix _total: by that name, or by that of a sample, which OpenMetrics
// reserves whether it exists or not.
func (e *exposer) takenByOther(name string) bool {
	of, created := strings.CutSuffix(name, createdSuffix)
	return e.st.HasMetric(name) || e.st.HasMetric(name+createdSuffix) || created && (e.st.HasMetric(of) || e.st.HasMetric(of+totalSuffix))
}

// ofInterval reports whether histograms are summaries whose sum and count cover the last
// interval.
func (e *exposer) ofInterval() bool { return e.summaries && e.form != Default }

// sinceOf returns when the value of the stat under c was 0, in Unix milliseconds, or 0
// if that is unknown or not shown.
func (e *exposer) sinceOf(c *store.Cursor) int64 {
	if !e.created {
		return 0
	}
	t := c.Since()
	if t.IsZero() {
		return 0
	}
	return max(t.UnixMilli(), 0)
}

// createdSample writes the sample for e.since, if that is known.
func (e *exposer) createdSample(labels []byte) {
	if e.since == 0 || e.dialect != dialectOpenMetrics {
		return
	}
	metric := e.metric
	if e.total {
		e.metric = bytes.TrimSuffix(metric, []byte(totalSuffix))
	}
	e.sample(createdSuffix, labels, "")
	e.metric = metric
	e.out.buf = strconv.AppendInt(e.out.buf, e.since/1000, 10)
	ms := e.since % 1000
	e.out.buf = append(e.out.buf, '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), '\n')
}

// created appends the Timestamp of a time in Unix milliseconds as a field, unless it is 0.
func (p *protoFamily) created(field int, since int64) {
	if since == 0 {
		return
	}
	if since != p.since { // many stats are created at once
		p.since = since
		p.stamp = protobuf.AppendInt(p.stamp[:0], 1, since/1000)
		if ms := since % 1000; ms != 0 {
			p.stamp = protobuf.AppendInt(p.stamp, 2, ms*1e6)
		}
	}
	p.value = protobuf.AppendBytes(p.value, field, p.stamp)
}
