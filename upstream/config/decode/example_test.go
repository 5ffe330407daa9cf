package decode_test

import (
	"errors"
	"fmt"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/config/v2form"
)

func ExampleDecoder_ClusterText() {
	d := decode.NewDecoder(decode.Options{})
	p, err := d.ClusterText("backend.yaml", []byte(`
name: backend
type: STATIC
connect_timeout: 0.5s
load_assignment:
  cluster_name: backend
  endpoints:
  - lb_endpoints:
    - endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 8080}}}
`), config.FormUnknown)
	if err != nil {
		fmt.Println(err)
		return
	}
	c := p.Cluster
	e := c.Assignment.Localities[0].Endpoints[0]
	fmt.Println(c.Name, c.ConnectTimeout, e.Address.Host, e.Address.Port)
	fmt.Println(c.CircuitBreakers.Default.MaxConnections, p.TypeURL())
	// Output:
	// backend 500ms 10.0.0.1 8080
	// 1024 type.googleapis.com/envoy.config.cluster.v3.Cluster
}

// The error lists every error of the text with its position.
func ExampleErrors() {
	_, err := decode.NewDecoder(decode.Options{}).ClusterText("backend.yaml", []byte(`name: backend
connect_timeout: -1s
lb_polcy: RANDOM
`), config.FormV3)
	fmt.Println(err)
	var all *decode.Errors
	if errors.As(err, &all) {
		fmt.Println(all.Count(decode.UnknownField))
	}
	// Output:
	// backend.yaml:3:1: cluster "backend": lb_polcy: unknown field of Cluster; did you mean lb_policy?
	// 1
}

// Package v2form adds the v2 message form.
func ExampleOptions_v2() {
	d := decode.NewDecoder(decode.Options{V2: v2form.Messages()})
	p, err := d.ClusterText("backend.yaml", []byte(`
name: backend
connect_timeout: 1s
hosts:
- socket_address: {address: 10.0.0.1, port_value: 8080}
`), config.FormUnknown)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Cluster.Form == config.FormV2, p.TypeURL())
	// Output:
	// true type.googleapis.com/envoy.api.v2.Cluster
}
