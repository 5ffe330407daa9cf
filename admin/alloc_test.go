//go:build !race

package admin

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/statsd-admin/statsd-admin/server/layers"
)

// TestOneOverrideCopiesFew checks that a change of one runtime value allocates about the
// same with many overrides as with few.
func TestOneOverrideCopiesFew(t *testing.T) {
	perChange := func(n int) uint64 {
		rt, err := layers.New(layers.Config{Layers: []layers.Layer{{Name: "admin", Kind: layers.Admin}}})
		if err != nil {
			t.Fatal(err)
		}
		values := make(map[string]string)
		for i := range n {
			values["some.feature.number_"+strconv.Itoa(i)] = strconv.Itoa(i)
		}
		if err := rt.Modify(values); err != nil {
			t.Fatal(err)
		}
		w := newWorld()
		w.runtime = rt
		s := newServer(t, Config{Sources: w.sources()})
		const changes = 500
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range changes {
			post(t, s, "/runtime_modify?ttl=1h&some.feature.number_"+strconv.Itoa(i*7%n)+"=x"+strconv.Itoa(i))
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / changes
	}
	if few, many := perChange(10), perChange(9990); many > few+16<<10 {
		t.Errorf("one change allocates %d bytes with 10 overrides, %d with 9,990; want at most 16 KiB more", few, many)
	}
}

// TestAnswersShareBuffers expects a small answer to take much less memory than the
// buffer that holds it while it is made.
func TestAnswersShareBuffers(t *testing.T) {
	s := newServer(t, Config{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const requests = 100
	for range requests {
		s.Request("GET", "/ready", nil)
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) / requests; got > responseBuffer/4 {
		t.Errorf("%d bytes for each answer", got)
	}
}

// TestWalksDoNotAllocate: the memory of requests that walk over the stats does not depend on
// their number.
func TestWalksDoNotAllocate(t *testing.T) {
	const stats = 2000
	s := newServer(t, Config{})
	for i := range stats {
		s.store.Root().Counter("walk." + strconv.Itoa(i)).Inc()
	}
	for name, f := range map[string]func(){
		"reset_counters": func() { s.Request("POST", "/reset_counters?filter=9", nil) },
		"dry run of it":  func() { s.Request("POST", "/reset_counters?filter=9&dry_run", nil) },
		"nearest stat":   func() { s.NearestStat("of another length", false) },
	} {
		if n := testing.AllocsPerRun(5, f); n > stats/2 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
