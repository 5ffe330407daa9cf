package graphite_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/graphite"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/store"
)

func Example() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	st := store.New(store.Options{})
	sink, err := graphite.New(graphite.Config{
		Options: sinkqueue.Options{
			Store: st, Prefix: "edge", Filter: sinkqueue.Filter{Include: match.List{match.Exact("orders")}},
		},
		Address: l.Addr().String(),
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
	c, err := l.Accept()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	line, err := io.ReadAll(c)
	fields := strings.Fields(string(line)) // path, value, time
	fmt.Println(fields[:len(fields)-1], err)
	// Output: [edge.orders 3] <nil>
}
