package xds

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"google.golang.org/protobuf/proto"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
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
	apply := func(b *testing.B, c *Client, r *response) {
		if _, faults := c.clusters.apply(&r.update); len(faults) > 0 {
			b.Fatal(faults[0].err)
		}
	}
	b.Run("what=first", func(b *testing.B) {
		r := respond(b, 0)
		for b.Loop() {
			b.StopTimer()
			c := quietClient(b)
			b.StartTimer()
			apply(b, c, r)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/clusters, "ns/cluster")
	})
	b.Run("what=one-changed", func(b *testing.B) {
		c := quietClient(b)
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

// quietClient is a client whose aggregated stream does not run.
func quietClient(b *testing.B) *Client {
	st := store.New(store.Options{})
	api := &config.APISource{Type: config.APIGRPC, GRPC: []config.GRPCService{{ClusterName: "control"}}}
	c, err := New(Config{Store: st, Decoder: decode.NewDecoder(decode.Options{}), ADS: api, CDS: &config.ConfigSource{Kind: config.SourceADS}})
	if err != nil {
		b.Fatal(err)
	}
	m := upstream.New(upstream.Config{Store: st, Source: c.Source})
	b.Cleanup(m.Close)
	c.Attach(m)
	return c
}

// BenchmarkHosts handles a response with ten hosts for each cluster, of which one
// cluster's hosts changed.
func BenchmarkHosts(b *testing.B) {
	const clusters = 1000
	c := quietClient(b)
	var list []proto.Message
	for i := range clusters {
		list = append(list, edsCluster(fmt.Sprintf("cluster-%d", i)))
	}
	respond := func(k kind, version string, list []proto.Message) *response {
		r, err := decodeResponse((&answer{kind: k, version: version, resources: list}).encode(b, false), false)
		if err != nil {
			b.Fatal(err)
		}
		return r
	}
	stop := c.ads.follow(newSubscription(clusterKind, "", c.clusters, c.clusters.stats, 0, guard.Guard{}))
	defer stop()
	say := func() {
		c.ads.settle()
		for c.ads.next(false) != nil {
		}
	}
	say()
	if err := c.ads.handle(respond(clusterKind, "1", list)); err != nil {
		b.Fatal(err)
	}
	c.manager.Start()
	for c.ads.followers() < clusters {
		runtime.Gosched()
	}
	say()
	list = list[:0]
	for i := range clusters {
		list = append(list, endpointsOf(fmt.Sprintf("cluster-%d", i), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10))
	}
	both := [2]*response{respond(endpointKind, "1", list), nil}
	list[0] = endpointsOf("cluster-0", 1, 2, 3)
	both[1] = respond(endpointKind, "2", list)
	if err := c.ads.handle(both[0]); err != nil {
		b.Fatal(err)
	}
	i := 0
	for b.Loop() {
		i++
		if err := c.ads.handle(both[i%2]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/clusters, "ns/cluster")
}

// followers counts clusters that follow hosts.
func (m *mux) followers() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.topicLocked(endpointKind).entries {
		n += len(e.subscribers)
	}
	return n
}
