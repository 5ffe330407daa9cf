package store

import (
	"strconv"
	"testing"
)

// TestFlushAllocatesChangesOnce: a flush knows how many counters changed before it
// lists them. Growing the list would take longer than the rest of the flush.
func TestFlushAllocatesChangesOnce(t *testing.T) {
	st := New(Options{})
	const n = 3*slotsPerBlock + 1
	var counters []*Counter
	for i := range n {
		counters = append(counters, st.Root().Counter(strconv.Itoa(i)))
	}
	for _, step := range []int{1, 100, n} {
		want := 0
		for i := 0; i < n; i += step {
			counters[i].Inc()
			want++
		}
		snap := st.Flush(FlushOptions{})
		if len(snap.counters) != want || cap(snap.counters) != want {
			t.Errorf("%d counters changed: the list has %d and room for %d", want, len(snap.counters), cap(snap.counters))
		}
		snap.Close()
	}
	snap := st.Flush(FlushOptions{})
	defer snap.Close()
	if cap(snap.counters) != 0 {
		t.Errorf("the list of no changes has room for %d", cap(snap.counters))
	}
}

// TestFlushSkipsUnchangedBlocks: a flush reads no stats of a block of counters or gauges
// without a change, also when a watch has taken changes of the block before.
func TestFlushSkipsUnchangedBlocks(t *testing.T) {
	st := New(Options{})
	const n = 3 * slotsPerBlock
	var counters []*Counter
	var gauges []*Gauge
	for i := range n {
		counters = append(counters, st.Root().Counter("c"+strconv.Itoa(i)))
		gauges = append(gauges, st.Root().Gauge("g"+strconv.Itoa(i)))
	}
	w := st.Watch()
	defer w.Close()
	// flush returns how many blocks it visited: others keep their changes of the flush before.
	flush := func() (visited, changed int) {
		const kept = 1<<64 - 1
		for _, b := range st.eachBlock() {
			b.changed[0] = kept
		}
		snap := st.Flush(FlushOptions{})
		defer snap.Close()
		for _, b := range st.eachBlock() {
			if b.changed[0] != kept {
				visited++
			}
		}
		return visited, len(snap.counters) + len(snap.gauges)
	}
	for _, step := range []struct {
		name          string
		write, poll   bool
		visited, want int
	}{
		{"the first", false, false, 0, 0},
		{"with a change of each kind", true, false, 2, 2},
		{"without changes", false, false, 0, 0},
		{"with changes that a watch took", true, true, 2, 2},
		{"without changes after a watch", false, true, 0, 0},
		{"with others", true, false, 2, 2},
	} {
		if step.write {
			counters[n/2].Inc()
			gauges[n/2].Add(1)
		}
		if step.poll {
			w.Poll()
		}
		if visited, changed := flush(); visited != step.visited || changed != step.want {
			t.Errorf("the flush %s visits %d blocks and finds %d changes, want %d and %d", step.name, visited, changed, step.visited, step.want)
		}
	}
}
