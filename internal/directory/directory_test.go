package directory

import (
	"sync/atomic"
	"testing"
)

func TestFindOutsideReturnsNil(t *testing.T) {
	var d Directory[int]
	if d.Find(0) != nil || len(d.All()) != 0 {
		t.Error("an empty directory has elements")
	}
	d.Put(7, new(int))
	if d.Find(6) != nil || d.Find(len(d.All())) != nil {
		t.Error("elements that were not put exist")
	}
}

func TestResizeKeepsWhatFits(t *testing.T) {
	var d Directory[int]
	for i := range 100 {
		d.Put(i, &i)
	}
	d.Resize(10)
	if n := len(d.All()); n != 10 {
		t.Fatalf("Resize(10) leaves %d elements", n)
	}
	d.Put(10, new(int))
	for i := range 10 {
		if got := d.At(i); *got != i {
			t.Errorf("At(%d) = %d", i, *got)
		}
	}
}

// TestReadersFindPublishedElements reads, while the directory grows, the elements
// whose number was published after they were put.
func TestReadersFindPublishedElements(t *testing.T) {
	var d Directory[int]
	var published atomic.Int64
	const n = 1 << 12
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			end := int(published.Load())
			for i := range end {
				if got := d.At(i); got == nil || *got != i {
					t.Errorf("At(%d) = %v of %d", i, got, end)
					return
				}
			}
			if end == n {
				return
			}
		}
	}()
	for i := range n {
		d.Put(i, &i)
		published.Store(int64(i + 1))
	}
	<-done
}
