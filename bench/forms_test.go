package bench

import (
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/statsd-admin/statsd-admin/bench/budget"
	"github.com/statsd-admin/statsd-admin/internal/percpu"
	"github.com/statsd-admin/statsd-admin/store"
)

// The candidates for the representation of a counter; see
// docs/decisions/counter-representation.md. They count exactly, have no names, and
// are not meant for use.

// form is a set of n counters.
type form interface {
	loop(counter, n int)      // n increments
	flush(changed *[]int)     // which counters changed since the last call
	total(counter int) uint64 // the count
}

// plainForm is one atomic word per counter, dense.
type plainForm struct {
	words   []atomic.Uint64
	latched []uint64
}

func newPlain(n int) form { return &plainForm{make([]atomic.Uint64, n), make([]uint64, n)} }

func (f *plainForm) loop(i, n int) {
	c := &f.words[i]
	for range n {
		c.Add(1)
	}
}

func (f *plainForm) total(i int) uint64 { return f.words[i].Load() }

func (f *plainForm) flush(changed *[]int) { flushTotals(f, f.latched, changed) }

// flushTotals compares every total with that of the last flush.
func flushTotals[F form](f F, latched []uint64, changed *[]int) {
	for i := range latched {
		if t := f.total(i); t != latched[i] {
			latched[i] = t
			*changed = append(*changed, i)
		}
	}
}

// biasedForm lets the first slot own a word without atomics, while all others share
// one. With 32 bytes, two fit in a cache line.
type biasedForm struct {
	words   []biased
	latched []uint64
}

type biased struct {
	owner  atomic.Int64 // slot + 1
	own    uint64
	shared atomic.Uint64
	_      uint64
}

func newBiased(n int) form { return &biasedForm{make([]biased, n), make([]uint64, n)} }

//go:nosplit
func (c *biased) inc() {
	s := int64(percpu.Hold()) + 1
	if c.owner.Load() == s {
		c.own++
		percpu.Release()
		return
	}
	percpu.Release()
	c.shared.Add(1)
	if c.owner.Load() == 0 {
		c.owner.CompareAndSwap(0, s)
	}
}

func (f *biasedForm) loop(i, n int) {
	c := &f.words[i]
	for range n {
		c.inc()
	}
}

func (f *biasedForm) total(i int) uint64 {
	return f.words[i].shared.Load() + atomic.LoadUint64(&f.words[i].own)
}

func (f *biasedForm) flush(changed *[]int) { flushTotals(f, f.latched, changed) }

// arrayForm has one cache line per counter and slot.
type arrayForm struct {
	counters [][]slotLine
	latched  []uint64
}

type slotLine struct {
	n uint64
	_ [56]byte
}

func newArrays(n int) form {
	f := &arrayForm{make([][]slotLine, n), make([]uint64, n)}
	p := runtime.GOMAXPROCS(0)
	all := make([]slotLine, n*p)
	for i := range f.counters {
		f.counters[i] = all[i*p : (i+1)*p]
	}
	return f
}

func (f *arrayForm) loop(i, n int) {
	for range n {
		inc(f.counters[i])
	}
}

//go:nosplit
func inc(c []slotLine) {
	if s := percpu.Hold(); s < len(c) {
		c[s].n++
	}
	percpu.Release()
}

func (f *arrayForm) total(i int) (t uint64) {
	for s := range f.counters[i] {
		t += atomic.LoadUint64(&f.counters[i][s].n)
	}
	return t
}

func (f *arrayForm) flush(changed *[]int) { flushTotals(f, f.latched, changed) }

// pageForm has, per slot, pages of words in the order of the counters.
type pageForm struct {
	slots   []atomic.Pointer[[]uint64]
	latched []uint64
}

func newPages(n int) form {
	return &pageForm{make([]atomic.Pointer[[]uint64], runtime.GOMAXPROCS(0)), make([]uint64, n)}
}

func (f *pageForm) loop(i, n int) {
	for range n {
		f.inc(i)
	}
}

//go:nosplit
func (f *pageForm) inc(i int) {
	s := percpu.Hold()
	if p := f.slots[s].Load(); p != nil {
		(*p)[i]++
		percpu.Release()
		return
	}
	percpu.Release()
	f.incFirst(i, s)
}

func (f *pageForm) incFirst(i, s int) {
	p := make([]uint64, len(f.latched))
	f.slots[s].CompareAndSwap(nil, &p)
	f.inc(i)
}

func (f *pageForm) total(i int) (t uint64) {
	for s := range f.slots {
		if p := f.slots[s].Load(); p != nil {
			t += atomic.LoadUint64(&(*p)[i])
		}
	}
	return t
}

func (f *pageForm) flush(changed *[]int) { flushTotals(f, f.latched, changed) }

// chosenForm is the form of package store: pages of atomic words, of which hot ones
// get a copy per slot, and a mark for each write.
type chosenForm struct {
	st *store.Store
	cs []*store.Counter
}

func newChosen(n int) form {
	f := &chosenForm{store.New(store.Options{}), make([]*store.Counter, n)}
	for i := range f.cs {
		f.cs[i] = f.st.Root().Counter("c" + strconv.Itoa(i))
	}
	return f
}

func (f *chosenForm) loop(i, n int) {
	c := f.cs[i]
	for range n {
		c.Inc()
	}
}

func (f *chosenForm) total(i int) uint64 { return f.cs[i].Total() }

func (f *chosenForm) flush(changed *[]int) {
	snap := f.st.Flush(store.FlushOptions{})
	snap.CounterChanges(func(c *store.Cursor, _ uint64) bool {
		*changed = append(*changed, int(c.ID()))
		return true
	})
	snap.Close()
}

// forms returns the forms that work in this build. Some need goroutines to stay on
// their slot, and count wrong under the race detector.
func forms() map[string]func(n int) form {
	fs := map[string]func(n int) form{"plain-atomic": newPlain, "chosen": newChosen}
	if percpu.Enabled {
		fs["owner-biased"], fs["slot-arrays"], fs["slot-pages"] = newBiased, newArrays, newPages
	}
	return fs
}

func TestFormsCountExactly(t *testing.T) {
	if !percpu.Enabled {
		t.Skip("needs a slot that does not change underway")
	}
	for name, make := range forms() {
		f := make(10)
		var changed []int
		f.flush(&changed)
		onAllCores(100_000, func(core, n int) { f.loop(3, n) })
		if got := f.total(3); got != 100_000 {
			t.Errorf("%s: %d, want 100000", name, got)
		}
		if f.flush(&changed); len(changed) != 1 {
			t.Errorf("%s: %d counters changed, want 1", name, len(changed))
		}
	}
}

// BenchmarkForm compares increments, a flush after 1 % of 100,000 counters changed,
// and memory without names.
func BenchmarkForm(b *testing.B) {
	if !percpu.Enabled {
		b.Skip("needs a slot that does not change underway")
	}
	const many = 100_000
	for _, name := range []string{"plain-atomic", "owner-biased", "slot-arrays", "slot-pages", "chosen"} {
		make := forms()[name]
		small := make(64)
		for i := range 8 {
			onAllCores(warmUp, func(core, n int) { small.loop(i, n) })
		}
		b.Run("case=one/form="+name, func(b *testing.B) {
			small.loop(0, warmUp)
			b.ResetTimer()
			m := budget.StartMeter(b)
			small.loop(0, b.N)
			m.Report("cpu-ns/op", 1)
		})
		b.Run("case=same/form="+name, func(b *testing.B) {
			m := budget.StartMeter(b)
			onAllCores(b.N, func(core, n int) { small.loop(1, n) })
			m.Report("cpu-ns/op", 1)
		})
		b.Run("case=distinct/form="+name, func(b *testing.B) {
			m := budget.StartMeter(b)
			onAllCores(b.N, func(core, n int) { small.loop(2+core, n) })
			m.Report("cpu-ns/op", 1)
		})
		b.Run("case=flush/form="+name, func(b *testing.B) {
			f := make(many)
			changed := []int{}
			f.flush(&changed)
			m := budget.StartMeter(b)
			for b.Loop() {
				b.StopTimer()
				for i := 0; i < many; i += 100 {
					f.loop(i, 1)
				}
				changed = changed[:0]
				b.StartTimer()
				f.flush(&changed)
			}
			m.Report("cpu-ns/op", 1)
			if len(changed) != many/100 {
				b.Fatalf("%d counters changed, want %d", len(changed), many/100)
			}
			perName(b, many)
		})
		if name == "chosen" {
			continue // its memory includes names: see BenchmarkMemory
		}
		b.Run("case=memory/form="+name, func(b *testing.B) {
			var bytes uint64
			for range b.N {
				before, _ := heap()
				f := make(many)
				onAllCores(many, func(core, n int) {
					for i := range n {
						f.loop(i, 1)
					}
				})
				after, _ := heap()
				bytes = after - before
				keepAlive(f)
			}
			b.ReportMetric(float64(bytes)/many-8, "B/counter") // without the latched value
		})
	}
}
