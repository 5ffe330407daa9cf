package store_test

import (
	"testing"

	"github.com/statsd-admin/statsd-admin/store"
)

func TestMetricNames(t *testing.T) {
	for _, tt := range []struct {
		naming  store.Naming
		name    string
		network bool
		kind    store.Kind
		want    string // "": not shown
	}{
		{store.Naming{Product: "proxy"}, "edge.cache-hits@eu", false, store.KindGauge, "proxy_edge_cache_hits_eu"},
		{store.Naming{Product: "my-proxy"}, "9lives.Used", false, store.KindCounter, "my_proxy_9lives_Used"},
		{store.Naming{Product: "proxy"}, "", false, store.KindGauge, "proxy_"},
		{store.Naming{Product: "proxy", Namespaces: []string{"a", "plugin"}}, "plugin.Rate.limit-hits", false, store.KindGauge, "Rate_limit_hits"},
		{store.Naming{Product: "proxy", Namespaces: []string{"plugin"}}, "plugin.9lives", false, store.KindGauge, ""},
		{store.Naming{Product: "proxy", Namespaces: []string{"plugin"}}, "plugin.", false, store.KindGauge, ""},
		{store.Naming{Product: "proxy", Namespaces: []string{"plugin"}}, "plugin..x", false, store.KindGauge, "_x"},
		{store.Naming{Product: "proxy", Namespaces: []string{"plugin"}}, "plugin", false, store.KindGauge, "proxy_plugin"},
		{store.Naming{Product: "proxy", Namespaces: []string{"plugin"}}, "plugins.x", false, store.KindGauge, "proxy_plugins_x"},
		{store.Naming{Product: "proxy", Namespaces: []string{"plugin"}}, "plugin.x", true, store.KindGauge, "plugin_x"},
		{store.Naming{Product: "proxy"}, "a-b.ü:c", true, store.KindCounter, "a_b____c"},
		{store.Naming{}, "9.rq", true, store.KindGauge, "_9_rq"},
		{store.Naming{}, "", true, store.KindGauge, "_"},
		{store.Naming{NetworkPrefix: "in_"}, "9.rq", true, store.KindGauge, "in_9_rq"},
		{store.Naming{NetworkPrefix: "in_"}, "rq", false, store.KindGauge, "_rq"},
		{store.Naming{NetworkTotal: true}, "rq", true, store.KindCounter, "rq_total"},
		{store.Naming{NetworkTotal: true}, "rq", true, store.KindGauge, "rq"},
		{store.Naming{NetworkTotal: true, Product: "p"}, "rq", false, store.KindCounter, "p_rq"},
		{store.Naming{NetworkRunes: true}, "9a--ü  b:c", true, store.KindGauge, "_9a____b_c"},
	} {
		got, ok := tt.naming.AppendMetric([]byte("k"), tt.name, tt.network, tt.kind)
		if string(got) != "k"+tt.want || ok != (tt.want != "") {
			t.Errorf("%+v: %q, network %t, %v: %q %t, want %q", tt.naming, tt.name, tt.network, tt.kind, got[1:], ok, tt.want)
		}
	}
}

func TestLabelNames(t *testing.T) {
	for name, want := range map[string]string{
		"proxy.cluster_name": "proxy_cluster_name",
		"cipher_suite":       "cipher_suite",
		"a-b ü":              "a_b___",
		"9":                  "_9",
		"":                   "_",
		"le":                 "exported_le",
		"quantile":           "exported_quantile",
		"__name__":           "exported___name__",
		"_x":                 "_x",
		"..x":                "exported___x",
		"LE":                 "LE",
	} {
		if got := new(store.Naming).AppendLabel([]byte("k"), name); string(got) != "k"+want {
			t.Errorf("label of tag %q is %q, want %q", name, got[1:], want)
		}
	}
	taken := [][]byte{[]byte("a"), []byte("exported_a")}
	for name, want := range map[string]string{"a": "exported_exported_a", "b": "b"} {
		if got := store.DistinctLabel([]byte(name), taken); string(got) != want {
			t.Errorf("beside %q, label %q is called %q, want %q", taken, name, got, want)
		}
	}
}
