package render_test

import (
	"fmt"
	"os"

	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
)

func Example() {
	st := store.New(store.Options{})
	sc := st.Scope("cluster.checkout")
	sc.Counter("upstream_rq_total").Add(3)
	sc.Counter("upstream_cx_total")
	filter, err := render.NewFilter(render.RE2, `^cluster\.`, render.FilterLimits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := render.Text(os.Stdout, st, render.Options{Filter: filter, UsedOnly: true}); err != nil {
		fmt.Println(err)
	}
	// Output: cluster.checkout.upstream_rq_total: 3
}

func ExampleNegotiate() {
	format, _ := render.Negotiate("application/openmetrics-text;version=1.0.0,text/plain;q=0.5", &render.Options{})
	fmt.Println(format.ContentType())
	// Output: text/plain; version=0.0.4; charset=utf-8
}
