package bootstrap_test

import (
	"errors"
	"fmt"

	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/server"
)

func ExampleParse() {
	c, err := bootstrap.Parse("proxy.yaml", []byte(`
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 9901}}}
statsd: {ttl: {gauge: 1h}}
`), bootstrap.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Admin.Address, c.Stats.FlushInterval, c.StatsD.TTL.Gauge)
	// Output: 127.0.0.1:9901 5s 1h0m0s
}

func ExampleErrors() {
	_, err := bootstrap.Parse("proxy.yaml", []byte("admin:\n  mode: fast\nstats_flush_interval: 10\n"), bootstrap.Options{})
	var all *bootstrap.Errors
	if errors.As(err, &all) {
		for _, e := range all.List {
			fmt.Println(e.Position.Line, e.Field)
		}
	}
	// Output:
	// 2 admin.mode
	// 3 stats_flush_interval
}

// A file becomes the configuration of a server.
func ExampleConfig_Server() {
	c, err := bootstrap.Load(bootstrap.Source{YAML: "admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}"}, bootstrap.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg, err := c.Server(bootstrap.Startup{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = server.New(cfg)
	fmt.Println(cfg.Admin.Address, err)
	// Output: 127.0.0.1:0 <nil>
}
