package store

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// listFamilies lists all kinds by family, so that each family has its metric name.
func listFamilies(st *Store) {
	v := st.View()
	defer v.Close()
	for k := range Kind(kinds) {
		v.ByFamily(k)
	}
}

// metricOf returns the metric name of the stat under c.
func metricOf(c *Cursor) (metric string, sp *Series) {
	f, _ := c.s.familyOf(c.b, c.i)
	m, _ := c.s.appendMetric(f)
	if sp = c.Series(); sp != nil {
		m = append(m, sp.Suffix...)
	}
	return string(m), sp
}

// TestSeriesOfRandomNames: whatever exists and ends, a metric name is of one kind and of
// one origin, families that share it are merged and listed together, and nothing is left in
// the end.
func TestSeriesOfRandomNames(t *testing.T) {
	rules, err := tags.New(tags.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(24) {
		random := rand.New(rand.NewPCG(seed, 9))
		unique := seed%2 == 1
		st := New(Options{Tags: rules, Naming: naming.Rules{Bare: []string{"go"}, Unique: unique}})
		var scopes []*Scope
		for range 6 {
			scopes = append(scopes, st.ScopeWith("go", ScopeOptions{Network: random.IntN(2) == 0}))
		}
		for round := range 12 {
			for range random.IntN(8) {
				sc := scopes[random.IntN(len(scopes))]
				name := []string{"a.b", "a-b", "a_b", "a_b_counter", "a.b_gauge", "a_b_count", "c"}[random.IntN(7)]
				var tgs []tags.Tag
				if random.IntN(3) == 0 {
					tgs = []tags.Tag{{Name: []string{"x", "y"}[random.IntN(2)], Value: "1"}}
				}
				switch random.IntN(4) {
				case 0:
					sc.Gauge(name, tgs...)
				case 1:
					sc.Histogram(name, Unspecified, tgs...)
				case 2:
					sc.Text(name, tgs...)
				default:
					sc.Counter(name, tgs...)
				}
			}
			switch random.IntN(3) {
			case 0:
				i := random.IntN(len(scopes))
				scopes[i].Close()
				scopes[i] = st.ScopeWith("go", ScopeOptions{Network: random.IntN(2) == 0})
			case 1:
				st.RemoveNetwork(func(string) bool { return random.IntN(2) == 0 })
			}
			listFamilies(st)
			checkSeries(t, st, unique)
			if t.Failed() {
				t.Fatalf("seed %d, round %d", seed, round)
			}
		}
		for _, sc := range scopes {
			sc.Close()
		}
		st.View().Close()
		if st.series.owners.Len() != 0 || st.series.specials.Load() != 0 || len(st.series.shared) != 0 {
			t.Errorf("seed %d: %d metric names, %d special and %d shared families are left", seed, st.series.owners.Len(), st.series.specials.Load(), len(st.series.shared))
		}
	}
}

func checkSeries(t *testing.T, st *Store, unique bool) {
	t.Helper()
	type owner struct {
		kind     Kind
		network  bool
		families map[string]bool
		merged   bool
		last     int // position of its last stat
	}
	owners := map[string]*owner{}
	v := st.View()
	defer v.Close()
	pos := 0
	for k := range Kind(kinds) {
		for c := v.ByFamily(k); c.Next(); pos++ {
			metric, sp := metricOf(&c)
			f, _ := st.familyOf(c.b, c.i)
			o := owners[metric]
			if o == nil {
				o = &owner{k, c.Network(), map[string]bool{}, sp != nil && sp.Merged, pos}
				owners[metric] = o
			}
			o.families[f.name] = true
			if o.kind != k || o.network != c.Network() {
				t.Errorf("metric %s is of two kinds or origins", metric)
			}
			if merged := sp != nil && sp.Merged; len(o.families) > 1 && !merged || merged != o.merged {
				t.Errorf("metric %s of families %v: merged %t", metric, o.families, merged)
			}
			if pos > o.last+1 {
				t.Errorf("the families of metric %s are not listed together", metric)
			}
			o.last = pos
			if unique && len(o.families) > 1 {
				t.Errorf("metric %s is of %v although names are unique", metric, o.families)
			}
			if !st.HasMetric(metric) {
				t.Errorf("no family has the metric %s", metric)
			}
		}
	}
	for metric, o := range owners {
		if o.kind != KindHistogram {
			continue
		}
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if owners[metric+suffix] != nil {
				t.Errorf("metric %s%s is one of the histogram", metric, suffix)
			}
		}
	}
}

// TestSuffixesOfMetrics: which of two families with one metric name gets a suffix.
func TestSuffixesOfMetrics(t *testing.T) {
	rules, err := tags.New(tags.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		names  []string // kind, +n for network input, name; in the order of their lists
		unique bool
		want   string // metrics by name
		last   string // collision
		n      uint64
	}{
		{names: []string{"g a.b"}, want: "go_a_b"},
		{names: []string{"g a.b", "g a-b"}, want: "go_a_b go_a_b", last: "go.a-b go_a_b", n: 1},
		{names: []string{"g a.b", "g a-b"}, unique: true, want: "go_a_b go_a_b_gauge", last: "go.a-b go_a_b", n: 1},
		{names: []string{"g a.b", "g a-b", "g a+b"}, unique: true, want: "go_a_b go_a_b_gauge go_a_b_gauge_DIGEST", last: "go.a+b go_a_b", n: 2},
		{names: []string{"g a.b", "t a-b"}, want: "go_a_b go_a_b_text", last: "go.a-b go_a_b", n: 1},
		{names: []string{"g a.b", "t a-b", "g a_b_text"}, want: "go_a_b go_a_b_text go_a_b_text_gauge", last: "go.a_b_text go_a_b_text", n: 2},
		{names: []string{"ng a.b", "g a.b"}, want: "go_a_b_gauge go_a_b", last: "go.a.b go_a_b", n: 1},
		{names: []string{"g a.b", "ng a.b"}, want: "go_a_b go_a_b_gauge", last: "go.a.b go_a_b", n: 1},
		{names: []string{"ng a.b", "ng a_b_gauge", "g a.b"}, want: "go_a_b_gauge_gauge go_a_b_gauge go_a_b", last: "go.a.b go_a_b", n: 1},
		{names: []string{"h a.b", "g a_b_sum"}, want: "go_a_b go_a_b_sum_gauge", last: "go.a_b_sum go_a_b_sum", n: 1},
		{names: []string{"g a_b_sum", "h a.b"}, want: "go_a_b_sum go_a_b_histogram", last: "go.a.b go_a_b", n: 1},
	} {
		st := New(Options{Tags: rules, Naming: naming.Rules{Bare: []string{"go"}, Unique: tt.unique}})
		var metrics []string
		network := map[string]bool{}
		for _, text := range tt.names {
			kind, name, _ := strings.Cut(text, " ")
			kind, received := strings.CutPrefix(kind, "n")
			sc := st.ScopeWith("go", ScopeOptions{Network: received})
			switch kind {
			case "g":
				sc.Gauge(name)
			case "t":
				sc.Text(name)
			case "h":
				sc.Histogram(name, Unspecified)
			}
			network[text] = received
			listFamilies(st)
		}
		for _, text := range tt.names {
			_, name, _ := strings.Cut(text, " ")
			name = "go." + name
			b, i, _ := st.find(st.lookup.hash(network[text], name), network[text], name)
			v := st.View()
			c := v.cursor(nil)
			c.stand(makeID(b.index, i))
			metric, _ := metricOf(&c)
			v.Close()
			if tt.unique && len(metric) > len("go_a_b_gauge") {
				metric = metric[:len(metric)-16] + "DIGEST"
			}
			metrics = append(metrics, metric)
		}
		if got := strings.Join(metrics, " "); got != tt.want {
			t.Errorf("%q, unique %t: %s, want %s", tt.names, tt.unique, got, tt.want)
		}
		last := st.LastCollision()
		if got := strings.TrimSpace(last.Name + " " + last.Metric); got != tt.last || st.Collisions() != tt.n {
			t.Errorf("%q, unique %t: %d collisions, the last is %q; want %d and %q", tt.names, tt.unique, st.Collisions(), got, tt.n, tt.last)
		}
	}
}

// TestSeriesThatCanBeEqual: a family is merged if the labels of its stats can be equal, and
// is not otherwise.
func TestSeriesThatCanBeEqual(t *testing.T) {
	rules, err := tags.New(tags.Config{})
	if err != nil {
		t.Fatal(err)
	}
	tag := func(list string) (tgs []tags.Tag) {
		for text := range strings.FieldsSeq(list) {
			name, value, _ := strings.Cut(text, "=")
			tgs = append(tgs, tags.Tag{Name: name, Value: value})
		}
		return tgs
	}
	for _, tt := range []struct {
		first, second string // tags
		own, network  bool   // merged
		text          bool   // also if they are text readouts
	}{
		{"a=1", "a=2", false, false, false},
		{"a=1", "b=1", false, false, false},
		{"a=1", "a=1 b=1", false, false, false},
		{"a=1 b=2", "b=2 a=1", true, true, true},
		{"a-b=1", "a_b=1", true, true, true},
		{"a-b=1 a_b=1", "a=1", false, false, false},
		{"a", "a=true", true, true, false},
		{"a=1", "a=1 b", true, false, true},
		{"a", "b=1", true, false, false},
		{"a=\xff", "a=1", true, true, true},
		{"a=é", "a=1", false, false, false},
		{"text=1", "a=1", false, false, false},
		{"b a=1", "c=1", false, false, false},
		{"b a=1", "a=1", true, false, true},
	} {
		for _, network := range []bool{false, true} {
			for k := range Kind(kinds) {
				st := New(Options{Tags: rules})
				sc := st.ScopeWith("", ScopeOptions{Network: network})
				for _, list := range []string{tt.first, tt.second} {
					switch k {
					case KindCounter:
						sc.Counter("f", tag(list)...)
					case KindGauge:
						sc.FloatGauge("f", tag(list)...)
					case KindText:
						sc.Text("f", tag(list)...)
					case KindHistogram:
						sc.Histogram("f", Unspecified, tag(list)...)
					}
				}
				v := st.View()
				want := tt.own
				if network {
					want = tt.network
				}
				if k == KindText && !network {
					want = tt.text
				}
				n := 0
				for c := v.ByFamily(k); c.Next(); n++ {
					if sp := c.Series(); (sp != nil && sp.Merged) != want {
						t.Errorf("%q and %q, network %t, %s: %s: %+v, want merged %t", tt.first, tt.second, network, k, c.Name(), sp, want)
					}
				}
				v.Close()
				if n != 2 {
					t.Errorf("%q and %q: %d stats", tt.first, tt.second, n)
				}
			}
		}
	}
}

// TestShapes: the shapes of a family are distinguished by kind, and two with the same label
// names are noticed once each is known.
func TestShapes(t *testing.T) {
	var sh shapes
	for i, tt := range []struct {
		kind          Kind
		shape, labels uint64
		again         bool
	}{
		{KindCounter, 1, 10, false},
		{KindCounter, 2, 20, false},
		{KindCounter, 3, 10, true},
		{KindGauge, 3, 10, false},
		{KindCounter, 4, 20, true},
		{KindCounter, 2, 20, false},
		{KindGauge, 1, 30, false},
		{KindGauge, 5, 30, true},
	} {
		if got := sh.add(shapeLabels{tt.kind, tt.shape, tt.labels}); got != tt.again {
			t.Errorf("shape %d: again %t", i, got)
		}
		if !sh.knows(tt.kind, tt.shape) || sh.knows(KindText, tt.shape) || sh.knows(tt.kind, 99) {
			t.Errorf("shape %d: is known: %t", i, sh.knows(tt.kind, tt.shape))
		}
	}
	st := New(Options{})
	x, y := []shapedTag{{1, valueKept}, {2, valueEmpty}}, []shapedTag{{1, valueKept}, {2, valueChanged}}
	all := []uint64{
		hashShape(st.series.seed, x, false), hashShape(st.series.seed, x, true), hashShape(st.series.seed, y, false),
		hashShape(st.series.seed, x[:1], false), hashShape(st.series.seed, []shapedTag{{1 << 24, valueKept}}, false),
	}
	slices.Sort(all)
	if n := len(slices.Compact(all)); n != 5 || all[0] == 0 {
		t.Errorf("%d hashes of five shapes: %x", n, all)
	}
}

// TestOwnersArePacked: unpacking returns the same owner.
func TestOwnersArePacked(t *testing.T) {
	seen := map[naming.Owner]bool{}
	for _, ref := range []uint32{0, 1, 1 << 31, 1<<32 - 1} {
		for k := range Kind(kinds) {
			for _, form := range []ownerForm{ownerStat, ownerName, ownerShared} {
				o := metricOwner{ref, k, form}
				if got := unpackOwner(o.packed()); got != o || seen[o.packed()] {
					t.Errorf("%+v is unpacked as %+v", o, got)
				}
				seen[o.packed()] = true
			}
		}
	}
}

// TestSeriesOfRulesAndTags: tags that rules extract from a name and the same tags given
// with a name are one series.
func TestSeriesOfRulesAndTags(t *testing.T) {
	for given, want := range map[string]bool{"proxy.cluster_name": true, "other": false} {
		st := New(Options{})
		st.Root().Counter("cluster.a.rq")
		st.Root().Counter("cluster.rq", tags.Tag{Name: given, Value: "a"})
		v := st.View()
		for c := v.ByFamily(KindCounter); c.Next(); {
			if sp := c.Series(); (sp != nil && sp.Merged) != want {
				t.Errorf("tag %s: %s: %+v, want merged %t", given, c.Name(), sp, want)
			}
		}
		v.Close()
	}
}
