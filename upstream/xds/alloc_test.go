//go:build !race

package xds

import (
	"fmt"
	"testing"
)

// TestAcknowledgementsDoNotGrow acknowledges a response of the delta variant, which
// changes nothing, in a stream with few and with many subscriptions.
func TestAcknowledgementsDoNotGrow(t *testing.T) {
	for _, n := range []int{10, 1000} {
		m := &mux{delta: true}
		top := &topic{kind: endpointKind, entries: make(map[string]*entry)}
		m.topics = []*topic{top}
		for i := range n {
			top.entries[fmt.Sprint("c", i)] = &entry{subscribers: []*subscription{{}}}
		}
		top.settled = true
		if m.next(true) == nil {
			t.Fatal("the names are not requested")
		}
		allocs := testing.AllocsPerRun(10, func() {
			top.reply = new(reply)
			if m.next(false) == nil {
				t.Error("nothing is acknowledged")
			}
		})
		if allocs > 5 {
			t.Errorf("%d subscriptions: %v allocations", n, allocs)
		}
	}
}
