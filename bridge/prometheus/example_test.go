package prometheus_test

import (
	"fmt"
	"os"
	"time"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/statsd-admin/statsd-admin/bridge/prometheus"
	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
)

// The stats of a store among the metrics of a registry.
func ExampleNewCollector() {
	st := store.New(store.Options{})
	st.Scope("app").Counter("requests").Add(3)

	registry := client.NewRegistry()
	registry.MustRegister(prometheus.NewCollector(st))

	families, err := registry.Gather()
	if err != nil {
		fmt.Println(err)
	}
	for _, f := range families {
		if f.GetName() == "proxy_app_requests" {
			fmt.Println(f.GetName(), f.GetType(), f.Metric[0].Counter.GetValue())
		}
	}
	// Output:
	// proxy_app_requests COUNTER 3
}

// The metrics of a registry among the stats of a store.
func ExampleNewImporter() {
	registry := client.NewRegistry()
	jobs := client.NewCounter(client.CounterOpts{Name: "jobs"})
	registry.MustRegister(jobs)
	jobs.Add(2)

	st := store.New(store.Options{})
	in := prometheus.NewImporter(registry, st.Scope("app"))
	in.Refresh(time.Now()) // or flush.Config{Before: []func(time.Time){in.Refresh}}

	_ = render.Text(os.Stdout, st, render.Options{Type: render.Counters, UsedOnly: true})
	// Output:
	// app.jobs: 2
}
