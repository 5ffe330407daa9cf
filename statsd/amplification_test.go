//go:build !race

package statsd

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/bench/budget"
)

// flood is a kind of input that costs much for its size.
type flood struct {
	name   string
	n      int
	packet func(i int) string
	kept   float64 // most bytes kept per byte sent
	limits Limits  // default: none but a budget of 1 GiB
}

// floods returns the floods. Known lines, which cost least, come first.
func floods() []flood {
	digits := func(i int) string { return fmt.Sprintf("%05x", i) }
	tags := func(n int, tag func(int) string) string {
		var all []string
		for i := range n {
			all = append(all, tag(i))
		}
		return strings.Join(all, ",")
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	return []flood{
		{name: "known-lines", n: 1_000, packet: func(int) string { return strings.Repeat("requests.total:1|c\n", 60) }, kept: 1},
		{name: "short-counters", n: 40_000, packet: func(i int) string { return digits(i) + ":1|c" }, kept: 60},
		{name: "short-sets", n: 2_000, packet: func(i int) string { return digits(i) + ":1|s" }, kept: 100},
		{name: "short-timers", n: 10_000, packet: func(i int) string { return digits(i) + ":1|ms" }, kept: 200},
		{name: "unique-segments", n: 4_000, packet: func(i int) string {
			return strings.ReplaceAll(tags(8, func(j int) string { return digits(i*8 + j) }), ",", ".") + ":1|c"
		}, kept: 40},
		{name: "unique-tags", n: 2_000, packet: func(i int) string {
			return "a:1|c|#" + tags(15, func(j int) string { return digits(i*15+j) + ":" + digits(i*31+j) })
		}, kept: 30},
		{name: "unique-values", n: 2_000, packet: func(i int) string {
			return "a:1|c|#" + tags(15, func(j int) string { return fmt.Sprintf("k%d:%s", j, digits(i*15+j)) })
		}, kept: 30},
		{name: "long-tags", n: 1_000, packet: func(i int) string {
			return "a:1|c|#" + tags(15, func(j int) string { return fmt.Sprintf("k%d:%s%d-%d", j, strings.Repeat("v", 400), i, j) })
		}, kept: 3},
		{name: "tags-in-random-order", n: 20_000, packet: func(int) string {
			return "a:1|c|#" + tags(15, func(int) string { return fmt.Sprintf("k%d:v", rnd.IntN(100)) })
		}, kept: 10},
		{name: "rejected-names", n: 20_000, packet: func(i int) string { return digits(i) + strings.Repeat(".x", 40) + ":1|c" }, kept: 3},
		{name: "wide-timers", n: 20_000, packet: func(i int) string {
			return fmt.Sprintf("t%d:%d|ms|@0.00001", i/40%100, uint64(1)<<(i%40))
		}, kept: 60},
		{name: "short-datagrams", n: 20_000, packet: func(int) string { return "a:1|c" }, kept: 1},
		{name: "blank-datagrams", n: 100_000, packet: func(int) string { return "\n" }, kept: 1},
		{name: "invalid-lines", n: 10, packet: func(int) string { return strings.Repeat("x\n", 30_000) }, kept: 1},
		{name: "packed-values", n: 100, packet: func(int) string { return "t" + strings.Repeat(":1", 4000) + "|ms" }, kept: 1},
		{name: "hard-numbers", n: 20, packet: func(int) string { return "q" + strings.Repeat(":6.1164319251217312675e300:1e-330", 240) + "|g" }, kept: 1},
		{name: "tag-errors", n: 100, packet: func(int) string { return "a:1|c|#" + strings.Repeat("a,", 4000) }, kept: 1},
		{name: "events", n: 10_000, packet: func(int) string { return "_e{1,1}:a|b" }, kept: 8},
		{name: "service-checks", n: 5_000, packet: func(i int) string { return "_sc|" + digits(i) + "|0" }, kept: 20},
		{name: "kinds-in-conflict", n: 5_000, packet: func(i int) string {
			return fmt.Sprintf("%05x:1|c\n%05[1]x:1|g\n%05[1]x:1|ms", i)
		}, kept: 200},
		{name: "over-series", n: 40_000, packet: func(i int) string { return digits(i) + ":1|c" }, kept: 8,
			limits: Limits{Series: 100, FirstSegment: -1, SeriesPerName: -1, NewPerSecond: -1}},
		{name: "over-rate", n: 40_000, packet: func(i int) string { return digits(i) + ":1|c" }, kept: 8,
			limits: Limits{FirstSegment: -1, SeriesPerName: -1, NewPerSecond: 100}},
		{name: "over-memory", n: 40_000, packet: func(i int) string { return digits(i) + ":1|c" }, kept: 8,
			limits: Limits{FirstSegment: -1, SeriesPerName: -1, NewPerSecond: -1, MemoryBytes: 1 << 20}},
	}
}

// start returns a rig for f.
func (f flood) start(t testing.TB) *rig {
	if f.limits == (Limits{}) {
		f.limits = Limits{FirstSegment: -1, SeriesPerName: -1, NewPerSecond: -1, MemoryBytes: 1 << 30}
	}
	r := newRig(t, Config{Limits: f.limits})
	r.send("warm:1|c\nup:1|ms\ns:1|s")
	r.flush()
	return r
}

// TestAmplification sends the kinds of lines that keep the most memory per byte
// and measures what the heap keeps, per byte sent and per byte charged to the
// memory budget.
func TestAmplification(t *testing.T) {
	for _, f := range floods() {
		t.Run(f.name, func(t *testing.T) {
			heap := func() float64 {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				return float64(m.HeapAlloc)
			}
			r := f.start(t)
			before, charged, sent := heap(), r.registry.memory.total(), 0
			for i := range f.n {
				text := f.packet(i)
				sent += len(text) + 1
				r.send(text)
			}
			r.flush()
			kept := heap() - before
			cost := float64(r.registry.memory.total() - charged)
			t.Logf("%.1f bytes kept per byte sent, %.2f per byte charged", kept/float64(sent), kept/cost)
			if kept > f.kept*float64(sent) {
				t.Errorf("%.0f bytes are kept of %d sent, at most %.0f per byte are allowed", kept, sent, f.kept)
			}
			if kept > 1.5*cost+1<<20 {
				t.Errorf("%.0f bytes are kept, only %.0f are charged", kept, cost)
			}
			runtime.KeepAlive(r)
		})
	}
}

// BenchmarkAmplification measures the processor time that the floods take for each
// byte sent, a flush included.
func BenchmarkAmplification(b *testing.B) {
	for _, f := range floods() {
		b.Run("input="+f.name, func(b *testing.B) {
			m := budget.StartMeter(b)
			sent := 0
			for range b.N {
				m.Stop()
				r := f.start(b)
				packets := make([]string, f.n)
				sent = 0
				for i := range packets {
					packets[i] = f.packet(i)
					sent += len(packets[i]) + 1
				}
				runtime.GC()
				m.Start()
				for _, p := range packets {
					r.send(p)
				}
				r.flush()
				m.Stop()
				r.Close()
			}
			m.Report("cpu-ns/B", sent)
		})
	}
}
