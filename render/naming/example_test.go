package naming_test

import (
	"fmt"

	"github.com/statsd-admin/statsd-admin/render/naming"
)

func ExampleRules() {
	r := naming.Rules{Product: "proxy", Namespaces: []string{"plugin"}, NetworkTotal: true}
	for _, name := range []string{"http.downstream-rq", "plugin.rate.hits"} {
		metric, _ := r.AppendMetric(nil, name, false, true)
		fmt.Println(string(metric))
	}
	metric, _ := r.AppendMetric(nil, "shop.orders", true, true)
	fmt.Println(string(metric))
	fmt.Println(string(r.AppendLabel(nil, "proxy.cluster_name")))
	fmt.Println(string(r.AppendLabel(nil, "le")))
	// Output:
	// proxy_http_downstream_rq
	// rate_hits
	// shop_orders_total
	// proxy_cluster_name
	// exported_le
}
