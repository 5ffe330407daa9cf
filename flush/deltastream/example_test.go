package deltastream_test

import (
	"fmt"
	"os"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/deltastream"
	"github.com/statsd-admin/statsd-admin/store"
)

// stdout is a client that prints its events.
type stdout struct{ *os.File }

func (stdout) Flush() error { return nil }

func Example() {
	st := store.New(store.Options{Now: func() time.Time { return time.UnixMilli(1_700_000_000_000) }})
	st.Root().Counter("requests")
	stream := deltastream.New(deltastream.Config{Store: st, Epoch: 1})
	client, err := stream.Subscribe(deltastream.Request{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	stream.Close() // a real server does so at its end
	if err := client.Serve(stdout{os.Stdout}, nil); err != nil {
		fmt.Println(err)
	}
	fmt.Println(stream.Clients(), "client")
	// Output: 1 client
}
