package bench

import (
	"testing"

	"github.com/statsd-admin/statsd-admin/bench/budget"
	"github.com/statsd-admin/statsd-admin/bench/workload"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// BenchmarkCreate creates all counters of a new store. With rules=default the default
// tag rules run on each name.
func BenchmarkCreate(b *testing.B) {
	none, err := tags.New(tags.Config{})
	if err != nil {
		b.Fatal(err)
	}
	sizes(b, func(b *testing.B, n int) {
		names := workload.Clusters(n)
		for _, rules := range []struct {
			name string
			tags *tags.Extractor
		}{{"none", none}, {"default", nil}} {
			b.Run("rules="+rules.name+"/impl=ours", func(b *testing.B) {
				b.ReportAllocs()
				m := budget.StartMeter(b)
				for b.Loop() {
					st := store.New(store.Options{Tags: rules.tags})
					for _, name := range names {
						st.Root().Counter(name)
					}
				}
				perName(b, n)
				m.Report("cpu-ns/name", n)
			})
		}
		// Including the order that the first view sorts.
		b.Run("rules=default/ordered=true/impl=ours", func(b *testing.B) {
			m := budget.StartMeter(b)
			for b.Loop() {
				st := store.New(store.Options{})
				for _, name := range names {
					st.Root().Counter(name)
				}
				v := st.View()
				v.ByName(store.Scalars)
				v.Close()
			}
			perName(b, n)
			m.Report("cpu-ns/name", n)
		})
		b.Run("impl=append", func(b *testing.B) {
			m := budget.StartMeter(b)
			for b.Loop() {
				var all []byte
				var at []uint32
				for _, name := range names {
					at = append(at, uint32(len(all)))
					all = append(all, name...)
				}
				keepAlive(all, at)
			}
			perName(b, n)
			m.Report("cpu-ns/name", n)
		})
		b.Run("impl=map", func(b *testing.B) {
			m := budget.StartMeter(b)
			for b.Loop() {
				m := map[string]*uint64{}
				for _, name := range names {
					m[string([]byte(name))] = new(uint64)
				}
			}
			perName(b, n)
			m.Report("cpu-ns/name", n)
		})
	})
}

// BenchmarkCreateInto adds names to a large store and opens a view after each, so
// that the orders are kept up to date.
func BenchmarkCreateInto(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		st := store.New(store.Options{})
		for _, name := range workload.Clusters(n) {
			st.Root().Counter(name)
		}
		more := workload.Dynamic(1 << 20)
		look := func() {
			v := st.View()
			v.ByName(store.Scalars)
			v.Close()
		}
		look()
		i := 0
		b.ResetTimer()
		for b.Loop() {
			if i == len(more) {
				b.Fatal("out of names")
			}
			st.Root().Counter(more[i])
			i++
			look()
		}
	})
}
