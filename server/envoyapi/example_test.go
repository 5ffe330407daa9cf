package envoyapi_test

import (
	"fmt"
	"time"

	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/configdump"
	"github.com/statsd-admin/statsd-admin/server/envoyapi"
	"github.com/statsd-admin/statsd-admin/server/listeners"
)

// A program with endpoints for Envoy's tools: /config_dump and /tap.
func ExampleAdd() {
	var cfg server.Config
	dump := envoyapi.Add(&cfg, envoyapi.Config{})
	envoyapi.AddTap(&cfg)
	srv, err := server.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	dump.Set("listeners", func() configdump.Section {
		return configdump.Listeners([]listeners.Listener{{Name: "ingress"}}, time.Time{})
	})
	fmt.Println(srv.Admin().Request("GET", "/config_dump", nil).Status)
	// Output: 200
}
