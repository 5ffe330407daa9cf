package envoyapi_test

import (
	"fmt"

	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/envoyapi"
)

// A program with endpoints for Envoy's tools: /config_dump and /tap.
func ExampleAdd() {
	var cfg server.Config
	envoyapi.Add(&cfg, envoyapi.Config{})
	envoyapi.AddTap(&cfg)
	srv, err := server.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(srv.Admin().Request("GET", "/config_dump", nil).Status)
	// Output: 200
}
