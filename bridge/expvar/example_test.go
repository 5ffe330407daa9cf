package expvar_test

import (
	"expvar"
	"fmt"
	"os"
	"time"

	bridge "github.com/statsd-admin/statsd-admin/bridge/expvar"
	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
)

// The stats of a store as a variable.
func ExampleVar() {
	st := store.New(store.Options{})
	st.Scope("app").Counter("requests").Add(3)
	expvar.Publish("stats", bridge.Var{Store: st, Options: render.Options{UsedOnly: true, Type: render.Counters}})
	fmt.Println(expvar.Get("stats"))
	// Output:
	// {"stats":[{"name":"app.requests","value":3}]}
}

// The variables of a program among the stats of a store.
func ExampleNewImporter() {
	expvar.NewInt("example_jobs").Set(2)
	st := store.New(store.Options{})
	in := bridge.NewImporter(st.Scope("expvar"))
	in.Refresh(time.Now()) // or flush.Config{Before: []func(time.Time){in.Refresh}}

	filter, _ := render.NewFilter(render.RE2, "example_jobs", render.FilterLimits{})
	_ = render.Text(os.Stdout, st, render.Options{Filter: filter, Type: render.Gauges})
	// Output:
	// expvar.example_jobs: 2
}
