package clients

import (
	"testing"

	"github.com/DataDog/datadog-go/v5/statsd"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

// TestFloodIsAccountedFor sends more datagrams than a small socket buffer holds. Each
// is either read and counted, or reported as dropped by the kernel, even if no
// datagram follows it.
func TestFloodIsAccountedFor(t *testing.T) {
	d := daemon.Start(t, daemon.Config{YAML: `
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
stats_flush_interval: 0.2s
statsd:
  listeners: [{name: udp, address: "udp://127.0.0.1:0", rcvbuf: 4096, readers: 1}]
`})
	lost := false
	var sent float64
	for round := 0; round < 20 && !lost; round++ {
		c := connect(t, d.Address("udp"), []statsd.Option{
			statsd.WithTelemetryAddr(elsewhere(t)), statsd.WithoutOriginDetection(), statsd.WithoutClientSideAggregation(),
			statsd.WithMaxMessagesPerPayload(1), statsd.WithSenderQueueSize(100_000), statsd.WithMutexMode(),
		})
		for range 20_000 {
			if err := c.Incr("flood", nil, 1); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		tel := c.GetTelemetry()
		sent += float64(tel.TotalPayloadsSent)
		s := d.Wait("every datagram to be read or dropped", func(s daemon.Stats) bool {
			return s.Number("ingest.packets.listener.udp")+s.Number("ingest.kernel_drops.listener.udp") == sent
		})
		if got, want := s.Number("flood"), s.Number("ingest.packets.listener.udp"); got != want {
			t.Fatalf("%v increments out of %v datagrams", got, want)
		}
		lost = s.Number("ingest.kernel_drops.listener.udp") > 0
		if lost {
			t.Logf("of %v datagrams %v were dropped", sent, s.Number("ingest.kernel_drops.listener.udp"))
		}
	}
	if !lost {
		t.Errorf("nothing was dropped of %v datagrams: the buffer is not small", sent)
	}
}
