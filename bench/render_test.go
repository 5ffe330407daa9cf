package bench

import (
	"fmt"
	"io"
	"net"
	"regexp"
	"testing"

	"github.com/statsd-admin/statsd-admin/bench/budget"
	"github.com/statsd-admin/statsd-admin/bench/workload"
	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
)

// format is a named renderer.
type format struct {
	name   string
	render func(io.Writer, *store.Store, render.Options) error
}

func formats() []format {
	return []format{
		{"text", render.Text},
		{"json", render.JSON},
		{"exposition", render.Exposition},
		{"openmetrics", render.OpenMetrics},
		{"protobuf", render.Protobuf},
	}
}

// count is a writer that discards its input.
type count int

func (c *count) Write(p []byte) (int, error) {
	*c += count(len(p))
	return len(p), nil
}

func must(b testing.TB, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// clusters returns a store with n counters whose values have several digits.
func clusters(n int) (*store.Store, []*store.Counter) {
	st := store.New(store.Options{})
	cs := make([]*store.Counter, n)
	for i, name := range workload.Clusters(n) {
		cs[i] = st.Root().Counter(name)
		cs[i].Add(uint64(i) * 7)
	}
	return st, cs
}

// memmove copies size bytes piece by piece through a buffer of 64 KiB.
func memmove(b *testing.B, size, pieces int) {
	from := make([]byte, 1<<20)
	buf := make([]byte, 0, 64<<10)
	piece := size / pieces
	for b.Loop() {
		at := 0
		for range pieces {
			if len(buf)+piece > cap(buf) {
				buf = buf[:0]
			}
			if at+piece > len(from) {
				at = 0
			}
			buf = append(buf, from[at:at+piece]...)
			at += piece
		}
	}
	keepAlive(buf)
}

// BenchmarkRender writes all counters of a store into a discarding writer. B/op is
// the extra memory of a request.
func BenchmarkRender(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		st, _ := clusters(n)
		for _, f := range formats() {
			var size count
			must(b, f.render(&size, st, render.Options{}))
			b.Run("format="+f.name+"/impl=ours", func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(size))
				m := budget.StartMeter(b)
				for b.Loop() {
					must(b, f.render(io.Discard, st, render.Options{}))
				}
				perName(b, n)
				m.Report("cpu-ns/name", n)
			})
			b.Run("format="+f.name+"/impl=memmove", func(b *testing.B) {
				b.SetBytes(int64(size))
				m := budget.StartMeter(b)
				memmove(b, int(size), n)
				perName(b, n)
				m.Report("cpu-ns/name", n)
			})
		}
	})
}

// BenchmarkWalk visits each counter and only reads its value (order=name,
// order=family) or rejects its name (judge=none). Renderers and filters cannot be
// faster without another memory order.
func BenchmarkWalk(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		st, _ := clusters(n)
		walk := func(name string, begin func(v *store.View) store.Cursor, visits int) {
			b.Run(name+"/impl=ours", func(b *testing.B) {
				b.ReportAllocs()
				var sum float64
				m := budget.StartMeter(b)
				for b.Loop() {
					v := st.View()
					visited := 0
					c := begin(v)
					for c.Next() {
						sum += c.Float()
						visited++
					}
					v.Close()
					if visited != visits {
						b.Fatalf("%d stats were visited, want %d", visited, visits)
					}
				}
				perName(b, n)
				m.Report("cpu-ns/name", n)
				keepAlive(sum)
			})
		}
		walk("order=name", func(v *store.View) store.Cursor { return v.ByName(store.Scalars) }, n)
		walk("order=family", func(v *store.View) store.Cursor { return v.ByFamily(store.KindCounter) }, n)
		walk("judge=none", func(v *store.View) store.Cursor {
			return v.ByNameIn(store.Scalars, new(store.Selection), func(*store.Cursor) (bool, error) { return false, nil })
		}, 0)
	})
}

// BenchmarkRenderSocket writes them over loopback to a client that discards them.
func BenchmarkRenderSocket(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		st, _ := clusters(n)
		for _, f := range formats()[:3] {
			b.Run("format="+f.name+"/impl=ours", func(b *testing.B) {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				must(b, err)
				defer l.Close()
				done := make(chan error)
				go func() {
					c, err := l.Accept()
					if err == nil {
						buf := make([]byte, 256<<10)
						for err == nil {
							_, err = c.Read(buf)
						}
						c.Close()
					}
					done <- err
				}()
				c, err := net.Dial("tcp", l.Addr().String())
				must(b, err)
				b.ResetTimer()
				for b.Loop() {
					must(b, f.render(c, st, render.Options{}))
				}
				b.StopTimer()
				perName(b, n)
				c.Close()
				if err := <-done; err != io.EOF {
					b.Fatal(err)
				}
			})
		}
	})
}

// BenchmarkRenderHistograms writes 10,000 histograms in use.
func BenchmarkRenderHistograms(b *testing.B) {
	n := 10_000
	if testing.Short() {
		n = 100
	}
	st := store.New(store.Options{})
	names := workload.Clusters(n)
	values := workload.Lognormal(1000+n, 3)
	for i, name := range names {
		h := st.Root().Histogram(name, store.Milliseconds)
		for _, v := range values[i : i+1000] {
			h.Record(v)
		}
	}
	st.Flush(store.FlushOptions{}).Close()
	for _, f := range formats() {
		b.Run("format="+f.name+"/impl=ours", func(b *testing.B) {
			b.ReportAllocs()
			m := budget.StartMeter(b)
			for b.Loop() {
				must(b, f.render(io.Discard, st, render.Options{}))
			}
			perName(b, n)
			m.Report("cpu-ns/name", n)
		})
	}
	b.Run("format=summary/impl=ours", func(b *testing.B) {
		m := budget.StartMeter(b)
		for b.Loop() {
			must(b, render.Exposition(io.Discard, st, render.Options{Buckets: render.Summary}))
		}
		perName(b, n)
		m.Report("cpu-ns/name", n)
	})
}

// BenchmarkFilter keeps 1 % of the names of a store. The first request with a pattern
// matches all names, a repeated one none.
func BenchmarkFilter(b *testing.B) {
	patterns := []struct {
		name    string
		engine  render.Engine
		pattern string
	}{
		{"literal", render.RE2, `statistic_77`},
		{"re2", render.RE2, `service_\d+\.upstream_.*_(77|x)$`},
		{"re2-no-literal", render.RE2, `_[7][7]$`},
		{"re2-none", render.RE2, `^(absent|missing)_\d+`},
		{"ecmascript", render.ECMAScript, `service_\d+\.upstream_.*_(?=77)`},
	}
	sizes(b, func(b *testing.B, n int) {
		st, _ := clusters(n)
		must(b, render.Text(io.Discard, st, render.Options{}))
		names := workload.Clusters(n)
		for _, p := range patterns {
			filter := func(b *testing.B) *render.Filter {
				f, err := render.NewFilter(p.engine, p.pattern, render.FilterLimits{Budget: 1 << 40})
				must(b, err)
				return f
			}
			b.Run("pattern="+p.name+"/asked=first/impl=ours", func(b *testing.B) {
				b.ReportAllocs()
				m := budget.StartMeter(b)
				for b.Loop() {
					must(b, render.Text(io.Discard, st, render.Options{Filter: filter(b)}))
				}
				perName(b, n)
				m.Report("cpu-ns/name", n)
			})
			b.Run("pattern="+p.name+"/asked=again/impl=ours", func(b *testing.B) {
				b.ReportAllocs()
				f := filter(b)
				must(b, render.Text(io.Discard, st, render.Options{Filter: f}))
				m := budget.StartMeter(b)
				for b.Loop() {
					must(b, render.Text(io.Discard, st, render.Options{Filter: f}))
				}
				perName(b, n)
				m.Report("cpu-ns/name", n)
			})
			if p.engine == render.RE2 {
				b.Run("pattern="+p.name+"/asked=first/impl=regexp", func(b *testing.B) {
					re := regexp.MustCompile(p.pattern)
					hits := 0
					m := budget.StartMeter(b)
					for b.Loop() {
						for _, name := range names {
							if re.MatchString(name) {
								hits++
							}
						}
					}
					perName(b, n)
					m.Report("cpu-ns/name", n)
					keepAlive(hits)
				})
			}
		}
	})
}

// BenchmarkFilterDistinct is BenchmarkFilter for names whose last segments are all
// different.
func BenchmarkFilterDistinct(b *testing.B) {
	n := loadNames()
	st := store.New(store.Options{})
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("svc%d.handler%d.requests.total.%d", i%97, i%1009, i)
		st.Root().Counter(names[i])
	}
	must(b, render.Text(io.Discard, st, render.Options{}))
	for _, pattern := range []string{"total.77", `_[7][7]$`} {
		b.Run("pattern="+pattern, func(b *testing.B) {
			for b.Loop() {
				f, err := render.NewFilter(render.RE2, pattern, render.FilterLimits{Budget: 1 << 40})
				must(b, err)
				must(b, render.Text(io.Discard, st, render.Options{Filter: f}))
			}
			perName(b, n)
		})
	}
	b.Run("pattern=none", func(b *testing.B) {
		for b.Loop() {
			must(b, render.Text(io.Discard, st, render.Options{}))
		}
		perName(b, n)
	})
}
