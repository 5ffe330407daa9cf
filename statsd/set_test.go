package statsd

import (
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/clocktest"
	"github.com/statsd-admin/statsd-admin/statsd/mapping"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
)

func newTestSet() *set {
	m := newMemory(1<<40, func() int64 { return 0 })
	return &set{memory: &m, gauge: store.New(store.Options{}).Root().FloatGauge("s")}
}

// count ends the interval of a set and returns its count.
func count(s *set) float64 {
	n, _ := s.flush(time.Unix(1_700_000_000, 0))
	return n
}

func TestSetCountsExactly(t *testing.T) {
	s, seed := newTestSet(), maphash.MakeSeed()
	for _, n := range []int{0, 1, 7, 8, 9, 100, 4095, 4096} {
		for round := range 3 {
			for i := range n {
				s.add(seed, fmt.Append(nil, "member", i, round*0))
			}
		}
		if got := count(s); got != float64(n) {
			t.Errorf("%d members: counted %v", n, got)
		}
	}
	if got := count(s); got != 0 {
		t.Errorf("after a flush: %v", got)
	}
}

// TestSetEstimates allows five standard errors.
func TestSetEstimates(t *testing.T) {
	seed := maphash.MakeSeed()
	for _, n := range []int{4097, 10_000, 50_000, 300_000} {
		s := newTestSet()
		for i := range n {
			s.add(seed, fmt.Append(nil, "member", i))
			s.add(seed, fmt.Append(nil, "member", i/2))
		}
		if s.hashes != nil || len(s.registers) != 1<<14 {
			t.Errorf("%d members: %d hashes, %d registers", n, len(s.hashes), len(s.registers))
		}
		if got := count(s); math.Abs(got/float64(n)-1) > 5*0.0081 {
			t.Errorf("%d members: estimated %v", n, got)
		}
		s.add(seed, []byte("x"))
		if got := count(s); got != 1 {
			t.Errorf("the interval after %d members: %v", n, got)
		}
	}
}

func TestSetShowsLastInterval(t *testing.T) {
	r := newRig(t, Config{SetWindow: -1})
	r.send("u:anna:x|s\nu:bert|s\nu:anna:x|s|@0.5")
	r.want("u 0")
	v := r.store.View()
	for c := v.ByName(store.Scalars); c.Next(); {
		if c.Network() && !c.Used() {
			t.Errorf("%s counts as unused until the first flush", c.Name())
		}
	}
	v.Close()
	r.flush()
	r.want("u 2")
	r.send("u:carl|s")
	r.want("u 2")
	r.flush()
	r.want("u 1")
	r.flush()
	r.want("u 0")
}

// TestSetShowsWindow: the shown count is that of ten minutes, in steps of two, and
// sinks for intervals get that of the interval.
func TestSetShowsWindow(t *testing.T) {
	r := newRig(t, Config{})
	at := func(minutes float64, lines string, want ...string) {
		t.Helper()
		r.now = time.Unix(1_700_000_040, 0).Add(time.Duration(minutes * float64(time.Minute))) // a step begins
		if lines != "" {
			r.send(lines)
		}
		r.flush()
		r.want(want[:1]...)
		v := r.store.View()
		defer v.Close()
		for c := v.ByName(store.Scalars); c.Next(); {
			if got := string(c.AppendInterval(nil)); c.Network() && got != want[1] {
				t.Errorf("after %v minutes: %s in the interval, want %s", minutes, got, want[1])
			}
		}
	}
	at(0, "u:a|s\nu:b|s", "u 2", "2")
	at(0.5, "u:b|s\nu:c|s", "u 3", "2")
	at(1, "", "u 3", "0")
	at(2, "u:a|s", "u 3", "1")
	at(9.9, "u:a|s", "u 3", "1")
	at(10, "", "u 1", "0")
	at(10.1, "u:d|s", "u 2", "1")
	at(5, "u:e|s", "u 3", "1") // the clock was set back
	at(17.9, "", "u 3", "0")
	at(18, "", "u 2", "0")
	at(100, "", "u 0", "0")
}

// TestSetWindowWhenTheClockIsSet: members leave the window as time passes, whatever the
// time of day.
func TestSetWindowWhenTheClockIsSet(t *testing.T) {
	for _, by := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		begin := time.Now()
		r := newRig(t, Config{Now: func() time.Time { return begin }})
		r.now = begin
		r.send("u:a|s\nu:b|s")
		r.flush()
		r.now = clocktest.Set(begin, by).Add(7 * time.Minute) // at most four steps on
		r.flush()
		r.want("u 2")
		r.now = r.now.Add(3 * time.Minute)
		r.flush()
		r.want("u 0")
	}
}

// TestSetWindowEstimates: a window with many members is estimated, and the set
// counts exactly again when it is empty. It returns its memory.
func TestSetWindowEstimates(t *testing.T) {
	s, seed, start := newTestSet(), maphash.MakeSeed(), time.Unix(1_700_000_040, 0)
	s.window = newSetWindow(0, 0)
	next, charged := 0, 0
	for step := range 30 {
		fresh := []int{3000, 20_000, 0, 500}[step%4]
		if step >= 20 {
			fresh = 0
		}
		for range fresh {
			s.add(seed, fmt.Append(nil, next))
			s.add(seed, fmt.Append(nil, next))
			next++
		}
		want := 0
		for i := max(step-4, 0); i <= min(step, 19); i++ {
			want += []int{3000, 20_000, 0, 500}[i%4]
		}
		interval, window := s.flush(start.Add(time.Duration(step) * 2 * time.Minute))
		if math.Abs(window-float64(want)) > 0.04*float64(want) || math.Abs(interval-float64(fresh)) > 0.04*float64(fresh) {
			t.Errorf("step %d: %v in the window and %v in the interval, want %d and %d", step, window, interval, want, fresh)
		}
		charged = max(charged, s.charged)
	}
	if s.registers != nil || s.charged != 0 || charged < 4<<setBits || charged > 6<<setBits {
		t.Errorf("estimates still: %t; %d bytes charged at most, now %d", s.registers != nil, charged, s.charged)
	}
}

// TestSetForgetsMembers: a set that had many members keeps no memory of them when few
// are left in its window.
func TestSetForgetsMembers(t *testing.T) {
	s, seed, start := newTestSet(), maphash.MakeSeed(), time.Unix(1_700_000_040, 0)
	s.window = newSetWindow(0, 0)
	for i := range 1000 {
		s.add(seed, fmt.Append(nil, i))
	}
	for step := range 10 {
		s.add(seed, fmt.Append(nil, "new ", step))
		_, window := s.flush(start.Add(time.Duration(step) * 2 * time.Minute))
		if want := map[bool]float64{true: float64(1001 + step), false: 5}[step < 5]; window != want || (s.charged > 0) != (step < 5) {
			t.Errorf("step %d: %v members, want %v; %d bytes charged", step, window, want, s.charged)
		}
	}
}

// TestKnownMembersTakeNoMemory: at the memory budget, members that a set has already do
// not let its table grow.
func TestKnownMembersTakeNoMemory(t *testing.T) {
	m := newMemory(1<<29, func() int64 { return 0 })
	s, seed := &set{memory: &m, gauge: store.New(store.Options{}).Root().FloatGauge("s")}, maphash.MakeSeed()
	add := func(i int) { s.add(seed, fmt.Append(nil, i)) }
	const full = 512 // of the last table within the reserve
	for i := range full {
		add(i)
	}
	m.charge(1 << 30)
	add(0)
	if taken := len(s.hashes) * slotBytes; taken > setReserve+s.charged {
		t.Errorf("%d bytes are charged for a table of %d", setReserve+s.charged, taken)
	}
	add(full)
	if got := count(s); got < full*0.97 || got > full*1.03 || s.charged != 0 {
		t.Errorf("counted %v members, want about %d; %d bytes charged", got, full+1, s.charged)
	}
}

// TestSetWindowOfRules: rules and their defaults can have a time of their own.
func TestSetWindowOfRules(t *testing.T) {
	rules, err := mapping.New(mapping.Config{
		Rules:   []mapping.Rule{{Match: "short.*", Name: "short", Observe: &mapping.Observe{MaxAge: time.Minute, Quantiles: []float64{0.5}}}},
		Observe: &mapping.Observe{Quantiles: []float64{0.5}, MaxAge: time.Hour, Steps: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, Config{Rules: rules})
	r.send("short.x:a|s\nother:a|s")
	r.flush()
	r.now = r.now.Add(time.Minute)
	r.flush()
	r.want("other 1", "short 0")
	r.now = r.now.Add(time.Hour)
	r.flush()
	r.want("other 0", "short 0")
}

func TestTopSketch(t *testing.T) {
	var s topSketch
	for i := range uint32(10_000) {
		s.add(i%5, 3)
		s.add(1000+i, 1) // noise
	}
	counts := map[uint32]uint64{}
	s.take(counts)
	for item := range uint32(5) {
		if n := counts[item]; n < 6000 || n > 6000+40_000/64 {
			t.Errorf("item %d: count %d, want 6000", item, n)
		}
		delete(counts, item)
	}
	for item, n := range counts {
		if n > 40_000/64+1 {
			t.Errorf("item %d of the noise has a count of %d", item, n)
		}
	}
	if s.n != 0 {
		t.Error("the sketch is not empty after take")
	}
}

// TestTopSketchLooks: few samples are counted exactly, many nearly so even if
// they come in an order that repeats with the distance of looks.
func TestTopSketchLooks(t *testing.T) {
	r := newRig(t, Config{})
	r.flush()
	r.now = r.now.Add(2 * time.Second)
	r.send("few:1:2:3|ms\nfew:4|ms\nonce:1|c")
	r.flush()
	if got, want := r.Report().TopSamples, []report.NameRate{{Name: "few", PerSecond: 2}, {Name: "once", PerSecond: 0.5}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for range 7 { // nothing since
		r.now = r.now.Add(8 * time.Second)
		r.flush()
	}
	if got, want := r.Report().TopSamples, []report.NameRate{{Name: "few", PerSecond: 4.0 / 58}, {Name: "once", PerSecond: 1.0 / 58}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	r.now = r.now.Add(8 * time.Second)
	r.flush()
	if got := r.Report().TopSamples; len(got) != 0 {
		t.Errorf("%v in a minute without samples", got)
	}
	r.now = r.now.Add(time.Hour)
	r.flush() // what came before is out of the way

	for range 100_000 {
		r.send("a:1|c\nb:1|c\nc:1|c\nd:1|c")
	}
	r.now = r.now.Add(time.Second)
	r.flush()
	top := r.Report().TopSamples
	for _, x := range top {
		if x.PerSecond < 80_000 || x.PerSecond > 120_000 {
			t.Errorf("%v, want about 100000 a second", x)
		}
	}
	if len(top) != 4 {
		t.Errorf("%d names of 4: %v", len(top), top)
	}
}

// TestTopSketchSamples: the first 1024 lines are all counted, then one in 64 on average,
// which stands for as many.
func TestTopSketchSamples(t *testing.T) {
	var s topSketch
	for range 2 {
		for n := range 1023 {
			if s.look(1, 2); s.wait != 1 || s.stands != 1 {
				t.Fatalf("after %d lines the next one sampled is number %d, for %d", n+1, s.wait, s.stands)
			}
		}
		const looks = 10_000
		sum, least, most := 0, 1000, 0
		for range looks {
			s.look(2, 2)
			sum, least, most = sum+s.wait, min(least, s.wait), max(most, s.wait)
			if s.stands != 64 {
				t.Fatalf("a line stands for %d", s.stands)
			}
		}
		if mean := sum / looks; mean < 62 || mean > 66 || least != 1 || most != 127 {
			t.Errorf("every %dth line is sampled, at distances from %d to %d", mean, least, most)
		}
		counts := map[uint32]uint64{1: 5}
		s.take(counts)
		if want := map[uint32]uint64{1: 5 + 2*1023, 2: 2 + 2*64*(looks-1)}; !maps.Equal(counts, want) {
			t.Errorf("counts %v, want %v", counts, want)
		}
		if s.n != 0 || s.wait != 0 || s.stands != 0 || s.looks != 0 {
			t.Errorf("after the end of an interval: %+v", s)
		}
	}
}

func TestRing(t *testing.T) {
	r := newRing[int](3)
	if r.list() == nil || len(r.list()) != 0 {
		t.Error("an empty ring lists something")
	}
	for i := range 5 {
		r.add(i)
		if got := r.list(); got[len(got)-1] != i || len(got) > 3 {
			t.Errorf("after %d: %v", i, got)
		}
	}
	if got := r.list(); !slices.Equal(got, []int{2, 3, 4}) || r.oldest() != 2 {
		t.Errorf("%v, oldest %d", got, r.oldest())
	}
	none := newRing[int](0)
	none.add(1)
	if len(none.list()) != 0 {
		t.Error("a ring of 0 keeps something")
	}
}

// TestCardinalityWithoutZeros: the estimate for few members needs registers that are zero.
func TestCardinalityWithoutZeros(t *testing.T) {
	registers := make([]uint8, 1<<setBits)
	for i := range registers {
		registers[i] = 1
	}
	m := float64(len(registers))
	if got, want := cardinality(registers), 0.7213/(1+1.079/m)*2*m; math.Abs(got-want) > want*1e-9 {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := cardinality(make([]uint8, 1<<setBits)); got != 0 {
		t.Errorf("an empty set has %v members", got)
	}
}
