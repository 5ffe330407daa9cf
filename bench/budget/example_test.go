package budget_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/statsd-admin/statsd-admin/bench/budget"
	"github.com/statsd-admin/statsd-admin/store"
)

// route stands for the fast path of a proxy: choose an upstream and count.
type route struct {
	prefixes []string
	chosen   []*store.Counter
}

func newRoute(st *store.Store, prefixes ...string) *route {
	r := &route{prefixes: prefixes}
	for _, p := range prefixes {
		r.chosen = append(r.chosen, st.Root().Counter("route"+strings.ReplaceAll(p, "/", ".")))
	}
	return r
}

func (r *route) choose(path string) int {
	for i, p := range r.prefixes {
		if strings.HasPrefix(path, p) {
			r.chosen[i].Inc()
			return i
		}
	}
	return -1
}

func benchmarkRoute(b *testing.B) {
	r := newRoute(store.New(store.Options{}), "/checkout", "/search", "/")
	b.ReportAllocs()
	for b.Loop() {
		r.choose("/search?q=stats")
	}
}

func benchmarkAtomic(b *testing.B) {
	var n atomic.Uint64
	for b.Loop() {
		n.Add(1)
	}
}

// TestExampleBudget keeps the request path of a proxy within a budget.
func TestExampleBudget(t *testing.T) {
	budget.Check(t, "testdata/route.txt", map[string]func(*testing.B){
		"BenchmarkRoute":  benchmarkRoute,
		"BenchmarkAtomic": benchmarkAtomic,
	})
}
