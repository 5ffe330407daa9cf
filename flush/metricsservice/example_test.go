package metricsservice_test

import (
	"context"
	"fmt"

	"github.com/statsd-admin/statsd-admin/flush/metricsservice"
	"github.com/statsd-admin/statsd-admin/flush/sinkhttp"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/store"
)

func Example() {
	sink, err := metricsservice.New(metricsservice.Config{
		Options:  sinkqueue.Options{Store: store.New(store.Options{})},
		Receiver: sinkhttp.Config{URL: "http://127.0.0.1:9500"},
		NodeID:   "edge-1", Delta: true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(sink.Name(), sink.Delivery().Target) // pass it to flush.New
	sink.Close()
	sink.Run(context.Background())
	// Output: metrics_service http://127.0.0.1:9500
}
