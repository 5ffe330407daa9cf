package render

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/internal/protobuf"
	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// kinds makes a used stat of a name, by kind.
var kinds = map[string]func(sc *store.Scope, name string){
	"text":    func(sc *store.Scope, name string) { sc.Text(name).Set("x") },
	"counter": func(sc *store.Scope, name string) { sc.Counter(name).Inc() },
	"gauge":   func(sc *store.Scope, name string) { sc.Gauge(name).Set(1) },
	"hist":    func(sc *store.Scope, name string) { sc.Histogram(name, store.Unspecified).Record(1) },
}

// TestEveryStatIsShown has several stats of one kind, first alone and then beside one
// stat of each other kind: all forms show each of them.
func TestEveryStatIsShown(t *testing.T) {
	for kind, fill := range kinds {
		for _, n := range []int{1, 3} {
			for _, others := range []bool{false, true} {
				st := newStore(store.Options{})
				for i := range n {
					fill(st.Root(), fmt.Sprintf("m_%s_%d", kind, i))
				}
				want := n
				if others {
					for other, fill := range kinds {
						fill(st.Root(), "a_"+other)
						fill(st.Root(), "z_"+other)
					}
				}
				st.Flush(store.FlushOptions{}).Close()
				for form, write := range forms() {
					for _, buckets := range []Buckets{Default, Cumulative, Disjoint, Detailed, Summary} {
						var b bytes.Buffer
						if err := write(&b, st, Options{TextReadouts: true, OmitCreated: true, Buckets: buckets}); err != nil {
							t.Fatal(err)
						}
						shown := map[string]bool{}
						for i := range n {
							if name := fmt.Sprintf("m_%s_%d", kind, i); strings.Contains(b.String(), name) {
								shown[name] = true
							}
						}
						if len(shown) != want {
							t.Errorf("%s, form %d, others %t: shows %q of %d", form, buckets, others, slices.Sorted(maps.Keys(shown)), n)
						}
					}
				}
			}
		}
	}
}

// failing is a writer whose write number ok fails, the first being 0.
type failing struct{ ok, writes int }

var errFull = errors.New("full")

func (f *failing) Write(p []byte) (int, error) {
	if f.writes++; f.writes > f.ok {
		return 0, errFull
	}
	return len(p), nil
}

// TestWriterFails fails each write of each form in turn: the form ends there, returns
// the error, and closes its view.
func TestWriterFails(t *testing.T) {
	fills := maps.Clone(kinds)
	fills["host"] = func(*store.Scope, string) {}
	pad := strings.Repeat("p", 100)
	for kind, fill := range fills {
		st := newStore(store.Options{})
		for i := range 1500 {
			fill(st.Root(), fmt.Sprint("n", i, pad))
		}
		st.Flush(store.FlushOptions{}).Close()
		o := Options{TextReadouts: true}
		if kind == "host" {
			o.Endpoints = func(yield func(*Endpoint) bool) {
				for i := range 1500 {
					if !yield(&Endpoint{Cluster: "c" + pad, Address: fmt.Sprint(i), Stats: []EndpointStat{{"cx_total", false, 1}}}) {
						return
					}
				}
			}
		}
		for form, write := range forms() {
			var all failing
			all.ok = 1 << 20
			if err := write(&all, st, o); err != nil {
				t.Fatal(err)
			}
			if all.writes < 2 {
				t.Errorf("%s of %s: %d writes, want several", form, kind, all.writes)
			}
			for ok := range all.writes {
				f := failing{ok: ok}
				if err := write(&f, st, o); !errors.Is(err, errFull) || f.writes != ok+1 {
					t.Errorf("%s of %s: write %d of %d fails: %v after %d writes", form, kind, ok, all.writes, err, f.writes)
				}
			}
			if n := st.OpenViews(); n != 0 {
				t.Errorf("%s of %s: %d views are open", form, kind, n)
			}
		}
	}
}

// otherPast has the same values for all stats.
type otherPast struct{ h *histogram.Snapshot }

func (otherPast) Has(*store.Cursor) bool                         { return true }
func (otherPast) AppendValue(dst []byte, _ *store.Cursor) []byte { return append(dst, "4711"...) }
func (p otherPast) Histogram(*store.Cursor) *histogram.Snapshot  { return p.h }

// TestPastReplacesValues expects the values of the past in place of the present ones.
func TestPastReplacesValues(t *testing.T) {
	st := newStore(store.Options{})
	st.Root().Counter("a.count").Add(5)
	st.Root().Gauge("b.gauge").Set(6)
	st.Root().Histogram("c.hist", store.Unspecified).Record(7)
	old := st.Root().Histogram("old", store.Unspecified)
	old.Record(300)
	st.Flush(store.FlushOptions{}).Close()
	past := otherPast{old.Snapshot()}
	hosts := func(func(*Endpoint) bool) { t.Error("asks for hosts, which have no past") }
	for form, write := range map[string]func(io.Writer, *store.Store, Options) error{"text": Text, "json": JSON} {
		for _, tt := range []struct {
			name string
			want string
		}{
			{"a.count", "4711"},
			{"b.gauge", "4711"},
			{"c.hist", "300"},
		} {
			var b bytes.Buffer
			o := Options{Past: past, Endpoints: hosts, Filter: newFilter(t, RE2, "^"+tt.name+"$", FilterLimits{})}
			if err := write(&b, st, o); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(b.String(), tt.want) {
				t.Errorf("%s of %s lacks %s:\n%s", form, tt.name, tt.want, &b)
			}
		}
	}
}

// TestSelections compares all ways to select stats with one another and with a plain
// rule, for all combinations of options.
func TestSelections(t *testing.T) {
	type stat struct {
		name         string
		typ          Type
		used, hidden bool
	}
	stats := []stat{
		{"a.count", Counters, true, false}, {"b.count", Counters, false, false}, {"old.c.count", Counters, true, false},
		{"a.gauge", Gauges, true, false}, {"b.gauge", Gauges, false, false}, {"old.c.gauge", Gauges, true, false},
		{"a.dark", Gauges, true, true}, {"b.dark", Gauges, false, true}, {"old.c.dark", Gauges, true, true},
		{"a.text", TextReadouts, true, false}, {"b.text", TextReadouts, false, false}, {"old.c.text", TextReadouts, true, false},
		{"a.hist", Histograms, true, false}, {"b.hist", Histograms, false, false}, {"old.c.hist", Histograms, true, false},
	}
	st := newStore(store.Options{})
	for _, s := range stats {
		switch c := st.Root(); s.typ {
		case Counters:
			if h := c.Counter(s.name); s.used {
				h.Inc()
			}
		case Gauges:
			mode := store.Accumulate
			if s.hidden {
				mode = store.HiddenAccumulate
			}
			if h := c.GaugeWithMode(s.name, mode); s.used {
				h.Set(1)
			}
		case TextReadouts:
			if h := c.Text(s.name); s.used {
				h.Set("x")
			}
		case Histograms:
			if h := c.Histogram(s.name, store.Unspecified); s.used {
				h.Record(1)
			}
		}
	}
	st.Flush(store.FlushOptions{}).Close()
	v := st.View()
	defer v.Close()
	sets := []store.NameSet{store.Scalars, store.Texts, store.Histograms}
	for _, typ := range []Type{All, Counters, Gauges, Histograms, TextReadouts} {
		for _, hidden := range []Hidden{HiddenExclude, HiddenInclude, HiddenOnly} {
			for bits := range 8 {
				o := Options{Type: typ, Hidden: hidden, UsedOnly: bits&1 != 0}
				if bits&2 != 0 {
					o.Filter = newFilter(t, RE2, `a|c\.`, FilterLimits{})
				}
				if bits&4 != 0 {
					o.Past = pastOf("old.")
				}
				var want, byName, matched, walked []string
				for _, s := range stats {
					if (typ == All || typ == s.typ) && (s.used || !o.UsedOnly) &&
						(hidden == HiddenInclude || s.hidden == (hidden == HiddenOnly)) &&
						(hidden != HiddenOnly || s.typ == Gauges) &&
						(o.Past == nil || s.typ != TextReadouts && strings.HasPrefix(s.name, "old.")) &&
						(o.Filter == nil || strings.Contains(s.name, "a") || strings.Contains(s.name, "c.")) {
						want = append(want, s.name)
					}
				}
				slices.Sort(want)
				sel := NewSelector(o)
				for _, set := range sets {
					for c := sel.ByName(v, set); c.Next(); {
						if sel.Shows(&c) {
							byName = append(byName, c.Name())
						}
					}
					for c := v.ByName(set); c.Next(); {
						if ok, err := sel.Matches(&c); err != nil {
							t.Fatal(err)
						} else if ok && sel.Shows(&c) {
							matched = append(matched, c.Name())
						}
					}
				}
				for w := NewWalk(v, o); w.Next(); {
					walked = append(walked, w.Stat().Name())
				}
				slices.Sort(byName)
				slices.Sort(matched)
				for way, got := range map[string][]string{"ByName": byName, "Matches": matched, "Walk": walked} {
					if !slices.Equal(got, want) {
						t.Errorf("type %d, hidden %d, bits %b: %s selects %q, want %q", typ, hidden, bits, way, got, want)
					}
				}
			}
		}
	}
}

// TestNeighborsOfMergedFamilies: the families around a shared one have the help, unit, names
// and form that they have without it.
func TestNeighborsOfMergedFamilies(t *testing.T) {
	lines := func(merged, network bool, form string, write func(io.Writer, *store.Store, Options) error, o Options) []string {
		t.Helper()
		st := newStore(store.Options{Naming: naming.Rules{NetworkSeconds: true}})
		net := st.ScopeWith("", store.ScopeOptions{Network: true, Histograms: &store.HistogramForm{Quantiles: []float64{0.5}}})
		own := st.Root()
		for _, sc := range []*store.Scope{own, net} {
			for _, name := range []string{"a", "n", "z"} {
				sc.Describe(name+".c", store.Description{Help: "Counter " + name, Unit: "c"})
				sc.Counter(name + ".c").Add(3)
				sc.Gauge(name + ".g").Set(4)
				sc.Histogram(name+".h", store.Milliseconds).Record(1500)
			}
		}
		if merged {
			sc := own
			if network {
				sc = net
			}
			for _, name := range []string{"m.x", "m-x", "m+x"} {
				sc.Describe(name+".c", store.Description{Help: "Merged"})
				sc.Counter(name + ".c").Add(1)
				sc.Gauge(name + ".g").Set(2)
				sc.Histogram(name+".h", store.Milliseconds).Record(2500)
			}
		}
		st.Flush(store.FlushOptions{}).Close()
		var b bytes.Buffer
		if err := write(&b, st, o); err != nil {
			t.Fatal(err)
		}
		var out []string
		for line := range strings.Lines(b.String()) {
			if !strings.Contains(line, "Merged") && !regexp.MustCompile("m.x").MatchString(line) {
				out = append(out, line)
			}
		}
		return out
	}
	for form, write := range map[string]func(io.Writer, *store.Store, Options) error{"exposition": Exposition, "openmetrics": OpenMetrics} {
		for _, network := range []bool{false, true} {
			for _, o := range []Options{{}, {Buckets: Summary}, {Escaping: AllowUTF8}} {
				got, want := lines(true, network, form, write, o), lines(false, network, form, write, o)
				if !slices.Equal(got, want) {
					t.Errorf("%s, network %t: beside a shared family\n%swithout it\n%s", form, network, strings.Join(got, ""), strings.Join(want, ""))
				}
			}
		}
	}
}

// TestLargeFamiliesAreSplit: a family of many series is several messages of protobuf, each
// with its name and little more than 256 KiB, and together with all series.
func TestLargeFamiliesAreSplit(t *testing.T) {
	st := newStore(store.Options{})
	net := st.ScopeWith("", store.ScopeOptions{Network: true})
	const series = 10_000
	for i := range series {
		net.Counter("c", tags.Tag{Name: "k", Value: fmt.Sprint(strings.Repeat("v", 60), i)}).Inc()
	}
	var b bytes.Buffer
	if err := Protobuf(&b, st, Options{}); err != nil {
		t.Fatal(err)
	}
	messages, found := 0, 0
	for rest := b.Bytes(); len(rest) > 0; messages++ {
		size, w := binary.Uvarint(rest)
		msg := rest[w : w+int(size)]
		if rest = rest[w+int(size):]; len(msg) > protoPiece+1000 {
			t.Errorf("a message of %d bytes", len(msg))
		}
		var name string
		protobuf.Fields(msg, func(f protobuf.Field) {
			switch f.Number {
			case 1:
				name = string(f.Bytes)
			case 4:
				found++
			}
		})
		if name != "c" {
			t.Errorf("a message of %q", name)
		}
	}
	if messages < 3 || found != series {
		t.Errorf("%d messages with %d series", messages, found)
	}
}

// TestBoundsAsInC: bounds that are not exact in binary are shown with all their digits,
// unless the histogram keeps decimals, as histograms of network input do.
func TestBoundsAsInC(t *testing.T) {
	st := newStore(store.Options{Histograms: []store.HistogramSetting{{Match: func(string) bool { return true }, Buckets: []float64{0.1, 2}}}})
	st.Root().Histogram("plain", store.Unspecified).Record(1)
	st.Root().Histogram("seconds", store.Seconds).Record(1)
	st.ScopeWith("", store.ScopeOptions{Network: true}).Histogram("received", store.Unspecified).Record(1)
	st.Flush(store.FlushOptions{}).Close()
	var b bytes.Buffer
	if err := Exposition(&b, st, Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`plain_bucket{le="0.10000000000000000555111512312578"} 0`, `plain_bucket{le="2"} 1`, `received_bucket{le="0.1"} 0`, `seconds_bucket{le="0.1"} 0`} {
		if !strings.Contains(b.String(), want+"\n") {
			t.Errorf("no %s in\n%s", want, &b)
		}
	}
}

// TestHostFamiliesWithoutName: host statistics that have no metric name are left out, and the
// others are shown.
func TestHostFamiliesWithoutName(t *testing.T) {
	st := newStore(store.Options{Naming: naming.Rules{Namespaces: []string{"cluster.endpoint"}}})
	o := Options{Endpoints: func(yield func(*Endpoint) bool) {
		yield(&Endpoint{Cluster: "c", Address: "1.2.3.4:5", Stats: []EndpointStat{
			{"1st", false, 1}, {"cx_total", false, 2}, {"2nd", true, 3}, {"cx_active", true, 4},
		}})
	}}
	for form, write := range map[string]func(io.Writer, *store.Store, Options) error{"exposition": Exposition, "openmetrics": OpenMetrics, "protobuf": Protobuf} {
		var b bytes.Buffer
		if err := write(&b, st, o); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]bool{"1st": false, "cx_total": true, "2nd": false, "cx_active": true} {
			if got := strings.Contains(b.String(), name); got != want {
				t.Errorf("%s: %s is shown: %t", form, name, got)
			}
		}
	}
}
