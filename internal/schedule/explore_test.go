//go:build schedule

package schedule

import (
	"errors"
	"strings"
	"testing"
)

// TestExploreFindsALostUpdate increments a word in two steps.
func TestExploreFindsALostUpdate(t *testing.T) {
	trial := func() Trial {
		n := 0
		add := func() {
			old := n
			Point()
			n = old + 1
		}
		return Trial{Programs: []func(){add, add}, Check: func() error {
			if n != 2 {
				return errors.New("lost update")
			}
			return nil
		}}
	}
	if n, err := Explore(0, trial); err != nil || n != 2 {
		t.Errorf("without preemptions: %d schedules, error %v; want 2 and none", n, err)
	}
	if _, err := Explore(1, trial); err == nil || !strings.Contains(err.Error(), "lost update") {
		t.Errorf("with a preemption: error %v, want the lost update", err)
	}
}

func TestExploreCountsSchedules(t *testing.T) {
	n, err := Explore(10, func() Trial {
		f := func() { Point(); Point() }
		return Trial{Programs: []func(){f, f}, Check: func() error { return nil }}
	})
	if err != nil || n != 20 { // 6 steps, 3 of each program
		t.Errorf("%d schedules, error %v; want 20", n, err)
	}
}

func TestExploreLocks(t *testing.T) {
	var a, b Mutex
	_, err := Explore(1, func() Trial {
		a, b = Mutex{}, Mutex{}
		return Trial{Programs: []func(){
			func() { a.Lock(); b.Lock(); b.Unlock(); a.Unlock() },
			func() { b.Lock(); a.Lock(); a.Unlock(); b.Unlock() },
		}, Check: func() error { return nil }}
	})
	if err == nil || !strings.Contains(err.Error(), "deadlock") {
		t.Errorf("error %v, want the deadlock", err)
	}
}
