package render

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/store"
)

func walkStore() *store.Store {
	st := store.New(store.Options{})
	sc := st.Scope("")
	sc.Counter("b.count").Inc()
	sc.Counter("d.unused")
	sc.Gauge("a.gauge").Set(1)
	sc.Text("c.text").Set("x")
	sc.Histogram("b.hist", store.Unspecified).Record(1)
	sc.Histogram("e.hist", store.Unspecified).Record(1)
	st.Flush(store.FlushOptions{}).Close()
	return st
}

// names walks and returns the names, and the count of the rest from the given step on.
func names(w *Walk, steps int) (out []string, rest int) {
	for range steps {
		if !w.Next() {
			break
		}
		out = append(out, w.Stat().Name())
	}
	return out, w.Rest()
}

func TestWalkMergesAllKindsByName(t *testing.T) {
	st := walkStore()
	v := st.View()
	defer v.Close()
	filter := func(pattern string) *Filter {
		f, err := NewFilter(RE2, pattern, FilterLimits{})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, tt := range []struct {
		name string
		o    Options
		want string
	}{
		{"all", Options{}, "a.gauge b.count b.hist c.text d.unused e.hist"},
		{"used", Options{UsedOnly: true}, "a.gauge b.count b.hist c.text e.hist"},
		{"counters", Options{Type: Counters}, "b.count d.unused"},
		{"gauges", Options{Type: Gauges}, "a.gauge"},
		{"texts", Options{Type: TextReadouts}, "c.text"},
		{"histograms", Options{Type: Histograms}, "b.hist e.hist"},
		{"filter", Options{Filter: filter("^b|text")}, "b.count b.hist c.text"},
		{"none", Options{Filter: filter("nothing")}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := strings.Fields(tt.want)
			for steps := range len(want) + 2 {
				w := NewWalk(v, tt.o)
				got, rest := names(w, steps)
				first := want[:min(steps, len(want))]
				if !slices.Equal(got, first) || rest != len(want)-len(first) || w.Err() != nil {
					t.Errorf("%d steps: %q and %d more, %v; want %q", steps, got, rest, w.Err(), tt.want)
				}
				if w.Next() {
					t.Error("there is a stat behind the rest")
				}
			}
		})
	}
}

func TestWalkEndsWhenTheFilterIsTooExpensive(t *testing.T) {
	st := walkStore()
	v := st.View()
	defer v.Close()
	now := time.Unix(0, 0)
	f, err := NewFilter(RE2, "x", FilterLimits{Budget: 1, Now: func() time.Time { now = now.Add(time.Second); return now }})
	if err != nil {
		t.Fatal(err)
	}
	w := NewWalk(v, Options{Filter: f})
	if _, rest := names(w, 1); !errors.Is(w.Err(), ErrTooExpensive) || rest != 0 {
		t.Errorf("%d, %v", rest, w.Err())
	}
}
