package sinks

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

// TestNamesThatDoNotResolve has sinks of all kinds whose receiver has no address: what
// they have is certainly not delivered, waits, and is in the log in the end.
func TestNamesThatDoNotResolve(t *testing.T) {
	kinds := map[string]string{
		"statsd":    `statsd: {protocol: tcp, address: "nowhere.invalid:1"}`,
		"datagrams": `statsd: {protocol: udp, address: "nowhere.invalid:1"}`,
		"graphite":  `graphite: {address: "nowhere.invalid:1"}`,
		"http":      `otlp: {url: "http://nowhere.invalid:1", temporality: delta}`,
		"grpc":      `otlp: {url: "http://nowhere.invalid:1", temporality: delta, protocol: grpc}`,
		"metrics":   `metrics_service: {url: "http://nowhere.invalid:1", temporality: delta}`,
		"written":   `remote_write: {url: "http://nowhere.invalid:1"}`,
	}
	var sinks string
	for name, kind := range kinds {
		sinks += fmt.Sprintf("- {name: %s, filters: {include: [{prefix: shop.}]}, %s}\n", name, kind)
	}
	d := start(t, "0s", sinks)
	send(t, d, "shop.orders:7|c", "shop.orders:4|c")
	for name := range kinds {
		s := d.Wait("failed attempts of "+name, func(s daemon.Stats) bool {
			return s.Number("sink.send_errors.sink."+name) > 0 && s.Number("sink.queue_bytes.sink."+name) > 0
		})
		if s.Number("sink.packets.sink."+name) != 0 || s.Number("sink.ambiguous_packets.sink."+name) != 0 || s.Number("sink.lost_packets.sink."+name) != 0 {
			t.Errorf("%s: %v", name, s)
		}
	}
	d.Signal(syscall.SIGTERM)
	if status := d.Exit(); status != 0 {
		t.Errorf("status %d", status)
	}
	for name := range kinds {
		want := "increments=11"
		if name == "written" { // totals
			want = "increments=0"
		}
		found := false
		for line := range strings.Lines(d.Output()) {
			found = found || strings.Contains(line, "sink: stopped with unsent data") && strings.Contains(line, "sink="+name+" ") && strings.Contains(line, want)
		}
		if !found {
			t.Errorf("the log does not say what %s has lost", name)
		}
	}
}
