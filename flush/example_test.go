package flush_test

import (
	"context"
	"fmt"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/store"
)

// printer is a sink that prints the increments of counters.
type printer struct{}

func (printer) Name() string { return "printer" }

func (printer) Flush(snap *store.Snapshot) error {
	snap.CounterChanges(func(c *store.Cursor, delta uint64) bool {
		if c.Name() == "orders" {
			fmt.Println(c.Name(), delta)
		}
		return true
	})
	return nil
}

func ExampleSink() {
	st := store.New(store.Options{})
	s, err := flush.New(flush.Config{Store: st, Sinks: []flush.Sink{printer{}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	st.Root().Counter("orders").Add(3)
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // Run flushes a last time
	if err := s.Run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output: orders 3
}

func ExampleNew() {
	_, err := flush.New(flush.Config{Store: store.New(store.Options{}), Interval: 1})
	fmt.Println(err)
	// Output: flush: stats_flush_interval 1ns not in [1ms, 5m0s)
}
