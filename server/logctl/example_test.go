package logctl_test

import (
	"fmt"

	"github.com/statsd-admin/statsd-admin/server/logctl"
)

func ExampleRegistry() {
	logs, err := logctl.New(logctl.Config{Names: []string{"main", "upstream"}, Level: logctl.Info})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := logs.SetPaths("upstream:debug"); err != nil {
		fmt.Println(err)
	}
	for _, l := range logs.List() {
		fmt.Println(l.Name, l.Level)
	}
	// Output:
	// main info
	// upstream debug
}
