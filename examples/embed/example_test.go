package main

import (
	"context"
	"fmt"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/store"
)

// The example of README.md: stats of a program, and a port that shows them.
func Example() {
	st := store.New(store.Options{})
	in := st.Scope("http.ingress")
	total, latency := in.Counter("downstream_rq_total"), in.Histogram("downstream_rq_time", histogram.Milliseconds)

	srv, err := server.New(server.Config{Store: st, Admin: admin.Config{Address: "127.0.0.1:0"}})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- srv.Run(ctx) }()

	total.Inc() // nanoseconds: no lock, no look-up, no allocation
	latency.Record(12)

	reply := srv.Admin().Request("GET", "/stats?filter=^http.ingress&type=Counters", nil) // as curl would
	fmt.Printf("%s", reply.Body)
	stop()
	fmt.Println(<-done)
	// Output:
	// http.ingress.downstream_rq_total: 1
	// <nil>
}
