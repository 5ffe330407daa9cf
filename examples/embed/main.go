// Command embed is a small web service that counts its requests and shows the
// counts on an administration port.
//
//	go run ./examples/embed
//	curl 127.0.0.1:8080/hello
//	curl 127.0.0.1:9901/stats?filter=^http
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/store"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	s, err := newService("127.0.0.1:8080", "127.0.0.1:9901")
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("service on %s, administration on %s", s.listener.Addr(), s.stats.Admin().Addr())
	if err := s.run(ctx); err != nil {
		log.Fatal(err)
	}
}

// service is a web service with stats.
type service struct {
	stats    *server.Server
	listener net.Listener
	http     http.Server

	// Handles are asked for once; using them takes nanoseconds.
	requests *store.Counter
	failures *store.Counter
	active   *store.Gauge
	time     *store.Histogram
}

// newService binds both ports.
func newService(address, adminAddress string) (*service, error) {
	st := store.New(store.Options{})
	in := st.Scope("http.ingress")
	s := &service{
		requests: in.Counter("downstream_rq_total"),
		failures: in.Counter("downstream_rq_5xx"),
		active:   in.Gauge("downstream_rq_active"),
		time:     in.Histogram("downstream_rq_time", histogram.Milliseconds),
	}
	var err error
	s.stats, err = server.New(server.Config{
		Store: st,
		Admin: admin.Config{Address: adminAddress},
		Flush: flush.Config{Interval: time.Second},
	})
	if err != nil {
		return nil, err
	}
	if err := s.stats.Listen(); err != nil {
		return nil, err
	}
	if s.listener, err = net.Listen("tcp", address); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", 500) })
	s.http.Handler = s.count(mux)
	return s, nil
}

// run serves until ctx ends.
func (s *service) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	web := make(chan error, 1)
	go func() {
		defer stop()
		web <- s.http.Serve(s.listener)
	}()
	err := s.stats.Run(ctx) // returns when ctx ends
	if closeErr := s.http.Close(); err == nil {
		err = closeErr
	}
	if webErr := <-web; !errors.Is(webErr, http.ErrServerClosed) {
		err = errors.Join(err, webErr)
	}
	return err
}

// count counts what next does.
func (s *service) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		s.active.Inc()
		defer s.active.Dec()
		s.requests.Inc()
		answer := &recorder{ResponseWriter: w, status: 200}
		next.ServeHTTP(answer, r)
		if answer.status >= 500 {
			s.failures.Inc()
		}
		s.time.Record(uint64(time.Since(start).Milliseconds()))
	})
}

// recorder remembers the status of an answer.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}
