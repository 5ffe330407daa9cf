package xds_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/xds"
)

// A client follows the clusters in a file and adds them to a manager.
func Example() {
	dir, err := os.MkdirTemp("", "clusters")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "clusters.yaml")
	if err := os.WriteFile(file, []byte(`
version_info: "1"
resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: backend
  connect_timeout: 1s
  load_assignment:
    cluster_name: backend
    endpoints:
    - lb_endpoints:
      - endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 8080}}}
`), 0o600); err != nil {
		fmt.Println(err)
		return
	}

	st := store.New(store.Options{})
	client, err := xds.New(xds.Config{
		Store: st, Decoder: decode.NewDecoder(decode.Options{}),
		CDS: &config.ConfigSource{Kind: config.SourcePath, Path: file},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	m := upstream.New(upstream.Config{Store: st, Source: client.Source})
	defer m.Close()
	client.Attach(m)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- client.Run(ctx) }()
	m.Start()
	<-m.Ready()
	fmt.Println(m.Version(), m.Cluster("backend").Current().Config().Name)
	stop()
	fmt.Println(<-done)
	// Output:
	// 1 backend
	// <nil>
}
