// Command embed is a small web service with a counter of its own. The server counts its
// requests and shows all counts on an administration port.
//
//	go run ./examples/embed
//	curl 127.0.0.1:8080/hello
//	curl '127.0.0.1:9901/stats?filter=^(greetings|http)'
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/store"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	srv, err := newService("127.0.0.1:8080", "127.0.0.1:9901")
	if err == nil {
		err = srv.Run(ctx)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// newService returns a server of the service and its administration port.
func newService(address, adminAddress string) (*server.Server, error) {
	st := store.New(store.Options{})
	greetings := st.Root().Counter("greetings") // asked for once; Inc takes nanoseconds
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", func(w http.ResponseWriter, _ *http.Request) {
		greetings.Inc()
		fmt.Fprintln(w, "hello")
	})
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", 500) })
	return server.New(server.Config{
		Store:     st,
		Admin:     admin.Config{Address: adminAddress},
		Flush:     flush.Config{Interval: time.Second},
		Listeners: []server.Listener{{Name: "ingress", Address: address, HTTP: mux}},
	})
}
