package flush_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// printer is a sink that prints what changed in the scope "shop".
type printer struct{}

func (printer) Name() string { return "printer" }

func (printer) Flush(snap *store.Snapshot) error {
	for c, delta := range snap.CounterChanges {
		if strings.HasPrefix(c.Name(), "shop.") {
			fmt.Println(c.Family(), c.AppendTags(nil), "grew by", delta, "to", c.Uint())
		}
	}
	for c := range snap.GaugeChanges {
		if strings.HasPrefix(c.Name(), "shop.") {
			fmt.Println(c.Name(), "is", c.Float())
		}
	}
	for c, h := range snap.HistogramChanges {
		if s := h.Interval; strings.HasPrefix(c.Name(), "shop.") {
			fmt.Println(c.Name(), "has", s.Count(), "values up to", s.Max(), "with the median", s.Quantile(0.5))
		}
	}
	return nil
}

func ExampleSink() {
	st := store.New(store.Options{})
	s, err := flush.New(flush.Config{Store: st, Sinks: []flush.Sink{printer{}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	shop := st.Scope("shop")
	shop.Counter("orders", tags.Tag{Name: "region", Value: "eu"}).Add(3)
	shop.Gauge("carts").Set(7)
	shop.Histogram("latency", store.Milliseconds).RecordN(12, 5)
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // Run flushes a last time
	if err := s.Run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// shop.orders [{region eu}] grew by 3 to 3
	// shop.carts is 7
	// shop.latency has 5 values up to 12 with the median 12
}

func ExampleNew() {
	_, err := flush.New(flush.Config{Store: store.New(store.Options{}), Interval: 1})
	fmt.Println(err)
	// Output: flush: stats_flush_interval 1ns not in [1ms, 5m0s)
}
