package bench

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/bench/budget"
	"github.com/statsd-admin/statsd-admin/bench/workload"
	"github.com/statsd-admin/statsd-admin/store"
)

// BenchmarkExplore groups the names under a prefix, 1 % of which have a rate, or the
// values of a tag. Stats are created in no order. asked=new creates 1,000 stats all
// over the index before each question. impl=walk groups by a walk over all names.
func BenchmarkExplore(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		st := store.New(store.Options{})
		names := workload.Clusters(n)
		workload.Spread(names)
		var changed []uint64
		for _, name := range names {
			st.Root().Counter(name)
		}
		v := st.View()
		k := 0
		for c := v.ByName(store.Scalars); c.Next(); k++ {
			if k%100 == 0 {
				changed = append(changed, c.Ref())
			}
		}
		v.Close()
		x := st.NewExplorer()
		ask := func(b *testing.B, q store.Explore, before func()) {
			b.ReportAllocs()
			q.Limit, q.Since = 50, time.Now().Add(-time.Minute)
			q.Rates = func(yield func(uint64, float64) bool) {
				for _, ref := range changed {
					if !yield(ref, 1) {
						return
					}
				}
			}
			if _, err := x.Explore(q); err != nil {
				b.Fatal(err)
			}
			m := budget.StartMeter(b)
			for b.Loop() {
				if before != nil {
					b.StopTimer()
					m.Stop()
					before()
					m.Start()
					b.StartTimer()
				}
				got, err := x.Explore(q)
				if err != nil || len(got.Groups) == 0 {
					b.Fatal(got, err)
				}
			}
			m.Report("cpu-ns/op", 1)
		}
		service := names[0][:strings.LastIndexByte(names[0], '.')+1]
		b.Run("prefix=none/by=series/impl=ours", func(b *testing.B) { ask(b, store.Explore{}, nil) })
		b.Run("prefix=wide/by=series/impl=ours", func(b *testing.B) { ask(b, store.Explore{Prefix: "cluster."}, nil) })
		b.Run("prefix=wide/by=bytes/impl=ours", func(b *testing.B) { ask(b, store.Explore{Prefix: "cluster.", By: store.ByBytes}, nil) })
		b.Run("prefix=wide/by=rate/impl=ours", func(b *testing.B) { ask(b, store.Explore{Prefix: "cluster.", By: store.ByRate}, nil) })
		b.Run("prefix=wide/by=new/impl=ours", func(b *testing.B) { ask(b, store.Explore{Prefix: "cluster.", By: store.ByNew}, nil) })
		b.Run("prefix=service/by=rate/impl=ours", func(b *testing.B) { ask(b, store.Explore{Prefix: service, By: store.ByRate}, nil) })
		b.Run("tags=all/impl=ours", func(b *testing.B) { ask(b, store.Explore{Prefix: "cluster.", Tags: true}, nil) })
		created := 0
		b.Run("prefix=wide/by=new/asked=new/impl=ours", func(b *testing.B) {
			ask(b, store.Explore{Prefix: "cluster.", By: store.ByNew}, func() {
				for range 1000 {
					created++
					st.Root().Counter(names[created*7919%len(names)] + "_" + strconv.Itoa(created))
				}
				v := st.View() // the index is not part of the explorer
				for _, set := range []store.NameSet{store.Texts, store.Scalars, store.Histograms} {
					v.ByName(set)
				}
				v.Close()
			})
		})
		all, err := x.Explore(store.Explore{Tags: true})
		if err != nil || len(all.Tags) == 0 {
			b.Fatal(all.Tags, err)
		}
		b.Run("tag=one/impl=ours", func(b *testing.B) { ask(b, store.Explore{Tag: all.Tags[0].Name}, nil) })
		b.Run("prefix=wide/by=series/impl=walk", func(b *testing.B) {
			m := budget.StartMeter(b)
			for b.Loop() {
				groups := make(map[string]int)
				v := st.View()
				var name []byte
				for c := v.ByName(store.Scalars); c.Next(); {
					name = c.AppendName(name[:0])
					rest := name[len("cluster."):]
					for i, ch := range rest {
						if ch == '.' {
							rest = rest[:i]
							break
						}
					}
					groups[string(rest)]++
				}
				v.Close()
			}
			m.Report("cpu-ns/op", 1)
		})
		b.Run("memory", func(b *testing.B) {
			for b.Loop() {
			}
			b.ReportMetric(float64(x.Bytes())/float64(n), "B/stat")
		})
	})
}
