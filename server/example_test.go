package server_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/layers"
	"github.com/statsd-admin/statsd-admin/store"
)

func ExampleServer_Run() {
	srv, err := server.New(server.Config{Admin: admin.Config{Address: "127.0.0.1:0"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- srv.Run(ctx) }()

	<-srv.Initialized()
	fmt.Println(srv.Admin().Request("GET", "/ready", nil).Status)
	stop()
	fmt.Println(<-done)
	// Output:
	// 200
	// <nil>
}

// Requests can be answered without a listener.
func ExampleServer_Admin() {
	st := store.New(store.Options{})
	st.Scope("jobs").Counter("done").Add(3)
	srv, err := server.New(server.Config{Store: st, Layers: []layers.Layer{
		{Name: "base", Kind: layers.Static, Values: map[string]any{"jobs.parallel": 4}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s", srv.Admin().Request("GET", "/stats?filter=^jobs", nil).Body)
	fmt.Println(strings.Contains(string(srv.Admin().Request("GET", "/runtime", nil).Body), "jobs.parallel"))
	// Output:
	// jobs.done: 3
	// true
}
