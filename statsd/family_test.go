package statsd

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestFamiliesMatchTheirSeries creates and ends series of names that share metric
// names, with and without tags, and compares the families with the cells.
func TestFamiliesMatchTheirSeries(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 5))
	r := newRig(t, Config{Limits: Limits{FirstSegment: -1, SeriesPerName: 3, NewPerSecond: -1}})
	alone, joined := 0, 0
	for range 2000 {
		if rnd.IntN(4) == 0 {
			name := fmt.Sprint("n", rnd.IntN(6))
			r.Forget(func(full string) bool { return strings.HasPrefix(full, name) && rnd.IntN(2) == 0 })
		} else {
			name := fmt.Sprintf("n%d%cx", rnd.IntN(6), ".-_"[rnd.IntN(3)])
			tags := []string{"", "", "|#k:1", "|#k:2", "|#k-:1"}
			types := []string{"c", "c", "c", "g", "ms", "s"}
			r.send(name + ":1|" + types[rnd.IntN(len(types))] + tags[rnd.IntN(len(tags))])
		}
		g := r.registry
		g.dropEnded()
		g.mu.Lock()
		series := make(map[uint32]int32)
		g.cells.each(func(x uint32, _ *cell) {
			if f := g.cells.family(x); f != noFamily {
				series[f]++
			}
		})
		names := 0
		g.eachFamily(func(x uint32, f family) {
			name := g.nameOf(x)
			if name == "" {
				t.Fatalf("family %#x with %d series has no name", x, f.series)
			}
			metric, _ := g.shown(name, nil)
			if got, ok := g.familyNamed(metric); !ok || got != x {
				t.Fatalf("%s leads to family %#x, %t, want %#x", metric, got, ok, x)
			}
			if f.series != series[x] {
				t.Fatalf("%s has %d series, want %d", name, f.series, series[x])
			}
			if x&solo != 0 {
				alone++
			} else {
				joined++
			}
			names++
			if f.group() == histograms {
				names += 3
			}
		})
		if n := g.families.owners.Len(); n != names {
			t.Fatalf("%d metric names have owners, want %d", n, names)
		}
		g.mu.Unlock()
		r.conserved()
	}
	if alone == 0 || joined == 0 {
		t.Errorf("%d families of one series and %d of several were seen", alone, joined)
	}
}

// TestFamiliesOfOneSeries: only a series without tags that is no histogram needs no
// family besides its cell.
func TestFamiliesOfOneSeries(t *testing.T) {
	for line, want := range map[string]bool{"a:1|c": true, "a:1|g": true, "a:1|s": true, "a:1|c|#k:1": false, "a:1|ms": false} {
		r := newRig(t, Config{})
		r.send(line)
		g := r.registry
		g.mu.Lock()
		g.eachFamily(func(x uint32, _ family) {
			if got := x&solo != 0; got != want {
				t.Errorf("%s: in its cell %t, want %t", line, got, want)
			}
		})
		if n := len(g.families.list); (n == 0) != want {
			t.Errorf("%s: %d families in the list", line, n)
		}
		g.mu.Unlock()
	}
}
