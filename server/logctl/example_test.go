package logctl_test

import (
	"fmt"
	"log/slog"
	"os"

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

// A program keeps its own handler, and the level of the component changes at run time,
// for example by POST /logging?jobs=debug.
func ExampleRegistry_Handler() {
	logs, err := logctl.New(logctl.Config{Level: logctl.Info})
	if err != nil {
		fmt.Println(err)
		return
	}
	own := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		Level: logctl.SlogTrace, // the registry decides
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})
	log := slog.New(logs.Handler("jobs", own))
	log.Debug("not shown")
	if err := logs.Set("jobs", "debug"); err != nil {
		fmt.Println(err)
	}
	log.Debug("shown", "job", 7)
	// Output: level=DEBUG msg=shown job=7
}
