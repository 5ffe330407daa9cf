package tags

import (
	"strings"
	"sync"
	"testing"
)

func text(s string) *string { return &s }

func TestConfiguredTags(t *testing.T) {
	tests := []struct {
		name   string
		config Config
		want   []extraction
	}{
		{"regex-with-two-groups", Config{UseDefaults: true, Tags: []Spec{{Name: "tier", Regex: `\.tier_((\w+)\.)`}}}, []extraction{
			{"edge.tier_gold.rq", "edge.tier_rq", "tier=gold"},
			{"edge.rq", "edge.rq", ""},
		}},
		{"own-tag-before-a-default-one", Config{UseDefaults: true, Tags: []Spec{{Name: "tier", Regex: `\.tier_((\w+)\.)`}, {Name: "proxy.cluster_name", Regex: `^pool\.((\w+)\.)`}}}, []extraction{
			{"pool.a.tier_gold.rq", "pool.tier_rq", "tier=gold cluster_name=a"},
		}},
		{"regex-with-one-group", Config{Tags: []Spec{{Name: "shard", Regex: `(_s\d+)$`}}}, []extraction{
			{"db.reads_s12", "db.reads", "shard=_s12"},
		}},
		{"second-group-empty-falls-back", Config{Tags: []Spec{{Name: "x", Regex: `a(b(c?))`}}}, []extraction{
			{"zabz", "zaz", "x=b"},
			{"zabcz", "zaz", "x=c"},
		}},
		{"second-group-absent-falls-back", Config{Tags: []Spec{{Name: "x", Regex: `a(b)|(c)`}}}, []extraction{
			{"zabz", "zaz", "x=b"},
			{"zcz", "zcz", ""}, // the first group took no part
		}},
		{"second-group-outside-the-first", Config{Tags: []Spec{{Name: "x", Regex: `(cut)_(kept)`}}}, []extraction{
			{"a.cut_kept", "a._kept", "x=kept"},
		}},
		{"empty-first-group-is-nothing", Config{Tags: []Spec{{Name: "x", Regex: `a(b*)(c)`}}}, []extraction{
			{"zacz", "zacz", ""},
		}},
		{"no-group-is-nothing", Config{Tags: []Spec{{Name: "x", Regex: `abc`}}}, []extraction{
			{"abc", "abc", ""},
		}},
		{"not-anchored", Config{Tags: []Spec{{Name: "x", Regex: `((\d+)_)`}}}, []extraction{
			{"a.12_b.34_c", "a.b.34_c", "x=12"}, // the first place only
		}},
		{"everything-removed", Config{Tags: []Spec{{Name: "x", Regex: `^(.+)$`}}}, []extraction{
			{"a.b", "", "x=a.b"},
		}},
		{"overlaps-are-united", Config{Tags: []Spec{
			{Name: "x", Regex: `(b\.c)`}, {Name: "y", Regex: `(c\.d)`}, {Name: "z", Regex: `(a\.)`}, {Name: "w", Regex: `(c)`},
		}}, []extraction{
			{"a.b.c.d.e", ".e", "x=b.c y=c.d z=a. w=c"},
		}},
		{"same-name-first-match-wins", Config{Tags: []Spec{{Name: "x", Regex: `(one)`}, {Name: "x", Regex: `(two)`}}}, []extraction{
			{"two.one", "two.", "x=one"}, // the second keeps its text
			{"two.three", ".three", "x=two"},
		}},
		{"defaults-off", Config{Tags: []Spec{{Name: "x", Regex: `(one)`}}}, []extraction{
			{"cluster.one.upstream_rq_404", "cluster..upstream_rq_404", "x=one"},
		}},
		{"default-by-name", Config{Tags: []Spec{{Name: "proxy.cluster_name"}, {Name: "proxy.response_code"}}}, []extraction{
			// without a first token before tied to one, whatever the order
			{"cluster.a.upstream_rq_404", "cluster.upstream_rq", "response_code=404 cluster_name=a"},
			{"http.a.x", "http.a.x", ""},
		}},
		{"default-by-name-takes-all-rules-of-it", Config{Tags: []Spec{{Name: "proxy.http_conn_manager_prefix"}}}, []extraction{
			{"http.a.x", "http.x", "http_conn_manager_prefix=a"},
			{"listener.l.http.a.x", "listener.l.http.x", "http_conn_manager_prefix=a"},
		}},
		{"default-by-name-keeps-forbidden-value", Config{Tags: []Spec{{Name: "proxy.listener_address"}}}, []extraction{
			{"listener.admin.x", "listener.admin.x", ""},
			{"listener.pub.x", "listener.x", "listener_address=pub"},
		}},
		{"default-by-name-with-product", Config{Product: "envoy", Tags: []Spec{{Name: "envoy.cluster_name"}}}, []extraction{
			{"cluster.a.x", "cluster.x", "envoy.cluster_name=a"},
		}},
		{"fixed-values", Config{Tags: []Spec{{Name: "zone", Fixed: text("a.b")}, {Name: "empty", Fixed: text("")}}}, []extraction{
			{"x", "x", "zone=a.b empty="},
			{"", "", "zone=a.b empty="},
		}},
		{"fixed-beats-tied-default-of-its-name", Config{UseDefaults: true, Tags: []Spec{{Name: "proxy.cluster_name", Fixed: text("f")}}}, []extraction{
			{"cluster.a.x", "cluster.a.x", "cluster_name=f"},
		}},
		{"untied-default-beats-fixed-of-its-name", Config{UseDefaults: true, Tags: []Spec{{Name: "proxy.response_code", Fixed: text("f")}}}, []extraction{
			{"x.upstream_rq_404", "x.upstream_rq", "response_code=404"},
			{"x.y", "x.y", "response_code=f"},
		}},
		{"command-line-before-configured", Config{
			CommandLine: []Tag{{"a", "1"}, {"b", "2"}}, Tags: []Spec{{Name: "b", Fixed: text("3")}, {Name: "c", Fixed: text("4")}},
		}, []extraction{
			{"x", "x", "a=1 b=2 c=4"},
		}},
		{"order-of-labels", Config{
			UseDefaults: true, CommandLine: []Tag{{"cli", "c"}},
			Tags: []Spec{
				{Name: "tied", Regex: `^cluster\.\w+\.(up_)`}, {Name: "loose", Regex: `(_zone)`}, {Name: "fixed", Fixed: text("f")},
			},
		}, []extraction{
			{"cluster.checkout.upstream_rq_200", "cluster.upstream_rq", "response_code=200 cli=c fixed=f cluster_name=checkout"},
			{"cluster.checkout.up_zone_rq_200", "cluster._rq", "response_code=200 cli=c loose=_zone fixed=f cluster_name=checkout tied=up_"},
		}},
		{"special-characters-in-tag-names", Config{Tags: []Spec{{Name: "a b/ü.\"", Fixed: text("v")}}}, []extraction{
			{"x", "x", "a b/ü.\"=v"},
		}},
		{"no-rules", Config{}, []extraction{
			{"cluster.a.upstream_rq_404", "cluster.a.upstream_rq_404", ""},
		}},
		{"default-wins-without-overrides", Config{UseDefaults: true, Tags: []Spec{
			{Name: "proxy.cluster_name", Regex: `^cluster\.\w+\.((\w+)\.)`},
		}}, []extraction{
			{"cluster.a.b.x", "cluster.b.x", "cluster_name=a"},
		}},
		{"configured-wins-with-overrides", Config{UseDefaults: true, AllowOverrides: true, Tags: []Spec{
			{Name: "proxy.cluster_name", Regex: `^cluster\.\w+\.((\w+)\.)`}, {Name: "other", Fixed: text("o")},
		}}, []extraction{
			{"cluster.a.b.x", "cluster.a.x", "other=o cluster_name=b"},
			{"cluster.a.x", "cluster.x", "other=o cluster_name=a"}, // no match: the default is tried
		}},
		{"tied-configured-wins-over-untied-default", Config{UseDefaults: true, AllowOverrides: true, Tags: []Spec{
			{Name: "proxy.response_code", Regex: `^cluster\..*(_code(\d+))`},
		}}, []extraction{
			{"cluster.a.b_code7_rq_404", "cluster.b_rq_404", "response_code=7 cluster_name=a"},
			{"http.a.b_code7_rq_404", "http.b_code7_rq", "response_code=404 http_conn_manager_prefix=a"},
		}},
		{"fixed-wins-with-overrides", Config{UseDefaults: true, AllowOverrides: true, Tags: []Spec{
			{Name: "proxy.response_code", Fixed: text("f")}, {Name: "proxy.cluster_name", Fixed: text("g")},
		}}, []extraction{
			{"cluster.a.x_rq_404", "cluster.a.x_rq_404", "response_code=f cluster_name=g"},
		}},
		{"default-by-name-with-overrides", Config{UseDefaults: true, AllowOverrides: true, Tags: []Spec{{Name: "proxy.cluster_name"}}}, []extraction{
			{"cluster.a.x", "cluster.x", "cluster_name=a"},
		}},
		{"overrides-without-defaults", Config{AllowOverrides: true, Tags: []Spec{
			{Name: "proxy.cluster_name", Regex: `^cluster\.\w+\.((\w+)\.)`},
		}}, []extraction{
			{"cluster.a.b.x", "cluster.a.x", "cluster_name=b"},
		}},
		{"first-token-needs-a-dot", Config{Tags: []Spec{{Name: "x", Regex: `^edge\.?(e?)`}, {Name: "y", Regex: `^edge\.(e)`}}}, []extraction{
			{"edgee", "edge", "x=e"},
			{"edge.e", "edge.", "x=e y=e"},
			{"wedge.e", "wedge.e", ""},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			product := tt.config.Product
			if product == "" {
				product = DefaultProduct
			} else {
				product = "-" // show the names in full
			}
			e := mustNew(t, tt.config)
			for _, want := range tt.want {
				checkExtraction(t, e, product, want)
			}
		})
	}
}

func TestConfigurationErrors(t *testing.T) {
	tests := []struct {
		name     string
		config   Config
		exact    string
		contains []string
	}{
		{name: "unknown-default", config: Config{UseDefaults: true, Tags: []Spec{{Name: "shoe_size"}}},
			exact: "No regex specified for tag specifier and no default regex for name: 'shoe_size'"},
		{name: "default-needs-the-product", config: Config{Tags: []Spec{{Name: "cluster_name"}}},
			exact: "No regex specified for tag specifier and no default regex for name: 'cluster_name'"},
		{name: "empty-name", config: Config{Tags: []Spec{{Regex: "(a)"}}}, exact: "tag_name cannot be empty"},
		{name: "empty-fixed-name", config: Config{Tags: []Spec{{Fixed: text("a")}}}, exact: "tag_name cannot be empty"},
		{name: "empty-command-line-name", config: Config{CommandLine: []Tag{{"", "a"}}}, exact: "tag_name cannot be empty"},
		{name: "two-sources", config: Config{Tags: []Spec{{Name: "x", Regex: "(a)", Fixed: text("a")}}}, contains: []string{`tags: tag "x"`, "only one"}},
		{name: "bad-regex", config: Config{Tags: []Spec{{Name: "x", Regex: "(a"}}}, contains: []string{`tags: tag "x"`, `"(a"`, "missing closing )"}},
		{name: "lookahead", config: Config{Tags: []Spec{{Name: "x", Regex: "(?=a)"}}}, contains: []string{`tags: tag "x"`, "(?="}},
		{name: "long-regex", config: Config{Tags: []Spec{{Name: "x", Regex: "(" + strings.Repeat("a", 1023) + ")"}}}, contains: []string{`tags: tag "x"`, "1025 bytes", "1024"}},
		{name: "large-regex", config: Config{Tags: []Spec{{Name: "x", Regex: "(" + strings.Repeat("a{1000}", 10) + ")"}}}, contains: []string{`tags: tag "x"`, "10000 instructions"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(tt.config)
			if err == nil {
				t.Fatal("no error")
			}
			if tt.exact != "" && err.Error() != tt.exact {
				t.Errorf("error = %q, want %q", err, tt.exact)
			}
			for _, s := range tt.contains {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("error = %q, want %q in it", err, s)
				}
			}
		})
	}
}

func TestFirstTokenOfAnExpression(t *testing.T) {
	tests := []struct{ expr, want string }{
		{`^cluster\.`, "cluster"},
		{`^cluster\.(x)`, "cluster"},
		{`^cluster\.ssl\.(x)`, "cluster"},
		{`^my-app\.(x)`, "my-app"},
		{`^cluster\.(a)|^cluster\.(b)`, ""}, // more could be told; it only saves time
		{`^cluster\.(a)|(b)`, ""},
		{`^cluster\.?(x)`, ""},
		{`^cluster.(x)`, ""},
		{`^cluster`, ""},
		{`^clust(er)\.`, ""},
		{`(?i)^cluster\.(x)`, ""},
		{`(?m)^cluster\.(x)`, ""},
		{`cluster\.(x)`, ""},
		{`^\.(x)`, ""},
		{`^`, ""},
		{`(`, ""},
	}
	for _, tt := range tests {
		if got := firstToken(tt.expr); got != tt.want {
			t.Errorf("firstToken(%s) = %q, want %q", tt.expr, got, tt.want)
		}
	}
}

func TestTokenPatterns(t *testing.T) {
	tests := []struct{ pattern, name, base, value string }{
		{"a.$", "a.b", "a", "b"}, // the last token takes the dot before it
		{"a.$", "a", "a", ""},
		{"a.$", "a.b.c", "a.b.c", ""},
		{"$", "a", "", "a"},
		{"$.a", "b.a", "a", "b"},
		{"$.**", "b", "b", ""}, // at the end ** takes one token or more
		{"$.**", "b.c.d", "c.d", "b"},
		{"**.$", "a.b.c", "a.b", "c"},
		{"**.$", "a", "", "a"},
		{"*.$.x", "a.b.x", "a.x", "b"},
		{"*.$.x", "a.b.c.x", "a.b.c.x", ""},
		{"a.**.q.$", "a.q.b", "a.q", "b"}, // in the middle it may take none
		{"a.**.q.$", "a.q.q.b", "a.q.q", "b"},
		{"a.**.q.$", "a.q.q.q", "a.q.q", "q"},
		{"a.**.q.*.$.**", "a.x.q.1.2.q.4", "a.x.q.1.q.4", "2"},
		{"a.$.**.q.*", "a.v.q.q.q", "a.q.q.q", "v"}, // goes back from the first q
		{"a.$.**.q.*", "a.v.q", "a.v.q", ""},
		{"a.$.b", "a..b", "a..b", ""}, // an empty value is none
		{"a.*.$.b", "a..c.b", "a..b", "c"},
	}
	for _, tt := range tests {
		r := tokenRule("t", tt.pattern)
		r.first = ""
		e := compile([]rule{r})
		base, got := e.Extract(tt.name, nil)
		value := ""
		if len(got) > 0 {
			value = got[0].Value
		}
		if base != tt.base || value != tt.value {
			t.Errorf("pattern %s on %q: base %q, value %q; want %q, %q", tt.pattern, tt.name, base, value, tt.base, tt.value)
		}
	}
}

func TestCutsAreUnited(t *testing.T) {
	tests := []struct{ add, want []span }{
		{[]span{{1, 2}, {5, 6}, {3, 4}}, []span{{1, 2}, {3, 4}, {5, 6}}},
		{[]span{{1, 3}, {2, 5}}, []span{{1, 5}}},
		{[]span{{4, 6}, {1, 4}}, []span{{1, 6}}},
		{[]span{{1, 9}, {3, 4}}, []span{{1, 9}}},
		{[]span{{3, 4}, {6, 7}, {10, 12}, {1, 11}}, []span{{1, 12}}},
		{[]span{{3, 4}, {6, 7}, {20, 21}, {4, 6}}, []span{{3, 7}, {20, 21}}},
	}
	for _, tt := range tests {
		var got []span
		for _, c := range tt.add {
			got = addCut(got, c)
		}
		if len(got) != len(tt.want) {
			t.Errorf("cuts %v = %v, want %v", tt.add, got, tt.want)
			continue
		}
		for i := range got {
			if got[i] != tt.want[i] {
				t.Errorf("cuts %v = %v, want %v", tt.add, got, tt.want)
			}
		}
	}
}

func TestExtractorIsSafeForConcurrentUse(t *testing.T) {
	e := mustNew(t, Config{UseDefaults: true, CommandLine: []Tag{{"a", "1"}}, Tags: []Spec{{Name: "tier", Regex: `\.tier_((\w+)\.)`}}})
	name := "cluster.checkout.tier_gold.upstream_rq_404"
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var dst []Tag
			for range 500 {
				var base string
				base, dst = e.Extract(name, dst[:0])
				if got := render(dst, DefaultProduct); base != "cluster.tier_upstream_rq" || got != "response_code=404 a=1 tier=gold cluster_name=checkout" {
					t.Errorf("Extract(%q) = %q, %q", name, base, got)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestFixed(t *testing.T) {
	e := mustNew(t, Config{UseDefaults: true, CommandLine: []Tag{{"a", "1"}, {"b", ""}}, Tags: []Spec{
		{Name: "x", Regex: "(x*)"}, {Name: "a", Fixed: text("2")}, {Name: "proxy.cluster_name", Fixed: text("f")},
	}})
	if got, want := render(e.Fixed(), "proxy"), "a=1 b= cluster_name=f"; got != want {
		t.Errorf("Fixed() = %q, want %q", got, want)
	}
	if got := mustNew(t, Config{UseDefaults: true}).Fixed(); got != nil {
		t.Errorf("Fixed() without fixed tags = %v", got)
	}
}
