package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/expolint"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// FuzzJSON checks that encoding/json reads the output and finds the original
// names and values, with U+FFFD for invalid UTF-8.
func FuzzJSON(f *testing.F) {
	for _, s := range nasty() {
		f.Add(s, s)
	}
	rules := store.New(store.Options{}).Tags() // compiling them takes longer than an input
	f.Fuzz(func(t *testing.T, name, value string) {
		st := store.New(store.Options{Tags: rules})
		st.Root().Text("t." + name).Set(value)
		st.Root().Counter("c." + name).Inc()
		st.Root().Histogram("h."+name, store.Bytes)
		var b bytes.Buffer
		if err := JSON(&b, st, Options{}); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Stats []struct {
				Name       string
				Value      any
				Histograms struct {
					ComputedQuantiles []struct{ Name string } `json:"computed_quantiles"`
				}
			}
		}
		if err := json.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatalf("%v\n%s", err, b.Bytes())
		}
		clean := func(s string) string { return string([]rune(s)) }
		name = clean(strings.TrimRight(name, "."))
		dot := "."
		if name == "" {
			dot = ""
		}
		s := got.Stats
		if len(s) != 3 || s[0].Name != "t"+dot+name || s[0].Value != clean(value) || s[1].Name != "c"+dot+name || s[1].Value != 1.0 ||
			len(s[2].Histograms.ComputedQuantiles) != 1 || s[2].Histograms.ComputedQuantiles[0].Name != "h"+dot+name {
			t.Errorf("name %q, value %q: got %+v from\n%s", name, value, got, b.Bytes())
		}
		if strings.ContainsAny(b.String(), "<>\n\u2028\u2029") {
			t.Errorf("unescaped: %s", b.Bytes())
		}
	})
}

// FuzzTextStats checks that network input cannot forge lines: a name cleaned on
// entry makes one line.
func FuzzTextStats(f *testing.F) {
	for _, s := range nasty() {
		f.Add(s, s, s)
	}
	rules := store.New(store.Options{}).Tags()
	f.Fuzz(func(t *testing.T, name, tag, value string) {
		st := store.New(store.Options{Tags: rules})
		network := st.ScopeWith("", store.ScopeOptions{Network: true})
		tg := tags.Tag{Name: entry(tag), Value: entry(value)}
		network.Counter("c"+entry(name), tg).Inc()
		network.Gauge("g"+entry(name), tg).Set(1)
		network.Histogram("h"+entry(name), store.Bytes, tg)
		network.Text("t"+entry(name), tg).Set(entry(value))
		var b bytes.Buffer
		if err := Text(&b, st, Options{}); err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(b.Bytes(), []byte("\n")); n != 4 || !bytes.HasSuffix(b.Bytes(), []byte("\n")) {
			t.Errorf("%d lines for 4 stats:\n%q", n, b.Bytes())
		}
	})
}

// entry cleans a received name as statsd does before it reaches the store.
func entry(s string) string {
	b := []byte(strings.ToValidUTF8(s, "_"))
	for i, c := range b {
		if c < 0x20 || c == 0x7f {
			b[i] = '_'
		}
	}
	return string(b)
}

// FuzzExposition checks the expositions by the rules of the formats.
func FuzzExposition(f *testing.F) {
	for i, s := range nasty() {
		f.Add(uint64(i), s, s)
	}
	rules := store.New(store.Options{}).Tags()
	f.Fuzz(func(t *testing.T, seed uint64, name, value string) {
		if strings.Contains(name+value, "created") {
			t.Skip() // OpenMetrics has no form for a histogram x and another x_created
		}
		st := newStore(store.Options{Tags: rules})
		fill(t, st, seed, 6) // the fewer, the more inputs
		for _, sc := range []*store.Scope{st.Root(), st.ScopeWith("", store.ScopeOptions{Network: true})} {
			sc.Counter(name, tags.Tag{Name: value, Value: name}, tags.Tag{Name: name, Value: value}).Add(7)
			sc.Text("r."+name, tags.Tag{Name: name, Value: value}).Set(value)
			sc.Histogram("h"+value, store.Bytes, tags.Tag{Name: value, Value: value})
		}
		checkExpositions(t, st)
	})
}

// TestRandomExpositions checks expositions of stores with many names and tags that meet.
func TestRandomExpositions(t *testing.T) {
	for seed := range uint64(100) {
		checkExpositions(t, randomStore(t, seed))
	}
}

// checkExpositions reports the errors in all text formats.
func checkExpositions(t *testing.T, st *store.Store) {
	t.Helper()
	for _, form := range []Buckets{Default, Summary} {
		for e := EscapingDefault; e <= EscapeValues; e++ {
			o := Options{TextReadouts: true, Buckets: form, Escaping: e}
			var text, om bytes.Buffer
			if err := errors.Join(Exposition(&text, st, o), OpenMetrics(&om, st, o)); err != nil {
				t.Fatal(err)
			}
			format := expolint.Text004
			if e == AllowUTF8 {
				format = expolint.Text100
			}
			checkExposition(t, text.String(), format)
			checkExposition(t, om.String(), expolint.OpenMetrics)
			for line := range strings.Lines(text.String()) {
				if name, _, _ := strings.Cut(line, "{"); e.legacy() && strings.Contains(name, ":") {
					t.Fatalf("a colon in %q", line)
				}
			}
		}
	}
}

// checkExposition reports the errors in an exposition.
func checkExposition(t *testing.T, body string, f expolint.Format) {
	t.Helper()
	for _, x := range expolint.Check(body, f).Findings {
		t.Fatalf("line %d: %s\n%s", x.Line, x.Text, body)
	}
}
