package store_test

import (
	"errors"
	"math"
	"runtime"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/store"
)

// shown returns the value of a gauge in a new view.
func shown(t *testing.T, st *store.Store, name string) float64 {
	t.Helper()
	v := st.View()
	defer v.Close()
	c, ok := v.Find(name)
	if !ok {
		t.Fatalf("%s does not exist", name)
	}
	return c.Float()
}

func TestGaugeFuncIsCalledForEachView(t *testing.T) {
	st := store.New(store.Options{})
	x := 0.5
	sc := st.Scope("s")
	if err := sc.GaugeFunc("g", func() float64 { x++; return x }); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, st, "s.g"); got != 1.5 {
		t.Errorf("value %v, want 1.5", got)
	}
	if got := shown(t, st, "s.g"); got != 2.5 {
		t.Errorf("value %v, want 2.5", got)
	}
	snap := st.Flush(store.FlushOptions{})
	defer snap.Close()
	var got []float64
	snap.GaugeChanges(func(c *store.Cursor) bool { got = append(got, c.Float()); return true })
	if len(got) != 1 || got[0] != 3.5 {
		t.Errorf("the snapshot has %v, want 3.5", got)
	}
	x = math.Inf(1)
	if got := shown(t, st, "s.g"); got != 3.5 {
		t.Errorf("value %v after infinity, want the last one, 3.5", got)
	}
	st.Root().Counter("c")
	if err := st.Root().GaugeFunc("c", func() float64 { return 0 }); !errors.Is(err, store.ErrKind) {
		t.Errorf("error %v for the name of a counter", err)
	}
	if err := sc.GaugeFunc("nil", nil); err == nil || err.Error() != `store: "s.nil": the function is nil` || st.Has(false, "s.nil") {
		t.Errorf("error %v without a function", err)
	}
	if err := sc.GaugeFunc("g", func() float64 { return 7 }); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, st, "s.g"); got != 7 {
		t.Errorf("value %v, want that of the last function, 7", got)
	}
	sc.Close()
	st.View().Close()
	x = 10
	st.View().Close()
	if x != 10 {
		t.Error("the function of an ended gauge was called")
	}
}

func TestPanicBeforeReadIsLogged(t *testing.T) {
	panics := guardtest.New(t)
	st := store.New(store.Options{})
	st.SetLogger(panics.Logger())
	remove := st.BeforeRead(func() { panic(guardtest.Canary) })
	if err := st.Root().GaugeFunc("g", func() float64 { return 2 }); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, st, "g"); got != 2 {
		t.Errorf("value %v after a panic of another function, want 2", got)
	}
	panics.Caught("function before a read of stats")
	remove()
	st.View().Close()
}

// Registering and removing a function must not copy the list of all others.
func TestManyFunctionsBeforeRead(t *testing.T) {
	const n = 1 << 13
	st, calls := store.New(store.Options{}), 0
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	removes := make([]func(), n)
	for i := range removes {
		removes[i] = st.BeforeRead(func() { calls++ })
	}
	for _, remove := range removes[1:] {
		remove()
		remove() // twice is once
	}
	runtime.ReadMemStats(&after)
	if per := (after.TotalAlloc - before.TotalAlloc) / n; per > 1024 {
		t.Errorf("a function costs %d bytes to register and to remove, want at most 1024", per)
	}
	if st.View().Close(); calls != 1 {
		t.Errorf("%d functions were called, want 1", calls)
	}
}
