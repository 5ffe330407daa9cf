package eventstream_test

import (
	"fmt"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/eventstream"
	"github.com/statsd-admin/statsd-admin/store"
)

func ExampleNew() {
	stream := eventstream.New(eventstream.Config{Clients: 1})
	defer stream.Close()
	_, err := flush.New(flush.Config{Store: store.New(store.Options{}), Sinks: []flush.Sink{stream}})
	fmt.Println(stream.Name(), err)

	client, _ := stream.Subscribe()
	defer client.Close()
	_, err = stream.Subscribe()
	fmt.Println(err != nil)
	// Output:
	// circuit_stream <nil>
	// true
}
