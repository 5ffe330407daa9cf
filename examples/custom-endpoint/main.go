// Command custom-endpoint adds two endpoints to the administration
// port: one shows a limit, the other changes it.
//
//	go run ./examples/custom-endpoint
//	curl 127.0.0.1:9901/session_limit
//	curl -X POST 127.0.0.1:9901/session_limit/set?to=50
//	curl 127.0.0.1:9901/help
package main

import (
	"context"
	"fmt"
	"log"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/store"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	srv, err := newServer("127.0.0.1:9901")
	if err != nil {
		log.Fatal(err)
	}
	if err := srv.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

// newServer returns a server whose administration port has the endpoints.
func newServer(adminAddress string) (*server.Server, error) {
	st := store.New(store.Options{})
	srv, err := server.New(server.Config{Store: st, Admin: admin.Config{Address: adminAddress}})
	if err != nil {
		return nil, err
	}
	l := &limit{gauge: st.Scope("sessions").GaugeWithMode("limit", store.NeverImport)}
	l.set(100)
	for _, e := range l.endpoints() {
		if err := srv.Admin().Handle(e); err != nil {
			return nil, err
		}
	}
	return srv, nil
}

// limit bounds the number of concurrent sessions. Endpoints are called
// concurrently.
type limit struct {
	most  atomic.Uint64
	gauge *store.Gauge
}

// set changes the limit and returns the previous one.
func (l *limit) set(n uint64) uint64 {
	l.gauge.Set(n)
	return l.most.Swap(n)
}

// endpoints returns the rows of the endpoint table. Dispatch, the check of the
// method, the home page and /help come from them.
func (l *limit) endpoints() []admin.Endpoint {
	return []admin.Endpoint{
		{
			Path: "/session_limit", Help: "show how many sessions there may be", Serve: l.show,
			Params: []admin.Param{{Name: "format", Help: "output format", Kind: admin.ParamChoice, Choices: []string{"text", "json"}}},
		},
		{
			Path: "/session_limit/set", Help: "change how many sessions there may be", Serve: l.change,
			Mutates: true, // POST only, same origin only, and noted in the audit log
			Params:  []admin.Param{{Name: "to", Help: "number of sessions, 1 to 1000"}},
		},
	}
}

func (l *limit) show(w *admin.Response, r *admin.Request) error {
	format := "session limit: %d\n"
	if r.Query().Value("format") == "json" {
		w.SetType("application/json")
		format = "{\"session_limit\": %d}\n"
	}
	_, err := fmt.Fprintf(w, format, l.most.Load())
	return err
}

func (l *limit) change(w *admin.Response, r *admin.Request) error {
	n, err := strconv.ParseUint(r.Query().Value("to"), 10, 64)
	if err != nil || n < 1 || n > 1000 {
		return &admin.Error{Status: 400, Msg: "usage: /session_limit/set?to=<1..1000>\n"}
	}
	before := l.set(n)
	r.Changed("session limit", strconv.FormatUint(before, 10), strconv.FormatUint(n, 10))
	_, err = w.WriteString("OK\n")
	return err
}
