package upstream_test

import (
	"fmt"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

func Example() {
	parsed, err := decode.NewDecoder(decode.Options{}).ClusterText("backend.yaml", []byte(`
name: backend
connect_timeout: 1s
load_assignment:
  cluster_name: backend
  endpoints:
  - lb_endpoints:
    - endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}
    - endpoint: {address: {socket_address: {address: 10.0.0.2, port_value: 80}}}
`), config.FormV3)
	if err != nil {
		panic(err)
	}
	m := upstream.New(upstream.Config{Store: store.New(store.Options{})})
	defer m.Close()
	if err := m.AddStatic(parsed); err != nil {
		panic(err)
	}
	m.Start()
	<-m.Ready()

	backend := m.Cluster("backend") // keep it
	for range 3 {
		c := backend.Current()
		h, err := c.Pick(nil)
		if err != nil {
			fmt.Println("503:", err)
			continue
		}
		c.RequestStarted(h)
		// … send the request to h.Address() …
		c.RequestFinished(h, upstream.RequestEnd{Status: 200})
		fmt.Println(h.AddressText(), h.Stats.RqTotal.Value())
	}
	// Output:
	// 10.0.0.1:80 1
	// 10.0.0.2:80 1
	// 10.0.0.1:80 2
}
