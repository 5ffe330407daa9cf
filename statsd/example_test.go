package statsd_test

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/statsd-admin/statsd-admin/statsd"
	"github.com/statsd-admin/statsd-admin/store"
)

func Example() {
	st := store.New(store.Options{})
	srv, err := statsd.New(statsd.Config{
		Store:     st,
		Listeners: []statsd.ListenerConfig{{Address: "tcp://127.0.0.1:0"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := srv.Listen(); err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan error)
	go func() { done <- srv.Run(ctx) }()

	conn, err := net.Dial("tcp", strings.TrimPrefix(srv.Listeners()[0].Address, "tcp://"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Fprint(conn, "orders:2|c|#shop:eu\norders:3|c|#shop:eu\n")
	conn.Close()
	for srv.Report().Listeners[0].ConnectionsTotal == 0 || srv.Report().Listeners[0].Connections > 0 {
	}
	stop()
	fmt.Println(<-done)

	v := st.View()
	defer v.Close()
	for c := v.ByName(store.Scalars); c.Next(); {
		if c.Network() {
			fmt.Printf("%s: %s\n", c.Name(), c.AppendValue(nil))
		}
	}
	// Output:
	// <nil>
	// orders.shop.eu: 5
}

func ExampleServer_Explain() {
	srv, err := statsd.New(statsd.Config{Store: store.New(store.Options{})})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, text := range []string{"rt:12|ms|#route:/a", "rt:12|minutes"} {
		x := srv.Explain([]byte(text))
		if x.Reason != "" {
			fmt.Println("rejected:", x.Reason, "at byte", x.Offset)
			continue
		}
		fmt.Println(x.Samples[0].Kind, x.Samples[0].Stat, x.Samples[0].Series)
	}
	// Output:
	// histogram rt.route./a rt{route="/a"}
	// rejected: bad_type at byte 6
}
