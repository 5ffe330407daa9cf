package admin_test

import (
	"fmt"
	"log"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/store"
)

// A program adds an endpoint and sends requests without a socket.
func Example() {
	st := store.New(store.Options{})
	st.Scope("edge").Counter("restarts").Inc()

	srv, err := admin.New(admin.Config{Store: st})
	if err != nil {
		log.Fatal(err)
	}
	err = srv.Handle(admin.Endpoint{
		Path: "/greet", Help: "say hello",
		Params: []admin.Param{{Name: "name", Help: "to whom"}},
		Serve: func(w *admin.Response, r *admin.Request) error {
			_, err := fmt.Fprintf(w, "hello %s\n", r.Query().Value("name"))
			return err
		},
	})
	if err != nil {
		log.Fatal(err)
	}

	fmt.Printf("%s", srv.Request("GET", "/greet?name=you", nil).Body)
	fmt.Printf("%s", srv.Request("GET", "/stats?filter=^edge", nil).Body)
	fmt.Printf("%d\n", srv.Request("GET", "/reset_counters", nil).Status)
	// Output:
	// hello you
	// edge.restarts: 1
	// 400
}
