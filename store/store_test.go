package store_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// names returns what a cursor over a set lists, as "name value".
func names(st *store.Store, set store.NameSet) []string {
	v := st.View()
	defer v.Close()
	var got []string
	c := v.ByName(set)
	for c.Next() {
		got = append(got, c.Name())
	}
	return got
}

func equal(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestScopePrefixRules(t *testing.T) {
	st := store.New(store.Options{})
	st.Scope("edge:443.").Counter("rq")
	st.Scope(".edge.").Counter("rq")
	st.Scope("edge").Scope("in.").Counter("rq")
	st.Scope("").Counter("rq")
	st.Scope("..edge..").Counter("rq")
	st.Scope("tcp://db").Counter("rq...")
	st.Scope("a\x00b").Counter("x:y.")
	equal(t, names(st, store.Scalars), []string{
		".edge..rq", "a_b.x:y", "edge.in.rq", "edge.rq", "edge_443.rq", "rq", "tcp_//db.rq",
	})
}

func TestOneNameIsOneStat(t *testing.T) {
	st := store.New(store.Options{})
	a := st.Scope("a").Counter("b.c")
	b := st.Scope("a.b").Counter("c.")
	if a != b {
		t.Error("two scopes gave two counters for one name")
	}
	if a != st.Root().Counter("a.b.c") {
		t.Error("the root scope gave another counter for the same name")
	}
}

func TestOneNameHasOneKind(t *testing.T) {
	st := store.New(store.Options{})
	st.Root().Counter("x").Add(3)
	g, err := st.Root().TryGauge("x")
	if !errors.Is(err, store.ErrKind) {
		t.Fatalf("a gauge where a counter is: error %v, want ErrKind", err)
	}
	if !strings.Contains(err.Error(), `"x" is a counter, asked for as a gauge`) {
		t.Errorf("error %q does not say what clashes", err)
	}
	g.Set(7)
	if g.Value() != 0 {
		t.Errorf("null gauge has value %d", g.Value())
	}
	if _, err := st.Root().TryFloatGauge("x"); !errors.Is(err, store.ErrKind) {
		t.Errorf("float gauge: %v", err)
	}
	if _, err := st.Root().TryText("x"); !errors.Is(err, store.ErrKind) {
		t.Errorf("text: %v", err)
	}
	if _, err := st.Root().TryHistogram("x", store.Unspecified); !errors.Is(err, store.ErrKind) {
		t.Errorf("histogram: %v", err)
	}
	equal(t, names(st, store.Scalars), []string{"x"})
}

func TestByteOrderOfWholeNames(t *testing.T) {
	st := store.New(store.Options{})
	for _, n := range []string{"cluster_manager.x", "cluster.x", "a.b", "a-b.c", "a", "a.b.c", "ab", "", "z", "a.B"} {
		st.Root().Counter(n)
	}
	equal(t, names(st, store.Scalars), []string{
		"", "a", "a-b.c", "a.B", "a.b", "a.b.c", "ab", "cluster.x", "cluster_manager.x", "z",
	})
}

func TestFamilyOrderIsTokenWise(t *testing.T) {
	st := store.New(store.Options{})
	net := st.ScopeWith("", store.ScopeOptions{Network: true})
	net.Counter("a")
	for _, n := range []string{"a-b.c", "a.b", "a.b.c", "a", "cluster.two.x", "cluster.one.x", "cluster.x-y.x", "cluster.one.w", "b\x03.a", "b\x02z", "b\x01"} {
		st.Root().Counter(n)
	}
	v := st.View()
	defer v.Close()
	var got []string
	c := v.ByFamily(store.KindCounter)
	for c.Next() {
		family := c.Name()
		if f := c.Family(); f != nil {
			family = f.String()
		}
		origin := map[bool]string{true: " network"}[c.Network()]
		got = append(got, family+" <- "+c.Name()+origin)
	}
	equal(t, got, []string{
		"a <- a", "a <- a network", "a.b <- a.b", "a.b.c <- a.b.c", "a-b.c <- a-b.c",
		"b\x01 <- b\x01", "b\x02z <- b\x02z", "b\x03.a <- b\x03.a",
		"cluster.w <- cluster.one.w",
		"cluster.x <- cluster.one.x", "cluster.x <- cluster.two.x", "cluster.x <- cluster.x-y.x",
	})
}

// TestOrderKeptUp adds and removes names in many steps and sizes, and looks in
// between: the order must always be what sorting all names gives.
func TestOrderKeptUp(t *testing.T) {
	st := store.New(store.Options{})
	want := map[string]bool{}
	check := func() {
		t.Helper()
		sorted := make([]string, 0, len(want))
		for n := range want {
			sorted = append(sorted, n)
		}
		slices.Sort(sorted)
		if got := names(st, store.Scalars); !slices.Equal(got, sorted) {
			t.Fatalf("%d names listed, want %d, or in another order", len(got), len(sorted))
		}
	}
	n := 0
	var scopes []*store.Scope
	for i, batch := range []int{1, 5, 3000, 1, 700, 40_000, 10, 20_000} {
		sc := st.Scope(fmt.Sprintf("s%d", i))
		scopes = append(scopes, sc)
		for range batch {
			n++
			name := fmt.Sprintf("n%d.x%d", n*7919%100_003, n%13)
			sc.Counter(name)
			want[sc.Prefix()+"."+name] = true
		}
		check()
	}
	for _, sc := range scopes[2:6] {
		sc.Close()
		for name := range want {
			if strings.HasPrefix(name, sc.Prefix()+".") {
				delete(want, name)
			}
		}
		check()
	}
	if got := st.Len(store.KindCounter); got != len(want) {
		t.Errorf("Len = %d, want %d", got, len(want))
	}
}

func TestClosedScopeKeepsWhatOthersHold(t *testing.T) {
	st := store.New(store.Options{})
	a, b := st.Scope("s"), st.Scope("s")
	shared := a.Counter("shared")
	b.Counter("shared")
	a.Counter("mine").Add(1)
	a.Close()
	a.Close()
	equal(t, names(st, store.Scalars), []string{"s.shared"})
	shared.Inc()
	if got := b.Counter("shared").Value(); got != 1 {
		t.Errorf("value through the other holder = %d, want 1", got)
	}
	if c, err := a.TryCounter("new"); !errors.Is(err, store.ErrClosed) || c.Value() != 0 {
		t.Errorf("closed scope: %v", err)
	}
	b.Close()
	equal(t, names(st, store.Scalars), nil)
	st.View().Close()
	if got := b.Store().Symbols().NumSymbols(); got != 0 {
		t.Errorf("%d symbols left after the last holder went", got)
	}
	again := st.Scope("s").Counter("shared")
	if again.Value() != 0 {
		t.Errorf("a stat that is made again has value %d, want 0", again.Value())
	}
	shared.Add(5) // a handle of a stat that ended: no effect
	if again.Value() != 0 {
		t.Error("an old handle writes into the new stat")
	}
}

func TestRootCannotBeClosed(t *testing.T) {
	st := store.New(store.Options{})
	st.Root().Counter("a")
	st.Root().Close()
	if _, err := st.Root().TryCounter("b"); err != nil {
		t.Error(err)
	}
	equal(t, names(st, store.Scalars), []string{"a", "b"})
}

func TestLimitsCountEachRefusal(t *testing.T) {
	st := store.New(store.Options{})
	two, none := 2, 0
	sc := st.ScopeWith("lim", store.ScopeOptions{MaxCounters: &two, MaxHistograms: &none})
	sc.Counter("a").Inc()
	sc.Counter("b").Inc()
	for _, n := range []string{"c", "d"} {
		if c, err := sc.TryCounter(n); !errors.Is(err, store.ErrLimit) {
			t.Errorf("counter %s: error %v, want ErrLimit", n, err)
		} else if c.Inc(); c.Value() != 0 {
			t.Error("a null counter has a value")
		}
	}
	if _, err := sc.TryCounter("a"); err != nil {
		t.Errorf("a name that exists is refused: %v", err)
	}
	if _, err := sc.TryHistogram("h", store.Bytes); !errors.Is(err, store.ErrLimit) {
		t.Errorf("histogram with limit 0: %v", err)
	}
	sc.Gauge("g").Set(1)
	if got := st.Root().Counter("server.stats_overflow.counter").Value(); got != 2 {
		t.Errorf("server.stats_overflow.counter = %d, want 2", got)
	}
	if got := st.Root().Counter("server.stats_overflow.histogram").Value(); got != 1 {
		t.Errorf("server.stats_overflow.histogram = %d, want 1", got)
	}
}

// TestLimitOfEachKind: a limit is of one kind and one scope, counts what a scope
// shares with others, and is not inherited.
func TestLimitOfEachKind(t *testing.T) {
	one := 1
	ask := func(sc *store.Scope, name string) map[string]error {
		_, c := sc.TryCounter("c" + name)
		_, g := sc.TryGauge("g" + name)
		_, f := sc.TryFloatGauge("f" + name)
		_, h := sc.TryHistogram("h"+name, store.Bytes)
		_, r := sc.TryText("t" + name)
		return map[string]error{"counter": c, "gauge": g, "signed gauge": f, "histogram": h, "text": r}
	}
	for name, tt := range map[string]struct {
		o       store.ScopeOptions
		refused []string
	}{
		"counters":   {store.ScopeOptions{MaxCounters: &one}, []string{"counter"}},
		"gauges":     {store.ScopeOptions{MaxGauges: &one}, []string{"gauge", "signed gauge"}},
		"histograms": {store.ScopeOptions{MaxHistograms: &one}, []string{"histogram"}},
	} {
		for _, shared := range []bool{false, true} {
			st := store.New(store.Options{})
			sc, other := st.ScopeWith("s", tt.o), st.Scope("s")
			sc.Counter("first")
			sc.Gauge("first.g")
			sc.Histogram("first.h", store.Bytes)
			sc.Text("first.t")
			if shared {
				ask(other, "")
			}
			for kind, err := range ask(sc, "") {
				want := error(nil)
				if slices.Contains(tt.refused, kind) {
					want = store.ErrLimit
				}
				if !errors.Is(err, want) {
					t.Errorf("limit of %s, shared %t: %s: %v, want %v", name, shared, kind, err, want)
				}
			}
			for kind, err := range ask(sc.Scope("inside"), "") {
				if err != nil {
					t.Errorf("limit of %s: %s of a scope inside: %v", name, kind, err)
				}
			}
			overflow := st.Root().Counter("server.stats_overflow." + strings.TrimSuffix(name, "s")).Value()
			if overflow != uint64(len(tt.refused)) {
				t.Errorf("limit of %s, shared %t: %d overflows counted, want %d", name, shared, overflow, len(tt.refused))
			}
		}
	}
}

func TestLimitOfTheStore(t *testing.T) {
	st := store.New(store.Options{MaxStats: 4})
	sc := st.Scope("s")
	updater(sc, "c", "g", "h", "t")
	if _, err := st.Root().TryCounter("one"); !errors.Is(err, store.ErrLimit) {
		t.Errorf("a fifth of 4 stats: %v", err)
	}
	if _, err := st.ScopeWith("", store.ScopeOptions{Network: true}).TryFloatGauge("more"); !errors.Is(err, store.ErrLimit) {
		t.Errorf("one from the network: %v", err)
	}
	if _, err := sc.TryHistogram("h", store.Bytes); err != nil {
		t.Errorf("one that exists: %v", err)
	}
	equal(t, allNames(st), []string{"s.c", "s.g", "s.h", "s.t", "server.stats_overflow.counter", "server.stats_overflow.gauge"})
	sc.Close()
	if _, err := st.Root().TryCounter("one"); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// TestProduct: the product's name is in the names of default tags and in front
// of metrics.
func TestProduct(t *testing.T) {
	ofShop, err := tags.New(tags.Config{Product: "shop", UseDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	for product, tt := range map[string]struct {
		options store.Options
		want    string
	}{
		"default": {store.Options{}, "proxy"},
		"envoy":   {store.Options{Product: "envoy"}, "envoy"},
		"rules":   {store.Options{Tags: ofShop}, "shop"},
		// Several names never disagree: one wins everywhere.
		"several": {store.Options{Product: "a", Tags: ofShop, Naming: naming.Rules{Product: "b"}}, "shop"},
		"naming":  {store.Options{Product: "a", Naming: naming.Rules{Product: "b"}}, "a"},
	} {
		want := tt.want
		st := store.New(tt.options)
		st.Root().Counter("cluster.a.x")
		v := st.View()
		c, ok := v.Find("cluster.a.x")
		if !ok {
			t.Fatal("not found")
		}
		if got := c.AppendTags(nil); !slices.Equal(got, []tags.Tag{{Name: want + ".cluster_name", Value: "a"}}) {
			t.Errorf("product %q: tags %v", product, got)
		}
		m, ok := st.Naming().AppendMetric(nil, "cluster.x", false, true)
		if string(m) != want+"_cluster_x" || !ok || st.Product() != want {
			t.Errorf("product %q: metric %q, product %q", product, m, st.Product())
		}
		v.Close()
	}
}

// TestMatcherHoldsForOverflows: not even what counts the refusals is there if it
// is rejected, and it is there again when it is not any more.
func TestMatcherHoldsForOverflows(t *testing.T) {
	own := func(n string) bool { return strings.HasPrefix(n, "server.") }
	st := store.New(store.Options{Reject: own})
	none := 0
	sc := st.ScopeWith("lim", store.ScopeOptions{MaxCounters: &none})
	sc.Counter("a")
	equal(t, names(st, store.Scalars), nil)
	st.SetReject(nil)
	sc.Counter("b")
	equal(t, names(st, store.Scalars), []string{"server.stats_overflow.counter"})
	st.SetReject(own)
	sc.Counter("c")
	equal(t, names(st, store.Scalars), nil)
	st.SetReject(nil)
	sc.Counter("d")
	sc.Counter("e")
	if got := st.Root().Counter("server.stats_overflow.counter").Value(); got != 2 {
		t.Errorf("the overflow counter that came back counts %d, want 2", got)
	}
}

func TestMatcherRejectsAndRemoves(t *testing.T) {
	bad := func(n string) bool { return strings.HasPrefix(n, "bad.") }
	st := store.New(store.Options{Reject: bad})
	if _, err := st.Root().TryCounter("bad.x"); !errors.Is(err, store.ErrRejected) {
		t.Errorf("error %v, want ErrRejected", err)
	}
	st.Root().GaugeWithMode("bad.hidden", store.HiddenAccumulate).Set(4)
	st.Root().Counter("good")
	st.Root().Counter("ugly")
	equal(t, names(st, store.Scalars), []string{"bad.hidden", "good", "ugly"})
	st.SetReject(func(n string) bool { return bad(n) || n == "ugly" })
	equal(t, names(st, store.Scalars), []string{"bad.hidden", "good"})
}

// TestHistogramSettings: the first that matches the full name wins, and what a
// histogram was created with stays.
func TestHistogramSettings(t *testing.T) {
	prefix := func(p string) func(string) bool { return func(n string) bool { return strings.HasPrefix(n, p) } }
	st := store.New(store.Options{Histograms: []store.HistogramSetting{
		{Match: prefix("cluster.a."), Buckets: []float64{5, 50}},
		{Match: prefix("cluster.a.exact"), Buckets: []float64{7}}, // comes too late
		{Match: prefix("cluster."), SignificantDigits: 4},
		{Match: prefix("edge.rq.zone."), Buckets: []float64{3}},
		{Match: prefix("wrong."), Buckets: []float64{-1}, SignificantDigits: 9},
		{Buckets: []float64{1}}, // matches nothing
	}})
	r := st.Root()
	defaults := histogram.DefaultBounds(histogram.Unspecified)
	for _, tt := range []struct {
		h      *store.Histogram
		bounds []float64
		digits int
	}{
		{r.Histogram("cluster.a.exact", store.Bytes), []float64{5, 50}, 2},
		{st.Scope("cluster").Histogram("a.time", store.Percent), []float64{5, 50}, 2},
		{r.Histogram("cluster.b.time", store.Unspecified), defaults, 4},
		{r.Histogram("edge.rq", store.Milliseconds, tags.Tag{Name: "zone", Value: "eu"}), []float64{3}, 2},
		{r.Histogram("edge.rq", store.Milliseconds), defaults, 2},
		{r.Histogram("wrong.x", store.Milliseconds), defaults, 2},
		{st.ScopeWith("", store.ScopeOptions{Network: true}).Histogram("cluster.a.t", store.Milliseconds), []float64{5, 50}, 2},
	} {
		if l := tt.h.Layout(); !slices.Equal(l.Bounds(), tt.bounds) || l.SignificantDigits() != tt.digits {
			t.Errorf("bounds %v with %d digits, want %v with %d", l.Bounds(), l.SignificantDigits(), tt.bounds, tt.digits)
		}
	}
	for want, set := range map[string]store.HistogramSetting{
		"":                        {Buckets: []float64{5, 0.5}, SignificantDigits: 5},
		"significant digits 6":    {SignificantDigits: 6},
		"bound 5 not unique":      {Buckets: []float64{5, 5}},
		"bound -1 not a positive": {Buckets: []float64{-1}},
	} {
		if err := set.Check(); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: %v, want %q", set, err, want)
		}
	}
	if h := r.Histogram("edge.rq", store.Bytes); h.Layout().Unit() != store.Milliseconds {
		t.Errorf("asked for with another unit, a histogram has unit %v", h.Layout().Unit())
	}
}

// TestNetworkObservations checks that values from the network keep six decimals
// and their sign.
func TestNetworkObservations(t *testing.T) {
	st := store.New(store.Options{})
	network := st.ScopeWith("", store.ScopeOptions{Network: true}).Histogram("h", store.Milliseconds)
	own := st.Root().Histogram("h", store.Milliseconds)
	for _, h := range []*store.Histogram{network, own} {
		for _, v := range []float64{-2.000001, 1.0000005} {
			h.RecordFloat(v, 1)
		}
	}
	st.Flush(store.FlushOptions{}).Close()
	if s := network.Snapshot().Cumulative; s.Min() != -2.000001 || s.Max() != 1.000001 || s.Sum() != -1 {
		t.Errorf("network: %v to %v, sum %v", s.Min(), s.Max(), s.Sum())
	}
	if s := own.Snapshot().Cumulative; s.Min() != 0 || s.Max() != 1 || s.Sum() != 1 {
		t.Errorf("own: %v to %v, sum %v", s.Min(), s.Max(), s.Sum())
	}
}

func TestExplicitTags(t *testing.T) {
	st := store.New(store.Options{})
	eu := []tags.Tag{{Name: "region", Value: "eu"}, {Name: "tier", Value: "1"}}
	c := st.Scope("edge").Counter("rq", eu...)
	c.Add(2)
	if c != st.Root().Counter("edge.rq.region.eu.tier.1") {
		t.Error("the stat is not found by its full name")
	}
	v := st.View()
	defer v.Close()
	cur, ok := v.Find("edge.rq.region.eu.tier.1")
	if !ok {
		t.Fatal("not found")
	}
	if got := cur.Family().String(); got != "edge.rq" {
		t.Errorf("family %q", got)
	}
	if got := cur.AppendTags(nil); !slices.Equal(got, eu) {
		t.Errorf("tags %v, want %v", got, eu)
	}
}

func TestNetworkNamesAreTheirOwnSpace(t *testing.T) {
	st := store.New(store.Options{})
	net := st.ScopeWith("", store.ScopeOptions{Network: true})
	other := net.Counter("server.live") // the first, but not in the order
	own := st.Root().Counter("server.live")
	if own == other {
		t.Fatal("network input reached a stat of the program")
	}
	own.Add(1)
	other.Add(2)
	tagged := net.Counter("hits", tags.Tag{Name: "route", Value: "/a.b"}, tags.Tag{Name: "canary"})
	tagged.Inc()
	equal(t, names(st, store.Scalars), []string{"hits.route./a.b.canary", "server.live", "server.live"})
	v := st.View()
	defer v.Close()
	c := v.ByName(store.Scalars)
	var got []string
	for c.Next() {
		got = append(got, fmt.Sprintf("%s %v %d %v", c.Name(), c.Network(), c.Uint(), c.AppendTags(nil)))
	}
	equal(t, got, []string{
		"hits.route./a.b.canary true 1 [{route /a.b} {canary }]",
		"server.live false 1 []",
		"server.live true 2 []",
	})
}

// TestTagRulesOfNetworkNames: they are for the program's own names, unless a
// scope says otherwise, and so do the scopes inside of that.
func TestTagRulesOfNetworkNames(t *testing.T) {
	for _, extract := range []bool{false, true} {
		st := store.New(store.Options{})
		sc := st.ScopeWith("", store.ScopeOptions{Network: true, ExtractTags: extract})
		for name, in := range map[string]*store.Scope{"cluster.a.x": sc, "cluster.b.x": sc.Scope("cluster")} {
			in.Counter(strings.TrimPrefix(name, in.Prefix()+"."))
			v := st.View()
			c := v.ByName(store.Scalars)
			for c.Next() && c.Name() != name {
			}
			if got := c.AppendTags(nil); len(got) != map[bool]int{true: 1}[extract] {
				t.Errorf("extract %t: %s has tags %v", extract, c.Name(), got)
			}
			v.Close()
		}
	}
}

func TestGaugeValues(t *testing.T) {
	st := store.New(store.Options{})
	g := st.Root().GaugeWithMode("g", store.NeverImport)
	g.Add(5)
	g.Dec()
	if g.Value() != 4 {
		t.Errorf("value %d, want 4", g.Value())
	}
	f := st.Root().FloatGauge("f")
	f.Set(-3)
	f.Add(0.25)
	for _, x := range []float64{0.1, 0.7, -2.3} { // products that are not exact; see make arm64
		if err := f.Set(x * 1.1); err != nil {
			t.Errorf("%v: %v", x, err)
		}
	}
	if err := f.Set(-2.75); err != nil {
		t.Error(err)
	}
	zero := 0.0
	f2 := st.Root().FloatGauge("zero")
	f2.Set(-zero)
	if err := f.Set(1 / zero); !errors.Is(err, store.ErrNotFinite) {
		t.Errorf("infinite: %v", err)
	}
	f.Set(1.7e308)
	if err := f.Add(1.7e308); !errors.Is(err, store.ErrNotFinite) || f.Value() != 1.7e308 {
		t.Errorf("overflow: %v, value %v", err, f.Value())
	}
	f.Set(-2.75)
	v := st.View()
	defer v.Close()
	c := v.ByName(store.Scalars)
	var got []string
	for c.Next() {
		got = append(got, string(c.AppendValue([]byte(c.Name()+": "))))
	}
	equal(t, got, []string{"f: -2.75", "g: 4", "zero: 0"})
}

// TestNullStats: what a refused caller gets takes writes, has no value and is
// shown nowhere.
func TestNullStats(t *testing.T) {
	st := store.New(store.Options{Reject: func(string) bool { return true }})
	r := st.Root()
	for range 2 {
		c, g, f, x, h := r.Counter("c"), r.Gauge("g"), r.FloatGauge("f"), r.Text("t"), r.Histogram("h", store.Bytes)
		c.Add(5)
		g.Set(5)
		g.Sub(1)
		_ = f.Set(5)
		_ = f.Add(1)
		x.Set("5")
		h.Record(5)
		if c.Value() != 0 || c.Total() != 0 || g.Value() != 0 || f.Value() != 0 || x.Value() != "" {
			t.Errorf("values %d, %d, %d, %v, %q", c.Value(), c.Total(), g.Value(), f.Value(), x.Value())
		}
		snap := st.Flush(store.FlushOptions{Totals: true})
		if counters, gauges, histograms := snap.Changed(); counters+gauges+histograms != 0 || h.Snapshot().Used {
			t.Errorf("%d counters, %d gauges, %d histograms changed", counters, gauges, histograms)
		}
		snap.Close()
	}
	equal(t, allNames(st), nil)
}

func TestAppendFloat(t *testing.T) {
	zero := 0.0
	for want, x := range map[string]float64{
		"0": zero, "-3": -3, "0.25": 0.25, "1000000000000000": 1e15, "100000000000000000000": 1e20,
		"1e+21": 1e21, "-1.5e+300": -1.5e300, "0.0000001": 1e-7,
	} {
		if got := string(store.AppendFloat([]byte("k"), x)); got != "k"+want {
			t.Errorf("%v is written as %s, want %s", x, got[1:], want)
		}
	}
}

func TestUsed(t *testing.T) {
	st := store.New(store.Options{})
	r := st.Root()
	r.Counter("c0").Add(0)
	r.Counter("c1").Inc()
	r.Gauge("g0")
	r.Gauge("g1").Set(0)
	g2 := r.Gauge("g2")
	g2.Inc()
	g2.Dec()
	g3 := r.Gauge("g3") // back at 0 with nothing that wrote a 0
	g3.Set(5)
	g3.Sub(5)
	g4 := r.Gauge("g4")
	g4.Sub(5)
	g4.Add(5)
	r.Gauge("g5").Add(0)
	r.FloatGauge("f0")
	r.FloatGauge("f1").Set(0)
	f2 := r.FloatGauge("f2")
	f2.Add(0.5)
	f2.Add(-0.5)
	st.ResetCounters()
	v := st.View()
	defer v.Close()
	scalars := func(usedOnly bool) (got []string) {
		c := v.ByName(store.Scalars)
		if usedOnly {
			c.UsedOnly()
		}
		for c.Next() {
			if c.Used() {
				got = append(got, c.Name())
			}
		}
		return got
	}
	want := []string{"c1", "f1", "f2", "g1", "g2", "g3", "g4", "g5"}
	equal(t, scalars(false), want)
	equal(t, scalars(true), want)
	st.Flush(store.FlushOptions{}).Close() // takes the marks, and nothing else
	st.Flush(store.FlushOptions{}).Close()
	equal(t, scalars(false), want)
	equal(t, scalars(true), want)
	h := r.Histogram("h", store.Milliseconds)
	used := func() bool { c, _ := v.Find("h"); return c.Used() }
	h.Record(5)
	if used() {
		t.Error("a histogram is used before the flush")
	}
	st.Flush(store.FlushOptions{}).Close()
	if !used() {
		t.Error("a histogram is not used after the flush")
	}
}

func TestImportModes(t *testing.T) {
	st := store.New(store.Options{})
	r := st.Root()
	r.GaugeWithMode("g", store.Uninitialized).Set(3)
	if _, err := r.TryGaugeWithMode("g", store.HiddenAccumulate); err != nil {
		t.Fatal(err)
	}
	if _, err := r.TryGaugeWithMode("g", store.NeverImport); err == nil {
		t.Error("another mode is not refused")
	}
	v := st.View()
	defer v.Close()
	if c, _ := v.Find("g"); !c.Hidden() {
		t.Error("the gauge did not take on its mode")
	}
}

// TestInvalidFormIsLoggedOnce makes scopes before and after there is a logger.
func TestInvalidFormIsLoggedOnce(t *testing.T) {
	var text strings.Builder
	st := store.New(store.Options{})
	form := &store.HistogramForm{Buckets: []float64{2, 2}}
	early := st.ScopeWith("early", store.ScopeOptions{Histograms: form})
	st.SetLogger(slog.New(slog.NewTextHandler(&text, nil)))
	for range 2 {
		st.Root().WithHistograms(form)
		early.Scope("a")
		st.Scope("valid").WithHistograms(&store.HistogramForm{Buckets: []float64{2, 1}})
	}
	got := text.String()
	if strings.Count(got, `msg="a scope uses the default form of histograms"`) != 2 || strings.Count(got, "\n") != 2 || !strings.Contains(got, `scope \"early\": invalid form of histograms: histogram: bound 2 not unique`) || !strings.Contains(got, `scope \"\": invalid`) {
		t.Errorf("got:\n%s", got)
	}
	h, err := early.TryHistogram("h", store.Unspecified)
	if err != nil || !slices.Equal(h.Layout().Bounds(), histogram.DefaultBounds(store.Unspecified)) {
		t.Errorf("%v, %v", h, err)
	}
}

// TestWrongKindIsLoggedOnce uses names with other kinds than they have.
func TestWrongKindIsLoggedOnce(t *testing.T) {
	var text strings.Builder
	st := store.New(store.Options{})
	counted := st.Root().Counter("lines")
	st.Root().Counter("early")
	st.Root().Gauge("early") // there is no logger yet
	st.Root().Histogram("early", store.Unspecified)
	st.SetLogger(nil)
	st.SetLogger(slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		st.Root().Counter("lines").Inc() // a logger may use the store
		return text.Write(p)
	}), nil)))
	if got := text.String(); counted.Total() != 1 || !strings.Contains(got, `\"early\" is a counter, asked for as a gauge`) {
		t.Errorf("%d lines, want one for the name used before there was a logger:\n%s", counted.Total(), got)
	}
	for range 3 {
		st.Root().Gauge("lines")
		_, _ = st.Root().TryHistogram("lines", store.Unspecified)
		st.Root().Gauge("early")
	}
	if got := text.String(); counted.Total() != 2 || !strings.Contains(got, `\"lines\" is a counter, asked for as a gauge`) || !strings.Contains(got, `\"early\" is a counter`) {
		t.Errorf("%d lines, want one for each name:\n%s", counted.Total(), got)
	}
	sc := st.ScopeWith("net", store.ScopeOptions{Network: true})
	sc.Counter("x")
	sc.Gauge("x")
	if counted.Total() != 2 {
		t.Errorf("the name of a sender is logged:\n%s", text.String())
	}
	for i := range 200 {
		name := "n" + strconv.Itoa(i)
		st.Root().Counter(name)
		st.Root().Gauge(name)
	}
	if counted.Total() != 100 {
		t.Errorf("%d lines, want at most 100", counted.Total())
	}
}

// writerFunc is a function as a writer.
type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
