package main

import (
	"context"
	"fmt"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/store"
)

// The example in README.md: the stats of a program and a port that serves them.
func Example() {
	st := store.New(store.Options{})
	total := st.Scope("http.ingress").Counter("downstream_rq_total")
	srv, err := server.New(server.Config{Store: st, Admin: admin.Config{Address: "127.0.0.1:0"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- srv.Run(ctx) }()

	total.Inc() // nanoseconds: no lock, no lookup, no allocation

	reply := srv.Admin().Request("GET", "/stats?filter=^http.ingress&type=Counters", nil)
	fmt.Printf("%s", reply.Body)
	stop()
	fmt.Println(<-done)
	// Output:
	// http.ingress.downstream_rq_total: 1
	// <nil>
}
