package admin

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/history"
	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/internal/jsonschema"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// exploredIngest is an input with senders and a name over its limit.
type exploredIngest struct {
	Ingest
	at time.Time
}

func (g exploredIngest) Recent() report.Recent {
	made := func(name, sender string) report.NewSeries {
		return report.NewSeries{Time: g.at, Name: name, Kind: "counter", Sender: sender}
	}
	return report.Recent{
		Limits:     []report.Limit{{Name: "series", Max: 100, Use: 80}},
		Samples:    []report.NameRate{{Name: "shop.cart", PerSecond: 12.5}, {Name: "shop.users.u7.logins", PerSecond: 2}, {Name: "gone", PerSecond: 1}},
		Newest:     []report.NewSeries{made("shop.cart", "10.0.0.9:4711"), made("shop.cart", "[::1]:99"), made("shop.cart", "[::1]:100"), made("shop.users.u7.logins", "@")},
		Overflowed: []string{"shop.cart"},
	}
}

// explorable is a server with names of several depths, and with tags.
func explorable(t *testing.T) *Server {
	t.Helper()
	now := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	st := store.New(store.Options{Now: clock})
	h := history.New(history.Config{Store: st})
	w := newWorld()
	src := w.sources()
	src.History, src.Ingest = h, exploredIngest{src.Ingest, now}
	s := newServer(t, Config{Store: st, Now: clock, Sources: src})
	net := st.ScopeWith("", store.ScopeOptions{Network: true})
	for i := range 40 {
		net.Counter(fmt.Sprintf("shop.users.u%d.logins", i)).Add(uint64(i))
	}
	st.Root().Gauge("shop")
	st.Root().Histogram("shop.cart", store.Milliseconds)
	now = now.Add(10 * time.Minute)
	for i := range 12 {
		net.Counter("shop.cart", tags.Tag{Name: "country", Value: fmt.Sprint("c", i%5)}, tags.Tag{Name: "user", Value: fmt.Sprint(i)}).Inc()
	}
	st.Root().Counter("shop.<b>\n\"x\"").Inc()
	now = now.Add(10 * time.Second)
	snap := st.Flush(store.FlushOptions{})
	h.Add(snap)
	snap.Close()
	return s
}

func TestStatsExplore(t *testing.T) {
	s := explorable(t)
	s.Request("GET", "/ready", nil) // the histogram of their times takes its memory
	for file, query := range map[string]string{
		"stats-explore":         "tags=1&limit=3",
		"stats-explore-prefix":  "prefix=shop.&by=bytes",
		"stats-explore-samples": "prefix=shop.&by=samples&limit=2",
		"stats-explore-tag":     "tag=country&by=name",
		"stats-explore-both":    "tag=country&prefix=shop.cart&limit=1",
		"stats-explore-none":    "prefix=nothing",
	} {
		for _, format := range []string{"", "&format=json"} {
			r := s.Request("GET", "/stats/explore?"+query+format, nil)
			if r.Status != 200 {
				t.Fatalf("%s: %d %s", query, r.Status, r.Body)
			}
			if format == "" {
				golden.Check(t, file, r.Body)
				continue
			}
			golden.Check(t, file+"-json", r.Body)
			jsonschema.Check(t, "../docs/schema/stats-explore.schema.json", r.Body)
		}
	}
	for query, want := range map[string]string{
		"by=value":                "usage: /stats/explore?by=(series|new|rate|samples|bytes|name)\n",
		"limit=1001":              "limit: \"1001\" is not an integer from 0 to 1000\n",
		"limit=-1":                "limit: \"-1\" is not an integer from 0 to 1000\n",
		"by=samples&tag=country":  "by=samples is not possible with tag: samples are counted by name\n",
		"limit=x&prefix=%22%0A%3": "",
	} {
		r := s.Request("GET", "/stats/explore?"+query, nil)
		if r.Status != 400 || want != "" && string(r.Body) != want {
			t.Errorf("%s: %d %q, want %q", query, r.Status, r.Body, want)
		}
	}
	plain := newServer(t, Config{Store: store.New(store.Options{})})
	for by, want := range map[string]string{"rate": "by=rate needs the history, which is off\n", "samples": "by=samples needs a StatsD input, and there is none\n"} {
		if r := plain.Request("GET", "/stats/explore?by="+by, nil); r.Status != 400 || string(r.Body) != want {
			t.Errorf("by=%s: %d %q, want %q", by, r.Status, r.Body, want)
		}
	}
}

// TestStatsExploreTooManySeries asks for a tag under a prefix that many stats have.
func TestStatsExploreTooManySeries(t *testing.T) {
	s := explorable(t)
	for i := range 50_001 {
		s.store.Root().Counter(fmt.Sprintf("many.%d", i))
	}
	r := s.Request("GET", "/stats/explore?tag=user&prefix=many.", nil)
	if want := "tag and prefix: more than 50000 stats have the prefix many.; give a longer one, or none\n"; r.Status != 400 || string(r.Body) != want {
		t.Errorf("%d %q, want %q", r.Status, r.Body, want)
	}
}

// TestStatsExploreHostileNames explores names with bytes that mean something to JSON and
// terminals: each name in an answer is the prefix of the next question.
func TestStatsExploreHostileNames(t *testing.T) {
	st := store.New(store.Options{})
	s := newServer(t, Config{Store: st})
	names := []string{"a\x00", "a\x00.b", "a", "a.\x00", "..x", ".", "a..b", "\xff\xfe.\xff", "<script>.alert(1)", "\x1b[31m.red", "\u202e.abc", strings.Repeat("long.", 200), "a\nb: 1", "\"", "\\.\\"}
	for _, name := range names {
		st.Root().Counter(name)
	}
	total := st.Len(store.KindCounter) + st.Len(store.KindGauge) + st.Len(store.KindHistogram) + st.Len(store.KindText)
	var walk func(prefix string, depth int) int
	walk = func(prefix string, depth int) (n int) {
		for _, format := range []string{"text", "json"} {
			r := s.Request("GET", "/stats/explore?limit=1000&prefix="+url.QueryEscape(prefix)+"&format="+format, nil)
			if r.Status != 200 || strings.ContainsAny(string(r.Body), "\x00\x1b") {
				t.Errorf("prefix %q: %d %q", prefix, r.Status, r.Body)
			}
			if format == "json" {
				jsonschema.Check(t, "../docs/schema/stats-explore.schema.json", r.Body)
			}
		}
		got, err := s.Explore(store.Explore{Prefix: prefix, Limit: 1000})
		if err != nil || got.Others.Series != 0 {
			t.Fatalf("prefix %q: %+v, %v", prefix, got, err)
		}
		for _, g := range got.Groups {
			if g.Leaf || len(g.Name) <= len(prefix) {
				n += g.Series
			} else {
				n += walk(g.Name, depth+1)
			}
		}
		return n
	}
	if n := walk("", 0); n != total {
		t.Errorf("%d stats at the ends of the tree, want %d", n, total)
	}
}

// TestExplorePreparationPanics expects a preparation that panics to be begun again.
func TestExplorePreparationPanics(t *testing.T) {
	var fuse guardtest.Fuse
	st := store.New(store.Options{Now: func() time.Time { fuse.Burn(); return testTime() }})
	for i := range 16_385 {
		st.Root().Counter(fmt.Sprintf("c%05d", i))
	}
	panics := guardtest.New(t)
	s := newServer(t, Config{Store: st, Logger: panics.Logger()})
	fuse.Light(1)
	if s.ExploreReady("") {
		t.Error("the explorer is ready at once")
	}
	panics.Caught("preparation of the explorer")
	waittest.Until(t, "the preparation", func() bool { return s.ExploreReady("") })
	if n := st.OpenViews(); n != 0 {
		t.Errorf("%d views are open", n)
	}
}
