package store

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/statsd-admin/statsd-admin/store/tags"
)

// at returns a cursor at the stat called name.
func at(t *testing.T, v *View, name string) *Cursor {
	t.Helper()
	c, ok := v.Find(name)
	if !ok {
		t.Fatalf("no %s", name)
	}
	return &c
}

// TestValueAfterTheTotalWrapped: the value of a counter that was reset counts on when its
// total wraps at 2^64.
func TestValueAfterTheTotalWrapped(t *testing.T) {
	st := New(Options{})
	counter := st.Root().Counter("c")
	counter.Add(math.MaxUint64 - 1)
	st.ResetCounters()
	counter.Add(5)
	v := st.View()
	defer v.Close()
	if got := at(t, v, "c").Uint(); got != 5 || counter.Value() != 5 {
		t.Errorf("the cursor shows %d, the counter %d; want 5", got, counter.Value())
	}
}

// TestResetBehindACursor: a counter that is reset after the cursor has read its total
// shows 0, not a difference below it.
func TestResetBehindACursor(t *testing.T) {
	st := New(Options{})
	counter := st.Root().Counter("c")
	counter.Add(5)
	v := st.View()
	defer v.Close()
	c := at(t, v, "c")
	if got := c.Uint(); got != 5 {
		t.Errorf("value %d, want 5", got)
	}
	st.ResetCounters()
	if got := c.Uint(); got != 0 {
		t.Errorf("value %d after a reset, want 0", got)
	}
	counter.Add(3)
	st.ResetCounters()
	if got := c.Uint(); got != 0 || c.Float() != 0 || string(c.AppendValue(nil)) != "0" {
		t.Errorf("value %d after a reset of more than the cursor knows, want 0", got)
	}
	counter.Add(2)
	if got := at(t, v, "c").Uint(); got != 2 {
		t.Errorf("value %d, want 2", got)
	}
}

// TestValuesOfCursors: one value in each of the forms of it.
func TestValuesOfCursors(t *testing.T) {
	st := New(Options{})
	st.Root().Counter("large").Add(math.MaxUint64)
	st.Root().Gauge("zero")
	st.Root().Gauge("negative").Sub(3)
	st.Root().Gauge("most").Set(math.MaxInt64)
	_ = st.Root().FloatGauge("fraction").Set(-0.5)
	v := st.View()
	defer v.Close()
	for name, want := range map[string]struct {
		float float64
		text  string
	}{
		"large":    {math.MaxUint64, "18446744073709551615"},
		"zero":     {0, "0"},
		"negative": {-3, "-3"},
		"most":     {math.MaxInt64, "9223372036854775807"},
		"fraction": {-0.5, "-0.5"},
	} {
		c := at(t, v, name)
		if c.Float() != want.float || string(c.AppendValue([]byte("v"))) != "v"+want.text {
			t.Errorf("%s: %v and %q, want %v and %q", name, c.Float(), c.AppendValue(nil), want.float, want.text)
		}
		raw := c.Raw()
		if c.SetRaw(raw + 1); c.Raw() != raw+1 {
			t.Errorf("%s: raw value %d, want %d", name, c.Raw(), raw+1)
		}
	}
}

// TestIDsOfCursors: no two stats have one while a view is open.
func TestIDsOfCursors(t *testing.T) {
	st := New(Options{})
	const n = slotsPerBlock + 10
	for i := range n {
		st.Root().Counter(fmt.Sprint(i))
	}
	st.Root().Text("t")
	v := st.View()
	defer v.Close()
	seen := map[uint32]bool{}
	for _, set := range []NameSet{Texts, Scalars} {
		for c := v.ByName(set); c.Next(); {
			seen[c.ID()] = true
		}
	}
	if len(seen) != n+1 {
		t.Errorf("%d ids for %d stats", len(seen), n+1)
	}
}

// TestUsedTexts: a text readout is used once it is set, also to nothing.
func TestUsedTexts(t *testing.T) {
	st := New(Options{})
	for i := range 3 * batchSteps {
		st.Root().Text(fmt.Sprintf("t%03d", i))
	}
	unset := st.Root().Text("unset")
	st.Root().Text("empty").Set("")
	st.Root().Text("set").Set("x")
	v := st.View()
	defer v.Close()
	var got []string
	c := v.ByName(Texts)
	for c.UsedOnly(); c.Next(); {
		got = append(got, c.Name()+"="+c.Text())
	}
	if want := []string{"empty=", "set=x"}; !slices.Equal(got, want) {
		t.Errorf("used are %q, want %q", got, want)
	}
	if got := unset.Value(); got != "" {
		t.Errorf("a readout that was never set is %q", got)
	}
}

// TestUsedOnlyFindsFewAmongMany: the used stats are far apart, in many chunks.
func TestUsedOnlyFindsFewAmongMany(t *testing.T) {
	st := New(Options{})
	const n = 5 * chunkSize
	for i := range n {
		c := st.Root().Counter(fmt.Sprintf("c%05d", i))
		if i%701 == 0 || i >= n-batchSteps-1 {
			c.Inc()
		}
	}
	v := st.View()
	defer v.Close()
	want := (n-1)/701 + 1 + batchSteps + 1
	got := 0
	c := v.ByName(Scalars)
	for c.UsedOnly(); c.Next(); got++ {
		if c.Uint() != 1 {
			t.Errorf("%s is unused", c.Name())
		}
	}
	if got != want {
		t.Errorf("%d used stats, want %d", got, want)
	}
}

func TestTagSteps(t *testing.T) {
	st := New(Options{OwnPrefix: "own"})
	st.Own().Counter("cluster.web.rq")
	st.Root().Counter("cluster.web.rq")
	st.Root().Counter("plain.rq")
	st.Root().Counter("given", tags.Tag{Name: "k", Value: "v"})
	v := st.View()
	defer v.Close()
	for name, want := range map[string]struct {
		steps int
		given bool
		text  string // of the first step
		tags  string
	}{
		"own.cluster.web.rq": {1, false, "web", "own.cluster.rq [{proxy.cluster_name web}]"},
		"cluster.web.rq":     {1, false, "web", "cluster.rq [{proxy.cluster_name web}]"},
		"plain.rq":           {0, false, "", ""},
		"given.k.v":          {0, true, "", "given [{k v}]"},
	} {
		c := at(t, v, name)
		steps, given := c.TagSteps()
		if len(steps) != want.steps || given != want.given {
			t.Errorf("%s: steps %+v, given %t", name, steps, given)
		}
		if len(steps) == 1 && steps[0].Value != want.text {
			t.Errorf("%s: %+v, want the value %q", name, steps[0], want.text)
		}
		got := ""
		if f := c.Family(); f != nil {
			got = fmt.Sprint(f, " ", c.AppendTags(nil))
		}
		if got != want.tags {
			t.Errorf("%s: %q, want %q", name, got, want.tags)
		}
	}
}

// TestEndsOfRecordsAreCompared: a cursor takes two records for equal only if all bytes
// behind the name are.
func TestEndsOfRecordsAreCompared(t *testing.T) {
	if !overread {
		t.Skip("records are not compared")
	}
	st := New(Options{})
	family, tag := st.names.hold(nameKey{text: "family"}), st.names.hold(nameKey{text: "tag"})
	const large = 1 << 21 // takes four bytes
	for _, tt := range []struct {
		name          string
		num, segment  uint64
		size, padding int // with what follows
		noted         bool
	}{
		{"short", uint64(tag), 3, 5, 3, true},
		{"eight bytes", uint64(tag), large, 8, 0, true},
		{"nine bytes", 200, large, 9, 0, false},
		{"no segment", uint64(tag), 0, 5, 3, false},
		{"end of the memory", uint64(tag), 3, 5, 2, false},
	} {
		rest := []byte{flagTagged, byte(family), 1}
		rest = binary.AppendUvarint(binary.AppendUvarint(rest, tt.num), tt.segment)
		if len(rest) != tt.size {
			t.Fatalf("%s: %d bytes", tt.name, len(rest))
		}
		rest = append(rest, make([]byte, tt.padding)...)
		c := &Cursor{s: st}
		c.tagged.mask = 1
		c.noteTagged(rest, rest[3:], st.names.at(family))
		if !tt.noted {
			if c.tagged.mask != 0 {
				t.Errorf("%s: is noted", tt.name)
			}
			continue
		}
		if !c.tagged.is(rest) || c.tagged.family.String() != "family" || c.tagged.label.String() != "tag" || c.tagged.segment != int(tt.segment)-1 {
			t.Errorf("%s: noted as %+v", tt.name, c.tagged)
		}
		for i := range rest {
			other := slices.Clone(rest)
			other[i] ^= 0x40
			if got, want := c.tagged.is(other), i >= tt.size; got != want {
				t.Errorf("%s: with another byte %d the records are equal: %t", tt.name, i, got)
			}
		}
		if c.tagged.is(rest[:7]) {
			t.Errorf("%s: a record at the end of the memory is compared", tt.name)
		}
	}
}

// TestCountingCursors expects the stats of a walk after any number of them, without those
// that have ended.
func TestCountingCursors(t *testing.T) {
	type stat struct {
		id     uint32
		ref    uint64
		kind   Kind
		hidden bool
	}
	st := New(Options{})
	for i := range 3 * batchSteps {
		st.Root().Counter(fmt.Sprint("c", i))
		st.Root().GaugeWithMode(fmt.Sprint("g", i), HiddenAccumulate)
		st.Root().Gauge(fmt.Sprint("h", i))
	}
	scope := st.Scope("ended")
	scope.Counter("c")
	v := st.View()
	defer v.Close()
	walk := func(steps int) (list []stat) {
		c := v.ByName(Scalars)
		for i := 0; ; i++ {
			if i == steps {
				c.Counting()
			}
			if !c.Next() {
				return list
			}
			list = append(list, stat{c.ID(), c.Ref(), c.Kind(), c.Hidden()})
		}
	}
	v.ByName(Scalars)
	scope.Close()
	want := walk(-1)
	if len(want) < 9*batchSteps {
		t.Fatalf("%d stats", len(want))
	}
	for _, steps := range []int{0, 1, batchSteps, batchSteps + 1, len(want)} {
		if got := walk(steps); !slices.Equal(got, want) {
			t.Errorf("counting after %d steps: %d stats, want %d", steps, len(got), len(want))
		}
	}
}
