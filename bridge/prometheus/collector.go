package prometheus

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	client "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"

	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
)

// Collector presents the stats of a store as metrics, with the names, labels and
// values of the store's own exposition: counters, gauges and, since the start,
// histograms with buckets and a native histogram. It is an unchecked collector,
// because a store gains stats at run time. A Collector is safe for concurrent use.
type Collector struct{ st *store.Store }

var (
	_ client.Collector = Collector{}
	_ client.Gatherer  = Collector{}
)

// NewCollector returns a collector for the stats of st.
func NewCollector(st *store.Store) Collector { return Collector{st} }

// Describe implements [client.Collector]. It sends nothing.
func (c Collector) Describe(chan<- *client.Desc) {}

// Collect implements [client.Collector].
func (c Collector) Collect(ch chan<- client.Metric) {
	families, err := c.Gather()
	for _, f := range families {
		for _, m := range f.Metric {
			ch <- metric{f, m}
		}
	}
	if err != nil {
		ch <- client.NewInvalidMetric(client.NewInvalidDesc(err), err)
	}
}

// Gather implements [client.Gatherer]. Families are in the order of the store's
// exposition.
func (c Collector) Gather() ([]*dto.MetricFamily, error) {
	var out bytes.Buffer
	if err := render.Protobuf(&out, c.st, render.Options{}); err != nil {
		return nil, err
	}
	var all []*dto.MetricFamily
	for in := bufio.NewReader(&out); ; {
		f := new(dto.MetricFamily)
		if err := protodelim.UnmarshalFrom(in, f); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return all, err
		}
		if n := len(all); n > 0 && all[n-1].GetName() == f.GetName() { // a large family comes in parts
			all[n-1].Metric = append(all[n-1].Metric, f.Metric...)
			continue
		}
		all = append(all, f)
	}
}

// metric is one metric of a family.
type metric struct {
	family *dto.MetricFamily
	value  *dto.Metric
}

// Desc implements [client.Metric].
func (m metric) Desc() *client.Desc {
	var labels []string
	for _, l := range m.value.Label {
		labels = append(labels, l.GetName())
	}
	return client.NewDesc(m.family.GetName(), m.family.GetHelp(), labels, nil)
}

// Write implements [client.Metric].
func (m metric) Write(to *dto.Metric) error {
	proto.Merge(to, m.value)
	return nil
}
