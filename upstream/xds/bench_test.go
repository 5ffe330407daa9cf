package xds

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// BenchmarkClusters applies a response with all clusters: the first one, and one
// that changes a single cluster.
func BenchmarkClusters(b *testing.B) {
	const clusters = 1000
	respond := func(b *testing.B, changed uint32) *response {
		var list []proto.Message
		for i := range clusters {
			c := edsCluster(fmt.Sprintf("cluster-%d", i))
			if i == 0 {
				c = edsCluster("cluster-0", named(fmt.Sprint("service-", changed)))
			}
			list = append(list, c)
		}
		r, err := decodeResponse((&answer{kind: clusterKind, version: fmt.Sprint(changed), resources: list}).encode(b, false), false)
		if err != nil {
			b.Fatal(err)
		}
		return r
	}
	start := func(b *testing.B) *Client {
		st := store.New(store.Options{})
		api := &config.APISource{Type: config.APIGRPC, GRPC: []config.GRPCService{{ClusterName: "control"}}}
		c, err := New(Config{Store: st, Decoder: config.NewDecoder(config.Options{}), ADS: api, CDS: &config.ConfigSource{Kind: config.SourceADS}})
		if err != nil {
			b.Fatal(err)
		}
		m := upstream.New(upstream.Config{Store: st, Source: c.Source})
		b.Cleanup(m.Close)
		c.Attach(m)
		return c
	}
	apply := func(b *testing.B, c *Client, r *response) {
		if _, faults := c.clusters.apply(&r.update); len(faults) > 0 {
			b.Fatal(faults[0].err)
		}
	}
	b.Run("what=first", func(b *testing.B) {
		r := respond(b, 0)
		for b.Loop() {
			b.StopTimer()
			c := start(b)
			b.StartTimer()
			apply(b, c, r)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/clusters, "ns/cluster")
	})
	b.Run("what=one-changed", func(b *testing.B) {
		c := start(b)
		both := [2]*response{respond(b, 1), respond(b, 2)}
		apply(b, c, both[0])
		i := 0
		for b.Loop() {
			i++
			apply(b, c, both[i%2])
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/clusters, "ns/cluster")
	})
}
