package statsd

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/statsd/report"
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

// TestOneSeriesWithoutLabels: the exposition shows one series without labels of a family,
// so another one collides with it, but only while it lasts.
func TestOneSeriesWithoutLabels(t *testing.T) {
	for _, tt := range []struct {
		name, before, gone, after string
		collisions                uint64
	}{
		{"alone-first", "x-a:1|c\nx-a:1|c|#k:1", "", "x.a:1|c", 1},
		{"alone-last", "x-a:1|c|#k:1\nx-a:1|c", "", "x.a:1|c", 1},
		{"came-back", "x-a:1|c|#k:1\nx-a:1|c", "x-a", "x-a:1|c", 0},
		{"came-back-to-two", "x-a:1|c\nx-a:1|c|#k:1\nx-a:1|c|#k:2", "x-a", "x.a:1|c", 0},
		{"others-came-back", "x-a:1|c\nx-a:1|c|#k:1", "x-a.k.1", "x-a:1|c|#k:1\nx.a:1|c", 1},
		{"came-back-alone", "x-a:1|c", "x-a", "x.a:1|c\nx.a:1|c|#k:1", 0},
		{"histograms", "x-a:1|ms", "x-a", "x-a:1|ms", 0},
		{"two-histograms", "x-a:1|ms", "", "x.a:1|ms", 1},
	} {
		r := newRig(t, Config{})
		r.send(tt.before)
		if n := r.Forget(func(name string) bool { return name == tt.gone }); (n == 1) != (tt.gone != "") {
			t.Fatalf("%s: %d series are gone", tt.name, n)
		}
		r.send(tt.after)
		if got := r.Report().Collisions; got != tt.collisions {
			t.Errorf("%s: %d collisions, want %d", tt.name, got, tt.collisions)
		}
	}
}

// TestFlushAfterAllFrequentNamesEnded: the list of families is shorter than the number of
// a name that was counted.
func TestFlushAfterAllFrequentNamesEnded(t *testing.T) {
	r := newRig(t, Config{Limits: Limits{FirstSegment: -1, NewPerSecond: -1}})
	r.send(strings.Repeat("n0:1|c|#k:1\n", 100))
	for i := range 1024 {
		r.send(fmt.Sprintf("n%d:1|c|#k:1", i))
	}
	r.Forget(func(string) bool { return true })
	r.flush()
	if n, names := len(r.registry.families.list), r.Report().TopSamples; n != 0 || len(names) != 0 {
		t.Errorf("%d families and the names %v stay", n, names)
	}
}

// TestNameOfAFamilyStaysWhenAnotherLosesItsSeries: a metric name of several received
// names is shown by the first.
func TestNameOfAFamilyStaysWhenAnotherLosesItsSeries(t *testing.T) {
	r := newRig(t, Config{})
	r.send("a.b:1|c|#k:1\na-b:1|c|#k:2\na_b:1|c|#k:3\nz:1|c|#k:1\nz:1|c|#k:2")
	r.Forget(func(name string) bool { return name == "z.k.1" })
	r.flush()
	if got, want := r.Report().TopSeries, (report.NameCount{Name: "a.b", Count: 3}); len(got) != 2 || got[0] != want || got[1].Name != "z" {
		t.Errorf("names %v, want a.b and z", got)
	}
}

// TestTrimUnused: a list of 1024 elements or more loses the unused ones at its end once
// three quarters are unused.
func TestTrimUnused(t *testing.T) {
	for _, tt := range []struct{ len, used, want int }{
		{1023, 1, 1023}, {1024, 256, 256}, {1024, 257, 1024}, {2000, 500, 500}, {2000, 501, 2000}, {1024, 0, 0},
	} {
		list, free := make([]int, tt.len), []uint32(nil)
		for x := range list {
			if list[x] = 1; x >= tt.used {
				list[x], free = 0, append(free, uint32(x))
			}
		}
		list, free = trimUnused(list, free, func(v *int) bool { return *v == 0 })
		if len(list) != tt.want || len(free) != tt.want-tt.used {
			t.Errorf("%d of %d used: %d are left, of which %d are free, want %d", tt.used, tt.len, len(list), len(free), tt.want)
		}
	}
	// Unused elements before the last used one stay.
	list := make([]int, 1024)
	var free []uint32
	for x := range list {
		if x == 100 || x == 0 {
			list[x] = 1
		} else {
			free = append(free, uint32(x))
		}
	}
	list, free = trimUnused(list, free, func(v *int) bool { return *v == 0 })
	if len(list) != 101 || cap(list) > 200 || len(free) != 99 || free[0] != 1 || free[98] != 99 {
		t.Errorf("%d of %d left, %d of them free: %v", len(list), cap(list), len(free), free)
	}
}
