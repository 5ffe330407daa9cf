package relay_test

import (
	"fmt"
	"sync"

	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/statsd/relay"
	"github.com/statsd-admin/statsd-admin/store"
)

func Example() {
	p := line.New(line.Config{})
	r, err := relay.New(relay.Config{Store: store.New(store.Options{}), Parser: p, Routes: []relay.Route{{
		Hash:    relay.Name,
		Targets: []relay.Target{{Name: "a", Address: "udp://127.0.0.1:8125"}, {Name: "b", Address: "udp://127.0.0.1:8126"}},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	var mu sync.Mutex
	w := r.NewWriter(&mu)
	stop := r.Start()
	defer stop()

	var l line.Line
	if p.Parse(&l, []byte("shop.orders:1|c|#zone:a")) == line.OK {
		mu.Lock()
		w.Add(&l)
		mu.Unlock()
	}
	for _, t := range r.Report() {
		fmt.Println(t.Name, t.Mode, t.Up)
	}
	// Output:
	// a hash of names true
	// b hash of names true
}
