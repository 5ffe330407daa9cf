package render

import (
	"fmt"
	"io"
	"regexp"
	"testing"

	"github.com/statsd-admin/statsd-admin/store"
)

// benchStore returns a store of counters cluster.service_N.stat_M, 100 for
// each service.
func benchStore(names int) *store.Store {
	st := store.New(store.Options{})
	for i := range names / 100 {
		sc := st.Scope(fmt.Sprintf("cluster.service_%d", i))
		for j := range 100 {
			sc.Counter(fmt.Sprintf("upstream_rq_stat_%d", j)).Inc()
		}
	}
	return st
}

// benchPatterns keep 1 % of the names of benchStore.
func benchPatterns() []struct{ name, pattern string } {
	return []struct{ name, pattern string }{
		{"literal", "stat_77"},
		{"suffix", `\.upstream_rq_stat_77$`},
		{"prefix", `^cluster\.service_77`},
		{"regex", `service_\d+\.upstream_.*_77$`},
		{"alternation", `^cluster\.(service_[0-9]+)\.(upstream_rq_stat_77|downstream_.*)$`},
	}
}

func BenchmarkFilter(b *testing.B) {
	const names = 1_000_000
	st := benchStore(names)
	write := func(f *Filter) {
		if err := Text(io.Discard, st, Options{Filter: f}); err != nil {
			b.Fatal(err)
		}
	}
	if err := Text(io.Discard, st, Options{}); err != nil { // makes the order
		b.Fatal(err)
	}
	perName := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/names, "ns/name")
	}
	for _, p := range benchPatterns() {
		filter := func(e Engine) *Filter {
			f, err := NewFilter(e, p.pattern, FilterLimits{Budget: 1 << 40})
			if err != nil {
				b.Fatal(err)
			}
			return f
		}
		b.Run(fmt.Sprintf("pattern=%s/walk=first", p.name), func(b *testing.B) {
			for b.Loop() {
				write(filter(RE2))
			}
			perName(b)
		})
		b.Run(fmt.Sprintf("pattern=%s/walk=repeated", p.name), func(b *testing.B) {
			f := filter(RE2)
			write(f)
			for b.Loop() {
				write(f)
			}
			perName(b)
		})
		b.Run(fmt.Sprintf("pattern=%s/walk=one-new", p.name), func(b *testing.B) {
			f := filter(RE2)
			write(f)
			sc, n := st.Scope("cluster.service_new"), 0
			for b.Loop() {
				n++
				sc.Counter(fmt.Sprintf("%s.%d", b.Name(), n))
				write(f)
			}
			perName(b)
			sc.Close()
		})
		b.Run(fmt.Sprintf("pattern=%s/walk=first-ecmascript", p.name), func(b *testing.B) {
			for b.Loop() {
				write(filter(ECMAScript))
			}
			perName(b)
		})
		b.Run(fmt.Sprintf("pattern=%s/walk=regexp-alone", p.name), func(b *testing.B) {
			re := regexp.MustCompile(p.pattern)
			for b.Loop() {
				v := st.View()
				c := v.ByName(store.Scalars)
				var name []byte
				hits := 0
				for c.Next() {
					name = c.AppendName(name[:0])
					if re.Match(name) {
						hits++
					}
				}
				v.Close()
				if hits == 0 {
					b.Fatal("nothing matches")
				}
			}
			perName(b)
		})
	}
}

// BenchmarkUsedOnly walks a million counters of which one in a hundred is used.
// BenchmarkFilterUnique filters a million names that each have a last segment of their own.
func BenchmarkFilterUnique(b *testing.B) {
	const names = 1_000_000
	st := store.New(store.Options{})
	for i := range names {
		st.Scope(fmt.Sprintf("million.service%03d.requests", i%1000)).Counter(fmt.Sprintf("%06d", i)).Inc()
	}
	if err := Text(io.Discard, st, Options{}); err != nil { // makes the order
		b.Fatal(err)
	}
	for name, pattern := range map[string]string{"literal": "requests[.]09012", "regex": `requests\.0\d*0123$`} {
		b.Run("pattern="+name, func(b *testing.B) {
			for b.Loop() {
				f, err := NewFilter(RE2, pattern, FilterLimits{Budget: 1 << 40})
				if err != nil {
					b.Fatal(err)
				}
				if err := Text(io.Discard, st, Options{Filter: f}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/names, "ns/name")
		})
	}
}

func BenchmarkUsedOnly(b *testing.B) {
	const names = 1_000_000
	st := store.New(store.Options{})
	for i := range names / 100 {
		sc := st.Scope(fmt.Sprintf("cluster.service_%d", i))
		for j := range 100 {
			if c := sc.Counter(fmt.Sprintf("upstream_rq_stat_%d", j)); j == 77 {
				c.Inc()
			}
		}
	}
	for name, write := range map[string]func(io.Writer, *store.Store, Options) error{"text": Text, "json": JSON, "exposition": Exposition} {
		b.Run("form="+name, func(b *testing.B) {
			used := func() {
				if err := write(io.Discard, st, Options{UsedOnly: true}); err != nil {
					b.Fatal(err)
				}
			}
			used() // makes the order
			for b.Loop() {
				used()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/names, "ns/name")
		})
	}
}
