//go:build !race

package statsd

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/bench/budget"
)

var searchSteps = flag.Int("search", 1, "steps of TestAmplificationSearch from each kind of line")

// recipe describes random lines.
type recipe struct {
	typ                int // index of searchTypes
	segments, segment  int // of a name, and their length
	names              int // different first segments
	tags, key, value   int // of a line, and their length
	keys, values       int // different ones
	magnitudes, weight int // of values; the decimal exponent of a weight
	members            int // different members of a set
}

var searchTypes = [...]string{"c", "g", "ms", "h", "s"}

// mutate returns a recipe near r.
func (r recipe) mutate(rnd *rand.Rand) recipe {
	for range 1 + rnd.IntN(3) {
		bounds := []struct{ at, most *int }{
			{&r.segments, new(30)}, {&r.segment, new(60)}, {&r.names, new(1 << 20)}, {&r.tags, new(32)}, {&r.key, new(100)},
			{&r.value, new(400)}, {&r.keys, new(1 << 20)}, {&r.values, new(1 << 20)}, {&r.magnitudes, new(62)}, {&r.weight, new(6)}, {&r.members, new(1 << 20)},
		}
		b := bounds[rnd.IntN(len(bounds))]
		switch rnd.IntN(4) {
		case 0:
			*b.at = 1
		case 1:
			*b.at = 1 + rnd.IntN(*b.most)
		case 2:
			*b.at = min(*b.at*2, *b.most)
		case 3:
			*b.at = max(*b.at/2, 1)
		}
	}
	return r
}

// line returns a random line of r.
func (r recipe) line(rnd *rand.Rand) string {
	pad := func(n, length int) string {
		s := fmt.Sprintf("%x", rnd.IntN(n))
		return s + strings.Repeat("x", max(length-len(s), 0))
	}
	var b strings.Builder
	b.WriteString(pad(r.names, r.segment))
	for range r.segments - 1 {
		b.WriteString("." + pad(r.names, r.segment))
	}
	switch value := uint64(1) << rnd.IntN(r.magnitudes); searchTypes[r.typ] {
	case "s":
		fmt.Fprintf(&b, ":%x|s", rnd.IntN(r.members))
	case "h":
		fmt.Fprintf(&b, ":%d|h|@%g", int64(value)*int64(1-2*rnd.IntN(2)), math.Pow10(1-r.weight))
	case "g":
		fmt.Fprintf(&b, ":%d|g", value)
	default:
		fmt.Fprintf(&b, ":%d|%s|@%g", value, searchTypes[r.typ], math.Pow10(1-r.weight))
	}
	for i := range r.tags - 1 {
		b.WriteString([]string{"|#", ","}[min(i, 1)] + "k" + pad(r.keys, r.key) + ":" + pad(r.values, r.value))
	}
	return b.String()
}

// TestAmplificationSearch searches for the lines that keep the most memory per byte
// sent or take the most processor time, by changing the worst ones
// found so far. With all of them the heap stays within the budget.
func TestAmplificationSearch(t *testing.T) {
	const limit = 2 << 20
	rnd := rand.New(rand.NewPCG(11, 7))
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	// try returns the bytes that are kept and the processor time, per byte sent.
	try := func(rec recipe) (kept, used float64) {
		r := newRig(t, Config{Limits: Limits{FirstSegment: -1, SeriesPerName: -1, NewPerSecond: -1, MemoryBytes: limit}})
		defer r.Close()
		before, sent := heap(), 0
		most := 0
		for range 2 {
			var lines []string
			for part := 0; part < 100_000; {
				lines = append(lines, rec.line(rnd))
				part += len(lines[len(lines)-1]) + 1
			}
			sent += 100_000
			began := budget.ProcessTime()
			for _, text := range lines {
				r.send(text)
			}
			used += float64(budget.ProcessTime() - began)
			lines = nil
			most = max(most, heap()-before)
			r.flush()
		}
		most = max(most, heap()-before)
		if most > limit*3/2+1<<20 {
			t.Errorf("%d bytes are kept of %d sent, the budget is %d: %+v, such as %.200q", most, sent, limit, rec, rec.line(rnd))
		}
		r.conserved()
		runtime.KeepAlive(r)
		return float64(most) / float64(sent), used / float64(sent)
	}
	_, known := try(recipe{0, 1, 20, 1, 1, 1, 1, 1, 1, 1, 1, 1})
	for typ, name := range searchTypes {
		for _, goal := range []string{"bytes", "time"} {
			t.Run(name+"-"+goal, func(t *testing.T) {
				best, worst := recipe{}, -1.0
				next := recipe{typ, 1, 5, 1 << 20, 1, 1, 1, 1, 1, 1, 1, 1}
				for range *searchSteps + 1 {
					n, used := try(next)
					if goal == "time" {
						n = used / max(known, 1e-3)
					}
					if n > worst {
						best, worst = next, n
					}
					next = best.mutate(rnd)
				}
				what := "bytes kept per byte sent"
				if goal == "time" {
					what = "times the processor time of known lines"
				}
				t.Logf("at most %.1f %s: %+v", worst, what, best)
			})
		}
	}
}
