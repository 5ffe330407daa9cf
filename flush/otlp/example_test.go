package otlp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/statsd-admin/statsd-admin/flush/otlp"
	"github.com/statsd-admin/statsd-admin/flush/sinkhttp"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

func Example() {
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { fmt.Println(r.Method, r.URL.Path) }))
	defer collector.Close()
	st := store.New(store.Options{})
	sink, err := otlp.New(otlp.Config{
		Options: sinkqueue.Options{Store: st}, HTTP: sinkhttp.Config{URL: collector.URL},
		Resource: []tags.Tag{tags.String("service.name", "shop")},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	st.Root().Counter("orders").Add(3)
	snap := st.Flush(store.FlushOptions{Totals: true}) // flush.Scheduler does this
	if err := sink.Flush(snap); err != nil {
		fmt.Println(err)
	}
	snap.Close()
	sink.Close()
	sink.Run(context.Background())
	// Output: POST /v1/metrics
}
