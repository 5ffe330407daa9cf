package store_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// TestPatterns compares patterns with the family and the labels of stats of all kinds,
// with more families than slots, tags without values and bytes to escape.
func TestPatterns(t *testing.T) {
	rules, err := tags.New(tags.Config{})
	if err != nil {
		t.Fatal(err)
	}
	st := store.New(store.Options{Tags: rules})
	r := rand.New(rand.NewPCG(1, 2))
	own, network := st.Scope("own"), st.ScopeWith("", store.ScopeOptions{Network: true})
	texts := []string{"a", "b.c", "v", "", "é", "\xff", `"`, "long value"}
	for i := range 6000 {
		sc := own
		if i%2 == 0 {
			sc = network
		}
		name := fmt.Sprint("n", r.IntN(600))
		var tgs []tags.Tag
		for j := range max(r.IntN(4), r.IntN(60)-48) {
			text := texts[r.IntN(2)]
			if r.IntN(8) == 0 {
				text = texts[r.IntN(len(texts))]
			}
			tgs = append(tgs, tags.Tag{Name: fmt.Sprint("t", j, r.IntN(16)/15), Value: text})
		}
		switch i % 5 {
		case 0:
			sc.Gauge(name, tgs...).Set(1)
		case 1:
			sc.Histogram(name, store.Unspecified, tgs...)
		default:
			sc.Counter(name, tgs...).Inc()
		}
		if i%7 == 0 {
			own.Counter(fmt.Sprint("cluster.c", r.IntN(50), ".upstream_rq_", 200+r.IntN(9))).Inc()
		}
	}
	snap := st.Flush(store.FlushOptions{})
	defer snap.Close()
	found, all := 0, 0
	check := func(c *store.Cursor) {
		all++
		p := c.Pattern()
		if p == nil {
			return
		}
		found++
		values, labels := c.Values(p), c.Labels()
		if p.Family() != c.Family() || len(p.Tags()) != len(labels) || len(values) != len(labels) || !c.Plain() {
			t.Fatalf("%s: family %v with %d tags and %d values, want %v with %d", c.Name(), p.Family(), len(p.Tags()), len(values), c.Family(), len(labels))
		}
		for i, l := range labels {
			if p.Tags()[i] != l.Name || string(values[i]) != string(l.Value) || len(l.Value) == 0 {
				t.Fatalf("%s: tag %s is %q, want %s %q", c.Name(), p.Tags()[i], values[i], l.Name, l.Value)
			}
		}
	}
	snap.CounterChanges(func(c *store.Cursor, _ uint64) bool { check(c); return true })
	snap.GaugeChanges(func(c *store.Cursor) bool { check(c); return true })
	for k := range store.KindHistogram + 1 {
		for c := snap.View().ByFamily(k); c.Next(); {
			check(&c)
		}
	}
	if found < all/5 || found > all*9/10 {
		t.Errorf("%d of %d stats have a pattern", found, all)
	}
}

// TestLimitsOfPatterns: a pattern has at most 8 tags, whose values are among the first 255
// segments, and 38 bytes of a record.
func TestLimitsOfPatterns(t *testing.T) {
	rules, err := tags.New(tags.Config{})
	if err != nil {
		t.Fatal(err)
	}
	segments := func(n int) string { return strings.TrimSuffix(strings.Repeat("s.", n), ".") }
	list := func(n int, name string) (tgs []tags.Tag) {
		for i := range n {
			tgs = append(tgs, tags.Tag{Name: fmt.Sprint(name, i), Value: "v"})
		}
		return tgs
	}
	st := store.New(store.Options{Tags: rules})
	st.Root().Text("x", list(1<<14, "name")...) // the numbers of names take three bytes from now on
	for name, tt := range map[string]struct {
		segments int
		tags     int
		want     bool
	}{
		"no tags":     {2, 0, false},
		"one tag":     {2, 1, true},
		"eight tags":  {2, 8, true},
		"nine tags":   {2, 9, false},
		"segment 254": {253, 1, true},
		"segment 255": {254, 1, false},
		"38 bytes":    {112, 8, true},
		"39 bytes":    {114, 8, false},
	} {
		sc := st.Scope("s")
		for i := range 3 {
			tgs := list(tt.tags, "t")
			if tt.tags > 0 {
				tgs[0].Value = fmt.Sprint("v", i)
			}
			sc.Counter(segments(tt.segments-1), tgs...)
		}
		v := st.View()
		found := 0
		slots := map[int]bool{}
		for c := v.ByFamily(store.KindCounter); c.Next(); {
			p := c.Pattern()
			if p == nil {
				continue
			}
			found++
			slots[p.Slot()] = true
			for i, value := range c.Values(p) {
				if string(value) != string(c.Labels()[i].Value) || p.Slot() >= store.PatternSlots {
					t.Errorf("%s: value %d is %q in slot %d", name, i, value, p.Slot())
				}
			}
		}
		v.Close()
		sc.Close()
		// The first stat of a family has none yet.
		if want := map[bool]int{true: 2}[tt.want]; found != want || len(slots) > 1 {
			t.Errorf("%s: %d stats have a pattern, in %d slots; want %d", name, found, len(slots), want)
		}
	}
}
