package render

import (
	"bytes"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

func TestDescriptionsAreShown(t *testing.T) {
	st := newStore(store.Options{Product: "p"})
	st.Describe("cluster.rx_bytes", store.Description{Help: "Bytes \\ \"read\"\nfrom hosts.", Unit: "bytes"})
	st.Describe("cpu_seconds_total", store.Description{Help: "CPU.", Unit: "seconds", Counter: true})
	st.Describe("time", store.Description{Help: "Time.", Unit: "ms"})
	st.Root().Gauge("cluster.a.rx_bytes").Set(1)
	st.Root().Gauge("cluster.b.rx_bytes").Set(2)
	_ = st.Root().FloatGauge("cpu_seconds_total").Set(1.5)
	st.Root().Counter("time").Inc()
	st.Root().Counter("zz").Inc()
	net := st.ScopeWith("", store.ScopeOptions{Network: true})
	net.Counter("time").Inc()
	net.Counter("y_total").Inc()
	net.Counter("x", tags.Tag{Name: "k", Value: "v"}).Inc()
	for _, tt := range []struct {
		f    func(*bytes.Buffer) error
		want []string
		not  []string
	}{
		{func(b *bytes.Buffer) error { return Exposition(b, st, Options{}) }, []string{
			"# HELP p_cluster_rx_bytes Bytes \\\\ \"read\"\\nfrom hosts.\n# TYPE p_cluster_rx_bytes gauge\np_cluster_rx_bytes{p_cluster_name=\"a\"} 1\np_cluster_rx_bytes{p_cluster_name=\"b\"} 2\n",
			"# HELP p_cpu_seconds_total CPU.\n# TYPE p_cpu_seconds_total counter\np_cpu_seconds_total{} 1.5\n",
			"# HELP p_time Time.\n# TYPE p_time counter\n", "# TYPE time counter\ntime{} 1\n",
		}, []string{"# UNIT", "# HELP time", "# HELP x", "# HELP p_zz"}},
		{func(b *bytes.Buffer) error { return OpenMetrics(b, st, Options{}) }, []string{
			"# HELP p_cluster_rx_bytes Bytes \\\\ \\\"read\\\"\\nfrom hosts.\n# TYPE p_cluster_rx_bytes gauge\n# UNIT p_cluster_rx_bytes bytes\n",
			"# HELP p_cpu_seconds CPU.\n# TYPE p_cpu_seconds counter\n# UNIT p_cpu_seconds seconds\np_cpu_seconds_total{} 1.5\n",
			"# HELP p_time Time.\n# TYPE p_time unknown\n", "# TYPE y counter\ny_total{} 1\n",
		}, []string{"# UNIT p_time", "# HELP x"}},
		{func(b *bytes.Buffer) error { return Protobuf(b, st, Options{}) }, []string{
			"p_cluster_rx_bytes\x12\x1aBytes \\ \"read\"\nfrom hosts.\x18\x01\x2a\x05bytes",
			"p_cpu_seconds_total\x12\x04CPU.\x18\x00\x2a\x07seconds",
		}, nil},
	} {
		var b bytes.Buffer
		if err := tt.f(&b); err != nil {
			t.Fatal(err)
		}
		for _, want := range tt.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("no %q in\n%s", want, b.String())
			}
		}
		for _, not := range tt.not {
			if strings.Contains(b.String(), not) {
				t.Errorf("%q in\n%s", not, b.String())
			}
		}
	}
}
