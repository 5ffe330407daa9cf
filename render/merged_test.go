package render

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/expolint"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// TestOneSeriesOfSeveralStats has names and tags that the exposition cannot
// distinguish: counts are added up, and the oldest gauge is shown, independent
// of the order of names.
func TestOneSeriesOfSeveralStats(t *testing.T) {
	for _, names := range [][2]string{{"a-b", "a.b"}, {"a.b", "a-b"}} {
		st := store.New(store.Options{})
		net := st.ScopeWith("", store.ScopeOptions{Network: true})
		for i, name := range names {
			n := 1 + float64(i)
			net.Counter("c" + name).Add(uint64(n))
			_ = net.FloatGauge("g" + name).Set(n)
			net.Histogram("h"+name, store.Unspecified).RecordFloat(n, 1)
			_ = net.FloatGauge("t", tags.Tag{Name: name, Value: "v"}).Set(n)
		}
		st.Flush(store.FlushOptions{}).Close()
		var b bytes.Buffer
		if err := Exposition(&b, st, Options{}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"ca_b{} 3\n", "ga_b{} 1\n", "ha_b_sum{} 3\n", "ha_b_count{} 2\n", "t{a_b=\"v\"} 1\n"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%q: no %q", names, want)
			}
		}
		if t.Failed() {
			t.Log(b.String())
		}
	}
}

// TestOneSeriesInOtherTagOrder has the same labels from tags in two orders.
func TestOneSeriesInOtherTagOrder(t *testing.T) {
	st := store.New(store.Options{})
	net := st.ScopeWith("", store.ScopeOptions{Network: true})
	net.Counter("c", tags.Tag{Name: "a.x", Value: "1"}, tags.Tag{Name: "a_b", Value: "22"}).Inc()
	net.Counter("c", tags.Tag{Name: "a_b", Value: "22"}, tags.Tag{Name: "a_x", Value: "1"}).Inc()
	var b bytes.Buffer
	if err := Exposition(&b, st, Options{}); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), "# TYPE c counter\nc{a_b=\"22\",a_x=\"1\"} 2\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestSharedSeriesEnd ends stats that share a metric name one by one, in many
// orders: the others are shown as if the ended ones had never existed.
func TestSharedSeriesEnd(t *testing.T) {
	type stat struct {
		name string
		tags []tags.Tag
	}
	kv := []tags.Tag{{Name: "k", Value: "v"}}
	all := map[string]stat{"a.b": {"a.b", nil}, "a.b.k.v": {"a.b", kv}, "a-b": {"a-b", nil}, "a-b.k.v": {"a-b", kv}, "a+b": {"a+b", nil}}
	order := []string{"a.b", "a.b.k.v", "a-b", "a-b.k.v", "a+b"}
	show := func(st *store.Store) string {
		var b bytes.Buffer
		if err := Exposition(&b, st, Options{}); err != nil {
			t.Fatal(err)
		}
		checkExposition(t, b.String(), expolint.Text004)
		lines := strings.Split(b.String(), "\n")
		slices.Sort(lines)
		return strings.Join(lines, "\n")
	}
	fill := func(st *store.Store, names []string) {
		net := st.ScopeWith("", store.ScopeOptions{Network: true})
		for i, name := range order {
			if slices.Contains(names, name) {
				if c := net.Counter(all[name].name, all[name].tags...); c.Total() == 0 {
					c.Add(1 << i)
				}
			}
		}
	}
	var permute func(done, left []string)
	permute = func(done, left []string) {
		if len(left) == 0 {
			st := store.New(store.Options{})
			fill(st, done)
			show(st)
			rest := slices.Clone(done)
			for _, name := range done {
				gone := func(n string) bool { return !slices.Contains(rest, n) }
				rest = rest[1:]
				st.RemoveNetwork(gone)
				show(st)
				fill(st, done) // they come back, and go again
				show(st)
				st.RemoveNetwork(gone)
				fresh := store.New(store.Options{})
				fill(fresh, rest)
				if got, want := show(st), show(fresh); got != want {
					t.Fatalf("of %q only %q are left, %q was the last to go:\n%s\nwant\n%s", done, rest, name, got, want)
				}
			}
			return
		}
		for i, name := range left {
			permute(append(slices.Clone(done), name), slices.Delete(slices.Clone(left), i, i+1))
		}
	}
	permute(nil, order)
}

// TestSuffixesEnd adds the other form of a family with a suffix after its rival
// has ended: the family keeps the suffix, and the name is free once all of its
// stats have ended.
func TestSuffixesEnd(t *testing.T) {
	for _, taggedFirst := range []bool{true, false} {
		st := store.New(store.Options{})
		show := func() string {
			var b bytes.Buffer
			if err := Exposition(&b, st, Options{}); err != nil {
				t.Fatal(err)
			}
			checkExposition(t, b.String(), expolint.Text004)
			return b.String()
		}
		first, plain, tagged := st.Scope(""), st.Scope(""), st.Scope("")
		first.Counter("a.b").Inc()
		show()
		plain.Gauge("a-b").Set(2)
		show()
		first.Close()
		tagged.Gauge("a-b", tags.Tag{Name: "k", Value: "v"}).Set(3)
		if got, want := show(), "# TYPE proxy_a_b_gauge gauge\nproxy_a_b_gauge{} 2\nproxy_a_b_gauge{k=\"v\"} 3\n"; got != want {
			t.Errorf("in both forms: %s, want %s", got, want)
		}
		left := "proxy_a_b_gauge{k=\"v\"} 3\n"
		if taggedFirst {
			plain, tagged = tagged, plain
			left = "proxy_a_b_gauge{} 2\n"
		}
		plain.Close()
		if got, want := show(), "# TYPE proxy_a_b_gauge gauge\n"+left; got != want {
			t.Errorf("in one form: %s, want %s", got, want)
		}
		tagged.Close()
		show()
		st.Root().Counter("a.b").Add(4)
		if got, want := show(), "# TYPE proxy_a_b counter\nproxy_a_b{} 4\n"; got != want {
			t.Errorf("after all ended: %s, want %s", got, want)
		}
	}
}

// TestFamilyHasOneForm has a summary and a histogram of one name, with and without tags: all
// series have the form of the first one, and the TYPE line says it.
func TestFamilyHasOneForm(t *testing.T) {
	for _, rival := range []bool{false, true} { // which gives the family a suffix
		st := store.New(store.Options{})
		summaries := st.ScopeWith("", store.ScopeOptions{Network: true, Histograms: &store.HistogramForm{Quantiles: []float64{0.5}}})
		histograms := st.ScopeWith("", store.ScopeOptions{Network: true})
		if rival {
			histograms.Gauge("t", tags.Tag{Name: "r", Value: "1"}).Set(1)
		}
		summaries.Histogram("t", store.Bytes).Record(1)
		histograms.Histogram("t", store.Bytes, tags.Tag{Name: "k", Value: "v"}).Record(1)
		var b bytes.Buffer
		if err := Exposition(&b, st, Options{}); err != nil {
			t.Fatal(err)
		}
		checkExposition(t, b.String(), expolint.Text004)
		if n := strings.Count(b.String(), " summary\n"); n != 1 || strings.Contains(b.String(), "_bucket") {
			t.Errorf("not one family of summaries:\n%s", &b)
		}
	}
}
