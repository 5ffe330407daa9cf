package remotewrite_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/remotewrite"
	"github.com/statsd-admin/statsd-admin/flush/sinkhttp"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

func Example() {
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.URL.Path, r.Header.Get("Content-Encoding"), r.Header.Get("X-Prometheus-Remote-Write-Version"))
		w.Header().Set("X-Prometheus-Remote-Write-Samples-Written", "4")
	}))
	defer prometheus.Close()
	st := store.New(store.Options{})
	sink, err := remotewrite.New(remotewrite.Config{
		Options: sinkqueue.Options{Store: st, Tags: []tags.Tag{{Name: "instance", Value: "edge-1"}}},
		HTTP:    sinkhttp.Config{URL: prometheus.URL + "/api/v1/write"},
		Shards:  1,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := flush.New(flush.Config{Store: st, Sinks: []flush.Sink{sink}})
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
	// Output: /api/v1/write snappy 2.0.0
}
