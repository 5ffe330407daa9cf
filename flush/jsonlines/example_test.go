package jsonlines_test

import (
	"context"
	"fmt"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/jsonlines"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/store"
)

func Example() {
	st := store.New(store.Options{})
	sink, err := jsonlines.New(jsonlines.Config{
		Options: sinkqueue.Options{Store: st, Filter: sinkqueue.Filter{Include: match.List{match.Exact("orders")}}},
		Path:    "/dev/stdout",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	st.Root().Counter("orders").Add(3)
	snap := st.Flush(store.FlushOptions{})
	defer snap.Close()
	snap.Time = time.UnixMilli(1700000000999) // a flush.Scheduler does not need this
	_ = sink.Flush(snap)
	sink.Close()
	sink.Run(context.Background())
	// Output: {"time":"2023-11-14T22:13:20.999Z","type":"counter","name":"orders","increment":3}
}
