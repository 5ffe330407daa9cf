package bootstrap

import (
	"reflect"
	"testing"

	"github.com/statsd-admin/statsd-admin/flush/statsdsink"
)

func TestStatsDSinks(t *testing.T) {
	c, err := Parse("a.yaml", []byte(`
sinks:
- statsd: {address: "localhost:8125"}
- {name: local, statsd: {protocol: unixgram, address: /run/s, format: dogstatsd, prefix: edge, max_packet_bytes: 4KiB}}
stats_sinks:
- name: envoy.stat_sinks.statsd
  typed_config: {"@type": type.googleapis.com/envoy.config.metrics.v3.StatsdSink, address: {socket_address: {address: 127.0.0.1, port_value: 9125}}}
- name: envoy.stat_sinks.dog_statsd
  typed_config: {address: {pipe: {path: /run/d}}, prefix: p, max_bytes_per_datagram: 1400}
- name: envoy.stat_sinks.graphite_statsd
  typed_config: {address: {socket_address: {address: "::1", port_value: 1}}}
- name: envoy.stat_sinks.statsd
  typed_config: {tcp_cluster_name: there}
`), Options{Product: "edge"})
	if err != nil {
		t.Fatal(err)
	}
	want := []statsdsink.Config{
		{Name: "statsd", Network: statsdsink.UDP, Address: "localhost:8125", Format: statsdsink.Plain},
		{Name: "local", Network: statsdsink.Unixgram, Address: "/run/s", Format: statsdsink.DogStatsD, Prefix: "edge", PacketBytes: 4096},
		{Name: "statsd_2", Network: statsdsink.UDP, Address: "127.0.0.1:9125", Format: statsdsink.Plain, Prefix: "edge", ZeroDeltas: true, PacketBytes: 1},
		{Name: "dog_statsd", Network: statsdsink.Unixgram, Address: "/run/d", Format: statsdsink.DogStatsD, Prefix: "p", ZeroDeltas: true, PacketBytes: 1400},
		{Name: "graphite_statsd", Network: statsdsink.UDP, Address: "[::1]:1", Format: statsdsink.Graphite, Prefix: "edge", ZeroDeltas: true, PacketBytes: 1},
	}
	got := statsdSinks(c)
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("sink %d: got %+v\nwant %+v", i, got[min(i, len(got)-1)], want[min(i, len(want)-1)])
		}
	}
	if len(c.Warnings) != 1 {
		t.Errorf("warnings %q, want one about tcp_cluster_name", c.Warnings)
	}
}
