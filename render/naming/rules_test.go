package naming_test

import (
	"testing"

	"github.com/statsd-admin/statsd-admin/render/naming"
)

func TestMetricNames(t *testing.T) {
	for _, tt := range []struct {
		rules   naming.Rules
		name    string
		network bool
		counter bool
		want    string // "": not shown
	}{
		{naming.Rules{Product: "proxy"}, "edge.cache-hits@eu", false, false, "proxy_edge_cache_hits_eu"},
		{naming.Rules{Product: "my-proxy"}, "9lives.Used", false, true, "my_proxy_9lives_Used"},
		{naming.Rules{Product: "proxy", Bare: []string{"process"}}, "process.cpu-seconds", false, false, "process_cpu_seconds"},
		{naming.Rules{Product: "proxy", Bare: []string{"process"}}, "process", false, false, "proxy_process"},
		{naming.Rules{Product: "proxy", Bare: []string{"own.process"}}, "own.process.cpu", false, false, "own_process_cpu"},
		{naming.Rules{Product: "proxy", Bare: []string{"own.process"}}, "own.processes.cpu", false, false, "proxy_own_processes_cpu"},
		{naming.Rules{Product: "proxy", Namespaces: []string{"own.plugin"}}, "own.plugin.x", false, false, "x"},
		{naming.Rules{Product: "proxy"}, "", false, false, "proxy_"},
		{naming.Rules{Product: "proxy", Namespaces: []string{"a", "plugin"}}, "plugin.Rate.limit-hits", false, false, "Rate_limit_hits"},
		{naming.Rules{Product: "proxy", Namespaces: []string{"plugin"}}, "plugin.9lives", false, false, ""},
		{naming.Rules{Product: "proxy", Namespaces: []string{"plugin"}}, "plugin.", false, false, ""},
		{naming.Rules{Product: "proxy", Namespaces: []string{"plugin"}}, "plugin..x", false, false, "_x"},
		{naming.Rules{Product: "proxy", Namespaces: []string{"plugin"}}, "plugin", false, false, "proxy_plugin"},
		{naming.Rules{Product: "proxy", Namespaces: []string{"plugin"}}, "plugins.x", false, false, "proxy_plugins_x"},
		{naming.Rules{Product: "proxy", Namespaces: []string{"plugin"}}, "plugin.x", true, false, "plugin_x"},
		{naming.Rules{Product: "proxy"}, "a-b.ü:c", true, true, "a_b____c"},
		{naming.Rules{}, "9.rq", true, false, "_9_rq"},
		{naming.Rules{}, "", true, false, "_"},
		{naming.Rules{NetworkPrefix: "in_"}, "9.rq", true, false, "in_9_rq"},
		{naming.Rules{NetworkPrefix: "in_"}, "rq", false, false, "_rq"},
		{naming.Rules{NetworkTotal: true}, "rq", true, true, "rq_total"},
		{naming.Rules{NetworkTotal: true}, "rq.total", true, true, "rq_total"},
		{naming.Rules{NetworkTotal: true}, "total", true, true, "total_total"},
		{naming.Rules{NetworkTotal: true}, "rq", true, false, "rq"},
		{naming.Rules{NetworkTotal: true, Product: "p"}, "rq", false, true, "p_rq"},
		{naming.Rules{NetworkRunes: true}, "9a--ü  b:c", true, false, "_9a____b_c"},
	} {
		got, ok := tt.rules.AppendMetric([]byte("k"), tt.name, tt.network, tt.counter)
		if string(got) != "k"+tt.want || ok != (tt.want != "") {
			t.Errorf("%+v: %q, network %t, counter %t: %q %t, want %q", tt.rules, tt.name, tt.network, tt.counter, got[1:], ok, tt.want)
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
		if got := new(naming.Rules).AppendLabel([]byte("k"), name); string(got) != "k"+want {
			t.Errorf("label of tag %q is %q, want %q", name, got[1:], want)
		}
	}
	taken := [][]byte{[]byte("a"), []byte("exported_a")}
	for name, want := range map[string]string{"a": "exported_exported_a", "b": "b"} {
		if got := naming.DistinctLabel([]byte(name), taken); string(got) != want {
			t.Errorf("beside %q, label %q is called %q, want %q", taken, name, got, want)
		}
	}
}

// TestUTF8Names: only names from the network keep their characters, unless they have control
// characters or bytes that are no UTF-8, or the rules replace characters.
func TestUTF8Names(t *testing.T) {
	runes := naming.Rules{NetworkRunes: true}
	total := naming.Rules{NetworkPrefix: "in.", NetworkTotal: true}
	for _, tt := range []struct {
		rules            naming.Rules
		name             string
		network, counter bool
		metric, label    string
	}{
		{naming.Rules{}, "größe-1.a", true, false, "größe-1.a", "größe-1.a"},
		{naming.Rules{}, "9 b", true, false, "9 b", "9 b"},
		{naming.Rules{}, "größe", false, false, "_gr____e", "gr____e"},
		{naming.Rules{}, "a\x1fb", true, false, "a_b", "a_b"},
		{naming.Rules{}, "a\x7fb", true, false, "a_b", "a_b"},
		{naming.Rules{}, "a b~", true, false, "a b~", "a b~"},
		{naming.Rules{}, "a\xffb", true, false, "a_b", "a_b"},
		{naming.Rules{}, "", true, false, "_", "_"},
		{runes, "a.ü-b", true, false, "a___b", "a____b"},
		{naming.Rules{}, "le", true, false, "le", "exported_le"},
		{naming.Rules{}, "__é", true, false, "__é", "exported___é"},
		{total, "a.b", true, true, "in.a.b_total", "a.b"},
		{total, "a.b", true, false, "in.a.b", "a.b"},
	} {
		metric, ok := tt.rules.AppendMetricUTF8([]byte("k"), []byte(tt.name), tt.network, tt.counter)
		if string(metric) != "k"+tt.metric || !ok {
			t.Errorf("%+v: metric %q, network %t: %q, want %q", tt.rules, tt.name, tt.network, metric[1:], tt.metric)
		}
		if label := tt.rules.AppendLabelUTF8([]byte("k"), tt.name, tt.network); string(label) != "k"+tt.label {
			t.Errorf("%+v: label %q, network %t: %q, want %q", tt.rules, tt.name, tt.network, label[1:], tt.label)
		}
	}
}

// TestSlotsDiffer: names that share a slot would be shown as each other.
func TestSlotsDiffer(t *testing.T) {
	seen := map[int]bool{}
	for _, slot := range []int{
		naming.SlotMetric, naming.SlotMetric + 1, naming.SlotMetric + 2, naming.SlotMetric + 3, naming.SlotLabel,
		naming.SlotLabelUTF8, naming.SlotAttribute, naming.SlotStatsD, naming.SlotGraphite,
	} {
		if seen[slot] || slot < 0 || slot >= naming.Slots {
			t.Errorf("slot %d of %d is used twice or not there", slot, naming.Slots)
		}
		seen[slot] = true
	}
}
