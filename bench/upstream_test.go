package bench

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// fleet is the number of clusters, and of hosts in each.
type fleet struct{ clusters, hosts int }

func (f fleet) String() string { return fmt.Sprintf("clusters=%d/hosts=%d", f.clusters, f.hosts) }

func fleets() []fleet {
	if testing.Short() {
		return []fleet{{20, 10}}
	}
	return []fleet{{1000, 10}, {10_000, 10}, {10, 10_000}}
}

// texts returns the configurations of a fleet.
func (f fleet) texts() [][]byte {
	out := make([][]byte, f.clusters)
	for i := range out {
		out[i] = []byte(clusterText(fmt.Sprintf("cluster_%06d", i), f.hosts))
	}
	return out
}

// decode decodes the texts.
func (f fleet) decode(b *testing.B, texts [][]byte) []*decode.ParsedCluster {
	b.Helper()
	d := decode.NewDecoder(decode.Options{})
	out := make([]*decode.ParsedCluster, len(texts))
	for i, text := range texts {
		p, err := d.ClusterText("bench.yaml", text, config.FormV3)
		if err != nil {
			b.Fatal(err)
		}
		out[i] = p
	}
	return out
}

// run creates the clusters and starts them.
func (f fleet) run(b *testing.B, parsed []*decode.ParsedCluster) *upstream.Manager {
	b.Helper()
	m := upstream.New(upstream.Config{Store: store.New(store.Options{})})
	for _, p := range parsed {
		if err := m.AddStatic(p); err != nil {
			b.Fatal(err)
		}
	}
	m.Start()
	<-m.Ready()
	return m
}

// BenchmarkFleet creates clusters from checked configurations, with all their
// statistics, breakers, balancers and hosts, until all are ready for picks. The heap
// memory reported excludes the configurations.
func BenchmarkFleet(b *testing.B) {
	for _, f := range fleets() {
		b.Run(f.String(), func(b *testing.B) {
			parsed := f.decode(b, f.texts())
			var bytes, objects float64
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				before, objectsBefore := heap()
				b.StartTimer()
				m := f.run(b, parsed)
				b.StopTimer()
				after, objectsAfter := heap()
				bytes, objects = float64(int64(after-before)), float64(int64(objectsAfter-objectsBefore))
				m.Close()
				b.StartTimer()
			}
			n, perHost := float64(f.clusters), float64(f.clusters*f.hosts)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/cluster")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/perHost, "ns/host")
			b.ReportMetric(bytes/n, "B/cluster")
			b.ReportMetric(bytes/perHost, "B/host")
			b.ReportMetric(objects/n, "objects/cluster")
			b.ReportMetric(objects/perHost, "objects/host")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkFleetText decodes the texts of a fleet and reports the heap memory of the
// results.
func BenchmarkFleetText(b *testing.B) {
	for _, f := range fleets() {
		b.Run(f.String(), func(b *testing.B) {
			texts := f.texts()
			b.ReportAllocs()
			var bytes, objects float64
			for range b.N {
				b.StopTimer()
				before, objectsBefore := heap()
				b.StartTimer()
				parsed := f.decode(b, texts)
				b.StopTimer()
				after, objectsAfter := heap()
				bytes, objects = float64(int64(after-before)), float64(int64(objectsAfter-objectsBefore))
				keepAlive(parsed)
				b.StartTimer()
			}
			perHost := float64(f.clusters * f.hosts)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/perHost, "ns/host")
			b.ReportMetric(bytes/perHost, "B/host")
			b.ReportMetric(objects/perHost, "objects/host")
		})
	}
}

// BenchmarkPick picks hosts of all clusters in turn, alone and while other goroutines
// read the status of everything in a loop.
func BenchmarkPick(b *testing.B) {
	f := fleet{10_000, 10}
	if testing.Short() {
		f.clusters = 20
	}
	m := f.run(b, f.decode(b, f.texts()))
	defer m.Close()
	handles := make([]*upstream.Handle, f.clusters)
	for i := range handles {
		handles[i] = m.Cluster(fmt.Sprintf("cluster_%06d", i))
	}
	for _, viewers := range []int{0, 1, 2} {
		for _, of := range []int{1, f.clusters} {
			b.Run(fmt.Sprintf("clusters=%d/viewers=%d", of, viewers), func(b *testing.B) {
				b.ReportAllocs()
				var stop atomic.Bool
				var running sync.WaitGroup
				var shown atomic.Uint64
				for range viewers {
					running.Go(func() {
						var line []byte
						for !stop.Load() {
							line = line[:0]
							m.Clusters(func(v *upstream.View) bool {
								v.Hosts(func(h *host.Host) bool {
									line = appendHost(line[:0], v, h)
									return true
								})
								return !stop.Load()
							})
							shown.Add(1)
						}
					})
				}
				b.RunParallel(func(pb *testing.PB) {
					i := 0
					for pb.Next() {
						i++
						if h, err := handles[i%of].Current().Pick(nil); err != nil || h == nil {
							b.Error(err)
							return
						}
					}
				})
				stop.Store(true)
				running.Wait()
				if viewers > 0 && shown.Load() == 0 {
					b.Error("no client read the clusters")
				}
			})
		}
	}
}

// appendHost appends the status of a host.
func appendHost(dst []byte, v *upstream.View, h *host.Host) []byte {
	dst = append(append(dst, v.Name...), h.AddressText()...)
	for _, s := range h.Stats.All() {
		dst = strconv.AppendUint(append(dst, s.Name...), s.Value, 10)
	}
	dst = h.Flags().AppendText(dst)
	return strconv.AppendUint(dst, uint64(h.Weight()), 10)
}
