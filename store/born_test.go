package store

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// TestCreatedByTheSystemsClock: not every creation reads the clock, but the times are as
// exact as if it did.
func TestCreatedByTheSystemsClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := New(Options{})
		created := func(name string) time.Time {
			st.Root().Counter(name)
			v := st.View()
			defer v.Close()
			c, ok := v.Find(name)
			if !ok {
				t.Fatalf("%s is not found", name)
			}
			return c.Created()
		}
		for i := range 100 {
			time.Sleep(time.Duration(i%45) * time.Millisecond)
			if late := time.Since(created(strconv.Itoa(i))); late < 0 || late >= birthRun*time.Millisecond {
				t.Errorf("counter %d has a time of %v before its creation", i, late)
			}
		}
		time.Sleep(20 * time.Millisecond)
		snap := st.Flush(FlushOptions{})
		defer snap.Close()
		if at := created("after"); !at.Equal(snap.Time) {
			t.Errorf("a counter is %v younger than the flush before it", at.Sub(snap.Time))
		}
	})
}
