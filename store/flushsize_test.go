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
