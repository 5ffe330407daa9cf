package upstream

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

func TestClusterIndexIsSortedAfterEveryChange(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var r clusterIndex
	var want []string
	handles := map[string]*Handle{}
	for i := range 500 {
		name := fmt.Sprint("n", rnd.IntN(100))
		if h := handles[name]; h != nil {
			r.drop(h)
			delete(handles, name)
			want = slices.DeleteFunc(want, func(s string) bool { return s == name })
		} else {
			handles[name] = &Handle{name: name}
			r.put(handles[name])
			want = append(want, name)
			slices.Sort(want)
		}
		if i%3 == 0 {
			continue // several changes at once
		}
		var got []string
		for _, h := range r.list() {
			got = append(got, h.name)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("after %d changes: %v, want %v", i+1, got, want)
		}
		if r.find(name) != handles[name] {
			t.Fatalf("after %d changes: %s leads elsewhere", i+1, name)
		}
	}
	if a, b := r.list(), r.list(); &a[0] != &b[0] {
		t.Error("the list was made again without a change")
	}
}

func TestClusterIndexDropsOnlyWhatItHas(t *testing.T) {
	var r clusterIndex
	old, now := &Handle{name: "a"}, &Handle{name: "a"}
	r.put(old)
	r.put(now)
	r.drop(old)
	if got := r.list(); len(got) != 1 || got[0] != now {
		t.Errorf("list %v, want the later handle", got)
	}
}

// TestClusterIndexShowsChangesToThoseWhoMadeThem has readers that could store old lists
// over newer ones.
func TestClusterIndexShowsChangesToThoseWhoMadeThem(t *testing.T) {
	var r clusterIndex
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					r.list()
				}
			}
		})
	}
	for w := range 2 {
		writers.Go(func() {
			for i := range 300 {
				h := &Handle{name: fmt.Sprint(w, "-", i)}
				r.put(h)
				if !slices.Contains(r.list(), h) {
					t.Errorf("%s is not listed after it was put", h.name)
				}
				r.drop(h)
				if slices.Contains(r.list(), h) {
					t.Errorf("%s is listed after it was dropped", h.name)
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
}
