package decode_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// BenchmarkCluster measures one cluster of usual size, by the way it comes in.
func BenchmarkCluster(b *testing.B) {
	d := newDecoder()
	text := []byte("name: c\ntype: STRICT_DNS\nconnect_timeout: 0.25s\nlb_policy: LEAST_REQUEST\n" +
		"load_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [" +
		strings.Repeat("{endpoint: {address: {socket_address: {address: a.example, port_value: 80}}}},", 3) + "]}]}\n" +
		"health_checks: [{timeout: 1s, interval: 5s, healthy_threshold: 2, unhealthy_threshold: 3, http_health_check: {path: /ready}}]\n" +
		"circuit_breakers: {thresholds: [{max_connections: 100}]}\noutlier_detection: {}\n")
	for _, form := range []config.Form{config.FormV3, config.FormV2} {
		p, err := d.ClusterText("", text, form)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("from=text/form=%d", form), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.ClusterText("", text, form); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("from=wire/form=%d", form), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.ClusterWire(p.TypeURL(), p.Any().Value, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkAssignment measures a load assignment from the wire by its size.
func BenchmarkAssignment(b *testing.B) {
	d := newDecoder()
	for _, n := range []int{10, 10000} {
		var text strings.Builder
		text.WriteString("cluster_name: c\nendpoints:\n- lb_endpoints:\n")
		for i := range n {
			fmt.Fprintf(&text, "  - {endpoint: {address: {socket_address: {address: 10.0.%d.%d, port_value: 80}}}}\n", i/256%256, i%256)
		}
		p, err := d.AssignmentText("", []byte(text.String()), config.FormV3)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("endpoints=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.AssignmentWire(p.TypeURL(), p.Any().Value, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
