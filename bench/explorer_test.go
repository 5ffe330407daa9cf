package bench

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/admin/pages"
	"github.com/statsd-admin/statsd-admin/bench/budget"
	"github.com/statsd-admin/statsd-admin/bench/workload"
	"github.com/statsd-admin/statsd-admin/store"
)

// BenchmarkExplore groups the names under a prefix, or the values of a tag. Stats are
// created in no order; 1 % of them, all over the index, have a rate, and the last 1 %
// are new. asked=new creates 1,000 stats all over the index before each question, and
// asked=first makes an explorer for each. With kinds=two, there are histograms as well.
// impl=walk groups by a walk over all names. page=yes views the page after a
// first view, which is measured by itself, as is what it begins in the background.
func BenchmarkExplore(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		now := time.Now()
		st := store.New(store.Options{Now: func() time.Time { return now }})
		names := workload.Clusters(n)
		workload.Spread(names)
		var changed []uint64
		for i, name := range names {
			if i == n-n/100 {
				now = now.Add(time.Hour)
			}
			st.Root().Counter(name)
		}
		var samples []store.Sampled
		for _, name := range names[:100] {
			samples = append(samples, store.Sampled{Name: name, PerSecond: 1})
		}
		v := st.View()
		k := 0
		for c := v.ByName(store.Scalars); c.Next(); k++ {
			if k%100 == 0 {
				changed = append(changed, c.Ref())
			}
		}
		v.Close()
		b.Run("page=yes/impl=ours", func(b *testing.B) { firstView(b, st) })
		x := st.NewExplorer()
		ask := func(b *testing.B, q store.Explore, before func()) {
			b.ReportAllocs()
			q.Limit, q.Since, q.Samples = 50, now.Add(-time.Minute), samples
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
		b.Run("prefix=none/by=series/asked=first/impl=ours", func(b *testing.B) {
			m := budget.StartMeter(b)
			for b.Loop() {
				if _, err := st.NewExplorer().Explore(store.Explore{Limit: 50}); err != nil {
					b.Fatal(err)
				}
			}
			m.Report("cpu-ns/op", 1)
		})
		service := names[0][:strings.LastIndexByte(names[0], '.')+1]
		b.Run("prefix=none/by=series/impl=ours", func(b *testing.B) { ask(b, store.Explore{}, nil) })
		orders := []string{store.BySeries: "series", store.ByNew: "new", store.ByRate: "rate", store.BySamples: "samples", store.ByBytes: "bytes", store.ByName: "name"}
		for by, name := range orders {
			b.Run("prefix=wide/by="+name+"/impl=ours", func(b *testing.B) { ask(b, store.Explore{Prefix: "cluster.", By: store.By(by)}, nil) })
		}
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
		for by, name := range orders {
			if store.By(by) != store.BySamples {
				b.Run("tag=one/by="+name+"/impl=ours", func(b *testing.B) { ask(b, store.Explore{Tag: all.Tags[0].Name, By: store.By(by)}, nil) })
			}
		}
		for i := 0; i < n; i += 100 { // for each service
			name := names[i*7919%n]
			st.Root().Histogram(name[:strings.LastIndexByte(name, '.')+1]+"time"+strconv.Itoa(i), store.Milliseconds)
		}
		b.Run("kinds=two/prefix=wide/by=bytes/impl=ours", func(b *testing.B) { ask(b, store.Explore{Prefix: "cluster.", By: store.ByBytes}, nil) })
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

// firstView measures views of the explorer's page. The first can be measured once.
func firstView(b *testing.B, st *store.Store) {
	srv, err := admin.New(admin.Config{Store: st})
	if err != nil {
		b.Fatal(err)
	}
	if err := pages.Add(srv); err != nil {
		b.Fatal(err)
	}
	view := func() {
		if r := srv.Request("GET", "/ui/explorer?prefix=cluster.", nil); r.Status != 200 {
			b.Fatal(r.Status)
		}
	}
	start, cpu := time.Now(), budget.ProcessTime()
	view()
	first := time.Since(start)
	for !srv.ExploreReady("") {
		time.Sleep(time.Millisecond)
	}
	prepare := budget.ProcessTime() - cpu
	m := budget.StartMeter(b)
	for b.Loop() {
		view()
	}
	m.Report("cpu-ns/op", 1)
	b.ReportMetric(float64(first), "first-ns")
	b.ReportMetric(float64(prepare), "prepare-cpu-ns")
}
