package report_test

import (
	"fmt"

	"github.com/statsd-admin/statsd-admin/statsd/report"
)

func ExampleReport() {
	r := report.Report{
		Listeners: []report.Listener{{
			ListenerInfo: report.ListenerInfo{Name: "udp"},
			Lines:        12, Applied: 9, Limited: 1,
			Rejected: map[string]uint64{"bad_value": 2},
		}},
		Limits: []report.Limit{{Name: "series", Max: 1000, Use: 950}},
	}
	for _, l := range r.Listeners {
		rejected := uint64(0)
		for _, n := range l.Rejected {
			rejected += n
		}
		fmt.Println(l.Name, l.Lines == l.Applied+l.Limited+rejected)
	}
	for _, l := range r.Limits {
		fmt.Printf("%s: %d%%\n", l.Name, 100*l.Use/l.Max)
	}
	// Output:
	// udp true
	// series: 95%
}
