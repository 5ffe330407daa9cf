package sinkqueue_test

import (
	"slices"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

func TestOptionsAreChecked(t *testing.T) {
	st := store.New(store.Options{})
	for _, tt := range []struct {
		o    sinkqueue.Options
		want string
		name string
	}{
		{sinkqueue.Options{}, "pkg: no store", "kind"},
		{sinkqueue.Options{Store: st}, "", "kind"},
		{sinkqueue.Options{Store: st, Name: "mine", Interval: time.Second}, "", "mine"},
	} {
		got := ""
		if err := tt.o.Check("pkg", "kind"); err != nil {
			got = err.Error()
		}
		if got != tt.want || tt.o.Name != tt.name {
			t.Errorf("error %q, name %q; want %q, %q", got, tt.o.Name, tt.want, tt.name)
		}
	}
}

// TestNamesAndTagsOfOptions: the prefix and tags of a sink are added to the stats, whose own
// tags take precedence.
func TestNamesAndTagsOfOptions(t *testing.T) {
	rules, err := tags.New(tags.Config{})
	if err != nil {
		t.Fatal(err)
	}
	st := store.New(store.Options{Tags: rules})
	st.Root().Counter("plain.name")
	st.Root().Counter("")
	st.Root().Counter("tagged", tags.Tag{Name: "a", Value: "1"}, tags.Tag{Name: "b", Value: "2"}, tags.Tag{Name: "a", Value: "3"})
	add := []tags.Tag{{Name: "b", Value: "other"}, {Name: "c", Value: "4"}}
	v := st.View()
	defer v.Close()
	for _, tt := range []struct {
		full, prefix, name string
		tags               []tags.Tag
	}{
		{"plain.name", "", "plain.name", add},
		{"plain.name", "p.q", "p.q.plain.name", add},
		{"", "", "", add},
		{"", "p", "", add},
		{"tagged.a.1.b.2.a.3", "p", "p.tagged", []tags.Tag{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}, {Name: "c", Value: "4"}}},
	} {
		o := sinkqueue.Options{Store: st, Prefix: tt.prefix, Tags: add}
		for range 2 { // a check again changes nothing
			if err := o.Check("pkg", "kind"); err != nil {
				t.Fatal(err)
			}
		}
		c, ok := v.Find(tt.full)
		if !ok {
			t.Fatalf("no %q", tt.full)
		}
		if got := string(o.AppendName([]byte("x"), &c)); got != "x"+tt.name {
			t.Errorf("%q with the prefix %q is called %q, want %q", tt.full, tt.prefix, got[1:], tt.name)
		}
		var got []tags.Tag
		o.EachTag(&c, func(name string, value []byte) { got = append(got, tags.Tag{Name: name, Value: string(value)}) })
		if !slices.Equal(got, tt.tags) {
			t.Errorf("%q has the tags %v, want %v", tt.full, got, tt.tags)
		}
	}
}

// TestNamesInAlphabets: cleaned names are cached with the store's name where an alphabet has
// a slot for them.
func TestNamesInAlphabets(t *testing.T) {
	st := store.New(store.Options{})
	st.Root().Counter("c", tags.Tag{Name: "a/b:c=d|", Value: "1"})
	v := st.View()
	defer v.Close()
	c, _ := v.Find("c.a/b:c=d|.1")
	name := c.Labels()[0].Name
	for what, tt := range map[string]struct {
		a      *sinkqueue.Alphabet
		want   string
		cached bool
	}{
		"graphite": {sinkqueue.GraphiteAlphabet(), "a-b_c_d_", true},
		"statsd":   {sinkqueue.StatsDAlphabet(), "a/b_c=d_", true},
		"label":    {sinkqueue.LabelAlphabet(), "a/b_c_d_", false},
		"value":    {sinkqueue.ValueAlphabet(), "a/b:c=d_", false},
	} {
		cleaned := []byte(name.String())
		if tt.a.Clean(cleaned); string(cleaned) != tt.want {
			t.Errorf("%s: cleaned %q, want %q", what, cleaned, tt.want)
		}
		first, again := tt.a.Name(name), tt.a.Name(name)
		if string(first) != tt.want || string(again) != tt.want || (&first[0] == &again[0]) != tt.cached {
			t.Errorf("%s: names %q and %q, want %q, cached %t", what, first, again, tt.want, tt.cached)
		}
	}
}

// TestPatternsKeepValues: the value of a pattern is known until another one has its slot.
func TestPatternsKeepValues(t *testing.T) {
	st := store.New(store.Options{})
	for i := range 3 {
		value := string(rune('a' + i))
		st.Root().Counter("one", tags.Tag{Name: "k", Value: value})
		st.Root().Counter("two", tags.Tag{Name: "k", Value: value})
	}
	v := st.View()
	defer v.Close()
	var patterns []*store.Pattern
	for c := v.ByFamily(store.KindCounter); c.Next(); {
		if p := c.Pattern(); p != nil && !slices.Contains(patterns, p) {
			patterns = append(patterns, p)
		}
	}
	var kept sinkqueue.Patterns[int]
	for round := range 2 {
		for i, p := range patterns {
			value, known := kept.Of(p)
			if known != (round > 0) || known && *value != i {
				t.Errorf("round %d: value %d of pattern %d, known %t", round, *value, i, known)
			}
			*value = i
		}
	}
	if len(patterns) != 2 {
		t.Fatalf("%d patterns, want 2", len(patterns))
	}
	same := *patterns[0] // in the same slot
	if value, known := kept.Of(&same); known || *value != 0 {
		t.Errorf("the value %d of another pattern is known: %t", *value, known)
	}
	if _, known := kept.Of(patterns[0]); known {
		t.Error("the value of a pattern whose slot was taken is known")
	}
}

// TestOwedIsTakenOnce: the increments of a series are returned and removed.
func TestOwedIsTakenOnce(t *testing.T) {
	owed := sinkqueue.Owed{"a": 3, "b": 4}
	for _, want := range []uint64{3, 0} {
		if got := owed.Take([]byte("a")); got != want {
			t.Errorf("%d increments of a, want %d", got, want)
		}
	}
	if got := owed.Take([]byte("none")); got != 0 || len(owed) != 1 || owed["b"] != 4 {
		t.Errorf("%d increments of none; %v are left", got, owed)
	}
	if got := sinkqueue.Owed(nil).Take([]byte("a")); got != 0 {
		t.Errorf("nothing owes %d", got)
	}
}

// TestEventsOfSendersAreCounted: each in a metric and in the state of delivery.
func TestEventsOfSendersAreCounted(t *testing.T) {
	q, value, stop := queue(t, &target{}, nil)
	defer stop()
	q.Lost(2)
	q.Rejected(3)
	q.Dropped(5)
	q.Skipped()
	for name, want := range map[string]uint64{"lost_packets": 2, "rejected_metrics": 3, "dropped_metrics": 5, "skipped_names": 1} {
		if got := value(name); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	if d := q.Delivery(); d.Lost != 2 || d.Rejected != 3 || d.DroppedMetrics != 5 {
		t.Errorf("the state is %+v", d)
	}
}
