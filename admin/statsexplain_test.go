package admin

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/history"
	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/internal/jsonschema"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// crowdedIngest is an input whose limit of series is nearly reached.
type crowdedIngest struct{ Ingest }

func (crowdedIngest) NearLimits(name string, tgs []tags.Tag) []report.Limit {
	if name != "cart.total" || len(tgs) != 2 {
		return nil
	}
	return []report.Limit{{Name: "series", Max: 100, Use: 80}}
}

// explained is a server with stats of all kinds and origins after two flushes.
func explained(t *testing.T) (*Server, *store.Store) {
	t.Helper()
	now := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	fixed := "fra"
	rules, err := tags.New(tags.Config{UseDefaults: true, Tags: []tags.Spec{{Name: "site", Fixed: &fixed}, {Name: "shard", Regex: `\.(shard_(\d+)\.)`}}})
	if err != nil {
		t.Fatal(err)
	}
	st := store.New(store.Options{Now: clock, Tags: rules})
	h := history.New(history.Config{Store: st})
	w := newWorld()
	src := w.sources()
	src.History, src.Ingest = h, crowdedIngest{src.Ingest}
	s := newServer(t, Config{Store: st, Now: clock, Sources: src})

	rq := st.Root().Counter("cluster.checkout.shard_3.upstream_rq_404")
	st.Describe("cluster.upstream_rq", store.Description{Help: "Requests\nby code.", Unit: "requests"})
	received := st.ScopeWith("", store.ScopeOptions{Network: true}).FloatGauge("cart.total", tags.Tag{Name: "country", Value: "de"}, tags.Tag{Name: "canary"})
	hist := st.Root().Histogram("http.ingress.downstream_rq_time", store.Milliseconds)
	st.Root().Text("release").Set("1.2")
	st.Scope("a").Counter("b_c").Inc()
	st.Scope("a.b").Counter("c").Inc()
	for i := range uint64(2) {
		now = now.Add(10 * time.Second)
		if i == 0 {
			rq.Add(25)
			_ = received.Set(1.5)
		}
		hist.Record(15)
		hist.Record(40)
		snap := st.Flush(store.FlushOptions{})
		h.Add(snap)
		snap.Close()
	}
	return s, st
}

func TestStatsExplain(t *testing.T) {
	s, st := explained(t)
	for file, name := range map[string]string{
		"stats-explain-cluster":   "cluster.checkout.shard_3.upstream_rq_404",
		"stats-explain-received":  "cart.total.country.de.canary",
		"stats-explain-histogram": "http.ingress.downstream_rq_time",
		"stats-explain-text":      "release",
		"stats-explain-missing":   "cluster.checkout.shard_3.upstraem_rq_404",
	} {
		r := s.Request("GET", "/stats/explain?name="+url.QueryEscape(name), nil)
		golden.Check(t, file, r.Body)
		want := 200
		if strings.HasSuffix(file, "missing") {
			want = 404
		}
		if r.Status != want {
			t.Errorf("%s: status %d, want %d", name, r.Status, want)
		}
		r = s.Request("GET", "/stats/explain?format=json&name="+url.QueryEscape(name), nil)
		if want == 200 {
			golden.Check(t, file+"-json", r.Body)
			jsonschema.Check(t, "../docs/schema/stats-explain.schema.json", r.Body)
		}
	}
	if r := s.Request("GET", "/stats/explain", nil); r.Status != 400 || string(r.Body) != "usage: /stats/explain?name=<full name>\n" {
		t.Errorf("no name: %d %q", r.Status, r.Body)
	}
	st.Root().Counter("cart.items", tags.Tag{Name: "shop", Value: "eu"}).Inc()
	for _, path := range []string{"/stats/explain?name=cart.items", "/stats/history?name=cart.items"} {
		if r := s.Request("GET", path, nil); r.Status != 404 || string(r.Body) != "there is no such stat\ndid you mean cart.items.shop.eu?\n" {
			t.Errorf("%s: %d %q", path, r.Status, r.Body)
		}
	}
	if r := s.Request("GET", "/stats/explain?name=quite.another.thing", nil); r.Status != 404 || string(r.Body) != "there is no such stat\n" {
		t.Errorf("nothing near: %d %q", r.Status, r.Body)
	}
}

// TestStatsExplainAgreesWithScrape looks for the lines in /stats/metrics.
func TestStatsExplainAgreesWithScrape(t *testing.T) {
	s, st := explained(t)
	scraped := strings.Split(string(s.Request("GET", "/stats/metrics?text_readouts&hidden=include", nil).Body), "\n")
	lines := make(map[string]bool, len(scraped))
	for _, line := range scraped {
		lines[line] = true
	}
	var names []string
	v := st.View()
	for _, set := range []store.NameSet{store.Scalars, store.Histograms, store.Texts} {
		for c := v.ByName(set); c.Next(); {
			if name := c.Name(); !strings.Contains(name, "admin") {
				names = append(names, name)
			}
		}
	}
	v.Close()
	for _, name := range names {
		var x struct {
			Exposition struct {
				Name, Type string
				Merged     bool
				Lines      []string
			}
		}
		r := s.Request("GET", "/stats/explain?format=json&name="+url.QueryEscape(name), nil)
		if err := json.Unmarshal(r.Body, &x); err != nil {
			t.Fatal(err)
		}
		e := &x.Exposition
		if e.Merged != (name == "a.b_c" || name == "a.b.c") {
			t.Errorf("%s: merged is %v", name, e.Merged)
		}
		if e.Merged {
			continue
		}
		if !lines["# TYPE "+e.Name+" "+e.Type] || len(e.Lines) == 0 {
			t.Errorf("%s: no type or lines: %+v", name, e)
		}
		for _, line := range e.Lines {
			if !lines[line] {
				t.Errorf("%s: %q is not in the scrape", name, line)
			}
		}
	}
}

func TestStatsExplainHostileNames(t *testing.T) {
	s, st := explained(t)
	network := st.ScopeWith("", store.ScopeOptions{Network: true, ExtractTags: true})
	for i, name := range []string{"a\nb: 1", "\x1b[31mred", "<script>alert(1)</script>", `"quoted"`, "\xff\xfe", "...", " ", "cluster..x_rq_200", "\u202eabc", strings.Repeat("n.", 1500) + "end"} {
		network.Counter(name).Inc()
		network.Gauge(fmt.Sprint("tagged", i), tags.Tag{Name: name, Value: name}).Set(1)
		for _, full := range []string{name, fmt.Sprint("tagged", i, ".", name, ".", name), name + "?"} {
			for _, format := range []string{"text", "json"} {
				r := s.Request("GET", "/stats/explain?format="+format+"&name="+url.QueryEscape(full), nil)
				if r.Status != 200 && r.Status != 404 && r.Status != 400 {
					t.Errorf("%.40q: status %d", full, r.Status)
				}
				if strings.Contains(string(r.Body), "\x1b") || format == "text" && strings.Contains(string(r.Body), "\u202e") || strings.Contains(string(r.Body), "\nb: 1") {
					t.Errorf("%.40q: control characters in %.300q", full, r.Body)
				}
				if format == "json" && r.Status == 200 {
					jsonschema.Check(t, "../docs/schema/stats-explain.schema.json", r.Body)
				}
			}
		}
	}
}

// TestNearestStatIsBounded expects suggestions of received names only where those are
// asked for.
func TestNearestStatIsBounded(t *testing.T) {
	st := store.New(store.Options{})
	st.Root().Counter("program.name")
	st.ScopeWith("", store.ScopeOptions{Network: true}).Counter("received.name")
	s := newServer(t, Config{Store: st})
	for _, x := range []struct {
		name     string
		received bool
		want     string
	}{
		{"program.nome", false, "program.name"}, {"program.nome", true, ""}, {"received.nome", true, "received.name"}, {"received.nome", false, "received.name"}, {"received", true, "received.name"},
		{"program", true, ""}, {"program", false, "program.name"}, {"", false, ""}, {"else", false, ""}, {"programXname", false, "program.name"}, {"received.", true, ""},
	} {
		if got := s.NearestStat(x.name, x.received); got != x.want {
			t.Errorf("%q, received %v: %q, want %q", x.name, x.received, got, x.want)
		}
	}
}
