package render

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// namesStore has names and tags that the old alphabet has not, some of which
// are one series in it.
func namesStore(t *testing.T) *store.Store {
	t.Helper()
	st := newStore(store.Options{Histograms: []store.HistogramSetting{{Match: func(string) bool { return true }, Buckets: []float64{5}}}})
	st.Root().Counter("cluster.checkout.upstream_rq-total").Add(3)
	network := st.ScopeWith("", store.ScopeOptions{Network: true})
	network.Counter("cart.items").Add(1)
	network.Counter("cart-items").Add(2)
	network.Counter("cart_items").Add(4)
	network.Counter("plain", tags.Tag{Name: "zone", Value: "eu"}).Add(5)
	network.Counter("jobs.done_total", tags.Tag{Name: "app.kubernetes.io/name", Value: "größe \"x\""}, tags.Tag{Name: "le", Value: "1"}).Add(6)
	network.Counter("jobs.total").Add(7)
	network.Counter("9lives:left").Add(8)
	network.Counter("größe \"q\"\\").Add(9)
	network.Counter("U__cart_2e_items").Add(10)
	network.Gauge("queue.depth", tags.Tag{Name: "a-b", Value: "1"}, tags.Tag{Name: "a_b", Value: "2"}).Set(11)
	network.Gauge("bad\xff", tags.Tag{Name: "bad\xfe", Value: "bad\xfd"}).Set(12)
	network.Text("release.name").Set("r42 beta")
	h := network.Histogram("cart.time", store.Milliseconds, tags.Tag{Name: "route", Value: "/a"}, tags.Tag{Name: "_x", Value: "y"})
	h.Record(3)
	h.Record(7)
	network.Histogram("idle.time", store.Milliseconds)
	st.Flush(store.FlushOptions{}).Close()
	return st
}

func TestEscapings(t *testing.T) {
	st := namesStore(t)
	for _, e := range []Escaping{EscapingDefault, EscapeUnderscores, AllowUTF8, EscapeDots, EscapeValues} {
		name := e.String()
		if e == EscapingDefault {
			name = "underscores"
		}
		for form, write := range map[string]func(io.Writer, *store.Store, Options) error{"exposition": Exposition, "openmetrics": OpenMetrics, "protobuf": Protobuf} {
			for kind, buckets := range map[string]Buckets{"": Default, "-summary": Summary} {
				t.Run(name+"/"+form+kind, func(t *testing.T) {
					var b bytes.Buffer
					if err := write(&b, st, Options{TextReadouts: true, Escaping: e, Buckets: buckets}); err != nil {
						t.Fatal(err)
					}
					golden.Check(t, "names/"+name+"/"+form+kind, b.Bytes())
				})
			}
		}
	}
}

// TestEscapingIsOfNetworkNames checks that the names of the program's own stats
// are the same with and without UTF-8: they are what others rely on.
func TestEscapingIsOfNetworkNames(t *testing.T) {
	st := newStore(store.Options{})
	st.Root().Counter("edge.cache-hits", tags.Tag{Name: "proxy.zone", Value: "eu"}).Inc()
	st.Root().Gauge("größe").Set(1)
	var plain, utf8 bytes.Buffer
	if err := Exposition(&plain, st, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := Exposition(&utf8, st, Options{Escaping: AllowUTF8}); err != nil {
		t.Fatal(err)
	}
	if plain.String() != utf8.String() || !strings.Contains(plain.String(), `proxy_edge_cache_hits{proxy_zone="eu"} 1`) {
		t.Errorf("with UTF-8\n%swithout\n%s", utf8.String(), plain.String())
	}
}

// TestColonsOfLabelsAreEscaped: without quotes, Prometheus reads no label with a colon.
func TestColonsOfLabelsAreEscaped(t *testing.T) {
	for _, tt := range []struct{ name, dots, values string }{
		{"a_b", "a__b", "a_b"},
		{"a:b", "a__b", "U__a_3a_b"},
		{":", "__", "U___3a_"},
	} {
		if got := string(EscapeDots.appendLabel(nil, []byte(tt.name))); got != tt.dots {
			t.Errorf("%q with dots: %q, want %q", tt.name, got, tt.dots)
		}
		if got := string(EscapeValues.appendLabel(nil, []byte(tt.name))); got != tt.values {
			t.Errorf("%q with values: %q, want %q", tt.name, got, tt.values)
		}
	}
	st := newStore(store.Options{})
	st.ScopeWith("", store.ScopeOptions{Network: true}).Counter("c", tags.Tag{Name: "a:b", Value: "v"}).Inc()
	for e, want := range map[Escaping]string{
		EscapeUnderscores: `c{a_b="v"} 1`, AllowUTF8: `c{"a:b"="v"} 1`, EscapeDots: `c{a__b="v"} 1`, EscapeValues: `c{U__a_3a_b="v"} 1`,
	} {
		var b strings.Builder
		if err := Exposition(&b, st, Options{Escaping: e}); err != nil || !strings.Contains(b.String(), want+"\n") {
			t.Errorf("escaping %v: want %s in\n%s%v", e, want, &b, err)
		}
	}
}

func TestEscapeNames(t *testing.T) {
	for _, tt := range []struct{ name, dots, values string }{
		{"a", "a", "a"},
		{"a_b", "a__b", "a_b"},
		{"a.b", "a_dot_b", "U__a_2e_b"},
		{"a-b_c", "a__b__c", "U__a_2d_b__c"},
		{"a:b", "a:b", "a:b"},
		{"9lives", "__9lives", "U___39_lives"},
		{"é", "____", "U___e9_"},
		{"U__a", "U____a", "U__U____a"},
		{"U__", "U____", "U__U____"},
		{"", "", "U__"},
	} {
		if got := string(EscapeDots.appendName(nil, []byte(tt.name))); got != tt.dots {
			t.Errorf("%q with dots: %q, want %q", tt.name, got, tt.dots)
		}
		if got := string(EscapeValues.appendName(nil, []byte(tt.name))); got != tt.values {
			t.Errorf("%q with values: %q, want %q", tt.name, got, tt.values)
		}
		if got := string(AllowUTF8.appendName(nil, []byte(tt.name))); got != tt.name {
			t.Errorf("%q with UTF-8: %q", tt.name, got)
		}
	}
}

// TestLegacyAlphabets compares the old alphabets with regular expressions.
func TestLegacyAlphabets(t *testing.T) {
	metric, label := regexp.MustCompile("^[A-Za-z0-9_:]$"), regexp.MustCompile("^[A-Za-z0-9_]$")
	first := regexp.MustCompile("^[A-Za-z_:]")
	for i := range 256 {
		c := []byte{byte(i)}
		if legacyByte(c[0]) != metric.Match(c) || labelByte(c[0]) != label.Match(c) {
			t.Errorf("%q: for a metric %t, for a label %t", c, legacyByte(c[0]), labelByte(c[0]))
		}
		if got := legacyName(append(c, 'a')); got != first.Match(c) {
			t.Errorf("%q in front: %t", c, got)
		}
		wantDots, wantValues := "__", fmt.Sprintf("U___%x_", i)
		switch {
		case i == '.':
			wantDots = "_dot_"
		case '0' <= i && i <= '9':
			wantDots = "__" + string(c)
		case i == '_':
			wantValues = "_"
		case metric.Match(c):
			wantDots, wantValues = string(c), string(c)
		case i >= utf8.RuneSelf:
			wantValues = "U___fffd_"
		}
		if got := string(appendDots(nil, c, legacyByte)); got != wantDots {
			t.Errorf("%q with dots: %s, want %s", c, got, wantDots)
		}
		if got := string(appendValues(nil, c, legacyByte)); got != wantValues {
			t.Errorf("%q with values: %s, want %s", c, got, wantValues)
		}
	}
}

func TestParametersOfEscapings(t *testing.T) {
	for e, want := range map[Escaping]string{
		EscapingDefault: "", EscapeUnderscores: "; escaping=underscores", AllowUTF8: "; escaping=allow-utf-8",
		EscapeDots: "; escaping=dots", EscapeValues: "; escaping=values",
	} {
		if got := e.Parameter(); got != want {
			t.Errorf("%d: %q, want %q", e, got, want)
		}
		if got := parseEscaping(e.String()); got != e {
			t.Errorf("%q is parsed as %d, want %d", e.String(), got, e)
		}
	}
	if got := parseEscaping("other"); got != EscapingDefault {
		t.Errorf("an unknown escaping is %d", got)
	}
}

// TestNumbersOfC: numbers of summaries have the form of C's %g.
func TestNumbersOfC(t *testing.T) {
	for want, x := range map[string]float64{
		"nan": math.NaN(), "0": 0, "1": 1, "99999": 99999, "100000": 100_000, "0.5": 0.5, "-1": -1, "1.234568": 1.23456789, "1.234568e+07": 12345678.9,
	} {
		if got := string(appendG([]byte("x"), x, 7)); got != "x"+want {
			t.Errorf("%v is written as %s, want %s", x, got[1:], want)
		}
	}
}
