package admin

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
)

// mapped is an input with rules of every sort, and explanations of what drops a sample.
type mapped struct {
	worldIngest
	rules report.Mapping
}

func (m *mapped) Mapping() report.Mapping {
	rules := m.rules
	rules.Rules = slices.Clone(rules.Rules)
	return rules
}

func (m *mapped) Explain(text []byte) report.Explanation {
	return report.Explanation{Kind: "metric", Samples: []report.Sample{{Type: "c", Kind: "counter", Rule: &report.Rule{Number: 3, Match: "a"}, Dropped: string(text) == "dropped", Filter: "metrics"}}}
}

func (m *mapped) Report() report.Report {
	return report.Report{Listeners: []report.Listener{{ListenerInfo: report.ListenerInfo{Name: "one"}, RelayOnly: 7}, {ListenerInfo: report.ListenerInfo{Name: "two"}}}}
}

// TestMappingIsShown expects the settings and the rules, as far as they are asked for.
// TestReloadKeepsTheRulesOnError expects the reason, and no change.
func TestReloadKeepsTheRulesOnError(t *testing.T) {
	world := newWorld()
	world.failing = errors.New("line 3: no name")
	s := newServer(t, Config{Sources: world.sources()})
	if r, want := s.Request("POST", "/ingest/reload", nil), "the current mapping rules stay: line 3: no name\n"; r.Status != 400 || string(r.Body) != want {
		t.Errorf("%d %q, want %q", r.Status, r.Body, want)
	}
	if e := s.Audit(1)[0]; e.Status != 400 || e.Changes != nil {
		t.Errorf("%+v", e)
	}
}

// TestForgetNamesTheNearestStat expects a hint only for a name that nothing has.
func TestForgetNamesTheNearestStat(t *testing.T) {
	s := newServer(t, Config{Sources: newWorld().sources()})
	s.store.ScopeWith("", store.ScopeOptions{Network: true}).Counter("web.requests")
	for query, want := range map[string]string{
		"name=web.request":   "OK, removed 0 series\ndid you mean web.requests, or the prefix web.request.?\n",
		"prefix=web.request": "OK, removed 0 series\n",
		"name=nothing":       "OK, removed 0 series\n",
		"name=web.a":         "OK, removed 1 series\n",
	} {
		if r := s.Request("POST", "/ingest/forget?"+query, nil); r.Status != 200 || string(r.Body) != want {
			t.Errorf("%s: %d %q, want %q", query, r.Status, r.Body, want)
		}
	}
}

func TestMappingIsShown(t *testing.T) {
	at := testTime()
	input := &mapped{rules: report.Mapping{Reloads: 2, Reloaded: at, MostLiteral: true, DropUnmatched: true, Rules: []report.RuleUse{
		{Rule: report.Rule{Number: 1, Match: "a", Position: "x:1"}, Name: "used", Matches: 4, Last: at, Kind: "timer"},
		{Rule: report.Rule{Number: 2, Match: "b"}, Regex: true, Drops: true},
		{Rule: report.Rule{Number: 3, Match: "c"}, Name: "hidden", ShadowedBy: 1},
	}}}
	s := newServer(t, Config{Sources: Sources{Ingest: input, ReloadMapping: func() error { return nil }}})
	for target, want := range map[string]string{
		"/ingest/mapping":               "\nlast_reload: 2026-01-02T03:04:05.678Z\nglobs: most_literal\nunmatched: drop\n",
		"/ingest/mapping?show=all":      "used",
		"/ingest/mapping?show=unused":   "hidden",
		"/ingest/mapping?show=shadowed": "shadowed_by: 1",
		"/ingest/explain?line=dropped":  "rule",
		"/ingest":                       "relay_only: 7",
	} {
		if r := s.Request("GET", target, nil); r.Status != 200 || !strings.Contains(string(r.Body), want) {
			t.Errorf("%s: %d lacks %q:\n%s", target, r.Status, want, r.Body)
		}
	}
	count := func(target, text string) int { return strings.Count(string(s.Request("GET", target, nil).Body), text) }
	for _, x := range []struct {
		target, text string
		want         int
	}{
		{"/ingest/mapping", "match_type: regex", 1}, {"/ingest/mapping", "match_metric_type: timer", 1}, {"/ingest/mapping", "action: drop", 1}, {"/ingest/mapping", "name: ", 2}, {"/ingest/mapping", "unused: true", 1}, {"/ingest/mapping", "last_match: ", 1},
		{"/ingest/mapping", "matches: ", 3}, {"/ingest/mapping?show=unused", "matches: ", 2}, {"/ingest/mapping?show=shadowed", "matches: ", 1}, {"/ingest/mapping?show=other", "usage: ", 1},
		{"/ingest/explain?line=dropped", "dropped: true", 1}, {"/ingest/explain?line=kept", "dropped: true", 0}, {"/ingest/explain?line=kept", "filter: metrics", 1}, {"/ingest/explain?line=kept", "number: 3", 1},
		{"/ingest", "relay_only: ", 1}, {"/ingest?listener=two", "relay_only: ", 0}, {"/ingest?listener=none", "no such listener: ", 1}, {"/ingest/events?limit=x", "limit", 1}, {"/ingest?limit=x", "limit", 1},
	} {
		if got := count(x.target, x.text); got != x.want {
			t.Errorf("%s has %q %d times, want %d", x.target, x.text, got, x.want)
		}
	}
	input.rules = report.Mapping{}
	for _, text := range []string{"globs: first_in_file\nunmatched: keep\n"} {
		if count("/ingest/mapping", text) != 1 || count("/ingest/mapping", "last_reload") != 0 {
			t.Errorf("no %q", text)
		}
	}
}
