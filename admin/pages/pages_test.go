package pages

import (
	"bytes"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/certinfo"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/history"
	"github.com/statsd-admin/statsd-admin/server/layers"
	"github.com/statsd-admin/statsd-admin/server/listeners"
	"github.com/statsd-admin/statsd-admin/server/logctl"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

var testNow = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

// world is a server whose every name is text.
func world(t testing.TB, text string, change func(*admin.Config)) *admin.Server {
	t.Helper()
	st := store.New(store.Options{Now: func() time.Time { return testNow }})
	past := history.New(history.Config{Store: st})
	sc := st.Scope("x")
	sc.Counter(text).Add(7)
	sc.Counter("unused")
	sc.Gauge("gauge").Set(3)
	sc.Text("text").Set(text)
	hist := sc.Histogram("time", store.Milliseconds)
	for i := range uint64(200) {
		hist.Record(i*i/40 + 3)
	}
	sc.Histogram("idle", store.Milliseconds)
	st.ScopeWith("", store.ScopeOptions{Network: true}).Counter("x", tags.Tag{Name: "site", Value: text})
	st.Scope("cluster." + text).Counter("upstream_rq_total").Add(100)
	st.Scope("cluster." + text).Counter("upstream_rq_5xx").Add(10)
	snap := st.Flush(store.FlushOptions{})
	past.Add(snap)
	snap.Close()
	st.Symbols().EnableRecent()
	loggers, err := logctl.New(logctl.Config{Level: logctl.Trace, Names: []string{"main"}})
	if err != nil {
		t.Fatal(err)
	}
	runtime, err := layers.New(layers.Config{Layers: []layers.Layer{{Name: "base", Kind: layers.Static, Values: map[string]any{"key": text, "api_token": "planted-secret"}}, {Name: "admin", Kind: layers.Admin}}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := admin.Config{Store: st, Now: func() time.Time { return testNow }, Sources: admin.Sources{
		Info: func() admin.ServerInfo {
			return admin.ServerInfo{Version: text, UptimeCurrentEpoch: 90 * time.Second, Node: &admin.Node{ID: text, Cluster: text}, CommandLine: admin.CommandLine{LogPath: text}}
		},
		History:      past,
		Clusters:     fakeClusters{text},
		Loggers:      loggers,
		Runtime:      runtime,
		Ingest:       fakeIngest{text},
		Drains:       fakeDrains{},
		Health:       fakeDrains{},
		ReopenLogs:   func() error { return nil },
		Certificates: func() []certinfo.Context { return testCertificates(text) },
		Listeners: func() []listeners.Listener {
			return []listeners.Listener{{Name: text, Addresses: []config.Address{{Pipe: text}}}}
		},
	}}
	if change != nil {
		change(&cfg)
	}
	srv, err := admin.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n := st.OpenViews(); n != 0 {
			t.Errorf("%d views are open", n)
		}
	})
	if err := Add(srv); err != nil {
		t.Fatal(err)
	}
	return srv
}

// TestPathsOfPagesAreTaken expects an error if the program has a page of its own.
func TestPathsOfPagesAreTaken(t *testing.T) {
	for _, path := range []string{Prefix + "stats", "/ui"} {
		srv, err := admin.New(admin.Config{Store: store.New(store.Options{})})
		if err != nil {
			t.Fatal(err)
		}
		if err := srv.Handle(admin.Endpoint{Path: path, Serve: toPages}); err != nil {
			t.Fatal(err)
		}
		if err := Add(srv); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestOrderByType expects stats in the order of the names of their kinds.
func TestOrderByType(t *testing.T) {
	srv := full(t, nil)
	for dir, want := range map[string]string{"asc": "counter gauge histogram text readout", "desc": "text readout histogram gauge counter"} {
		var kinds []string
		for row := range strings.Lines(string(request(srv, "stats?sort=type&tsv=stats&rows=1000&dir="+dir, "").Body)) {
			kinds = append(kinds, strings.Split(row, "\t")[1])
		}
		if got := strings.Join(slices.Compact(kinds[1:]), " "); got != want {
			t.Errorf("%s: %s", dir, got)
		}
	}
}

type fakeDrains struct{}

func (fakeDrains) Drain(bool)                 {}
func (fakeDrains) DrainGracefully(bool, bool) {}
func (fakeDrains) FailHealth()                {}
func (fakeDrains) RestoreHealth()             {}
func (fakeDrains) HealthFailed() bool         { return false }

func testCertificates(text string) []certinfo.Context {
	at := func(days int) time.Time { return testNow.Add(time.Duration(days) * 24 * time.Hour) }
	names := []certinfo.AltName{{Kind: "dns", Value: text}, {Kind: "dns", Value: "b"}, {Kind: "dns", Value: "c"}, {Kind: "dns", Value: "d" + text}}
	return []certinfo.Context{{Chain: []certinfo.Certificate{{Path: text, AltNames: names, SerialNumber: text, From: at(-9), Until: at(6), OCSP: &certinfo.Validity{}}, {Until: at(300)}},
		CA: []certinfo.Certificate{{Until: at(-1), OCSP: &certinfo.Validity{Until: at(1)}}}}}
}

type fakeClusters struct{ name string }

func (f fakeClusters) Version() string                    { return "" }
func (f fakeClusters) Tracked(func(*status.Cluster) bool) {}
func (f fakeClusters) Statuses(yield func(*status.Cluster) bool) {
	hosts := func(flags ...status.Flags) func(func(*status.Host) bool) {
		return func(yield func(*status.Host) bool) {
			for i, flag := range flags {
				host := status.Host{Address: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 80), Hostname: f.name, Zone: f.name, Health: flag, Weight: 1, SuccessRate: -1,
					Stats: []status.HostStat{{Name: "cx_active", Gauge: true, Value: 4}}}
				if !yield(&host) {
					return
				}
			}
		}
	}
	_ = yield(&status.Cluster{Name: "good", ObservabilityName: "good", Hosts: hosts(0, 0)}) &&
		yield(&status.Cluster{Name: f.name, ObservabilityName: f.name, AddedViaAPI: true, Version: f.name, Outlier: &status.OutlierRates{Average: 98.5, Threshold: 90},
			Breakers: [2]status.BreakerLimits{{MaxConnections: 1024, MaxRequests: 1024, MaxRetries: 3}, {MaxConnections: 1<<64 - 1, MaxRequests: 10}},
			InUse:    [2]status.BreakerUse{{Connections: 1000, Requests: 812, Retries: 1}, {Requests: 10}},
			Hosts:    hosts(status.FailedActiveHC, status.DegradedActiveHC, 0, status.FailedActiveHC|status.FailedOutlierCheck)}) &&
		yield(&status.Cluster{Name: "none", ObservabilityName: "none", Outlier: &status.OutlierRates{Average: -1}})
}

type fakeIngest struct{ text string }

func (f fakeIngest) Report() report.Report {
	name := []report.NameCount{{Name: f.text, Count: 3}}
	return report.Report{
		Listeners: []report.Listener{{ListenerInfo: report.ListenerInfo{Name: f.text, Protocol: "udp", Address: "udp://127.0.0.1:8125", Readers: 1}, Lines: 9, KernelDrops: 2, Rejected: map[string]uint64{"x": 1}, QueueLimit: 10, QueueBytes: 8},
			{ListenerInfo: report.ListenerInfo{Name: "tcp", Protocol: "tcp", Address: f.text}, Connections: 1}},
		Rejected: []report.Rejected{{Reason: f.text, Count: 2, Last: []report.RejectedLine{{Time: testNow, Listener: f.text, Source: f.text, Line: f.text}, {Line: ""}}}},
		Limits:   []report.Limit{{Name: f.text, Max: 100, Use: 80, Limited: 1}, {Name: "series", Max: -1}},
		Series:   []report.Kind{{Kind: f.text, Series: 1}}, Expiry: f.text, TopSeries: name, TopTags: name, TopSamples: []report.NameRate{{Name: f.text, PerSecond: 2}},
		Newest:    []report.NewSeries{{Time: testNow, Name: f.text, Kind: "counter", Tags: f.text}},
		Conflicts: []report.Conflict{{Name: f.text, Group: f.text, Other: f.text, What: f.text}},
	}
}

func (f fakeIngest) Recent() report.Recent {
	return report.Recent{Limits: []report.Limit{{Name: f.text, Max: 100, Use: 80}}, Samples: []report.NameRate{{Name: "x." + f.text, PerSecond: 2}},
		Newest: []report.NewSeries{{Time: testNow, Name: "x", Kind: "counter", Sender: f.text}}, Overflowed: []string{"x"}}
}

func (f fakeIngest) NearLimits(string, []tags.Tag) []report.Limit {
	return []report.Limit{{Name: f.text, Max: 100, Use: 80}}
}

func (f fakeIngest) Explain(line []byte) report.Explanation {
	if bytes.HasPrefix(line, []byte("bad")) {
		return report.Explanation{Kind: "metric", Reason: f.text, Offset: 2}
	}
	if bytes.HasPrefix(line, []byte("drop")) {
		return report.Explanation{Kind: "metric", Samples: []report.Sample{{Kind: "counter", Rule: &report.Rule{Number: 2, Match: f.text, Position: f.text}, Dropped: true}}}
	}
	return report.Explanation{Kind: "metric", Samples: []report.Sample{{Kind: "counter", Stat: f.text, Series: f.text, Limit: f.text}}}
}

func (f fakeIngest) Forget(func(string) bool) int { return 0 }

func (f fakeIngest) Matching(func(string) bool) int { return 0 }

// Mapping has rules of each state; the last reload failed.
func (f fakeIngest) Mapping() report.Mapping {
	rules := []report.RuleUse{
		{Rule: report.Rule{Match: f.text + ".*", Position: f.text}, Name: f.text, Matches: 1234, Last: testNow},
		{Rule: report.Rule{Match: "debug.*"}, Drops: true, Matches: 1, Last: testNow},
		{Rule: report.Rule{Match: `^` + f.text + `\.(\d+)$`}, Regex: true, Kind: "observer", Name: "$1_" + f.text},
		{Rule: report.Rule{Match: f.text + ".a.*"}, Name: f.text, ShadowedBy: 1},
	}
	for i := range rules {
		rules[i].Number = i + 1
	}
	return report.Mapping{Rules: rules, Mapped: 1234, Dropped: 1, Unmatched: 7, DropUnmatched: true, Reloads: 2, FailedReloads: 1, Reloaded: testNow, Error: f.text}
}

// targets are views of all pages; %s is a name of the world.
var targets = []string{"", "stats", "stats?filter=x&sort=value&usedonly=1", "stats?type=histogram", "stats?filter=(%s", "stats?filter=^x&re=ecma&group=1&recent=1&nonzero=1", "stats?pins=x.%s%0Agone.%s&sel=x.%s&zero=1795341600000&hide=type.trend&sort=delta",
	"stats?sort=changed&dir=asc&rows=250&pause=1", "stats?sort=type&dir=desc", "stat?name=x.%s", "stat?name=x.text", "stat?name=x.time", "stat?name=nothing.%s", "stat?name=x.gauge&with=x.%s", "stat?name=x.%s&with=none%s&over=1h", "stat?name=x.%s&from=1795341500000&to=1795341600000",
	"histograms", "histograms?name=x.time&q=99.95", "histograms?name=x.time&x=linear&y=count", "histograms?name=x.time&view=cdf", "histograms?name=x.time&view=time", "histograms?name=x.time&compare=1", "histograms?name=x.time&compare=1&a=5m&q=42&view=cdf", "histograms?name=x.time&compare=1&a=5m&b=1h", "histograms?name=x.idle", "histograms?merge=1&unused=1", "histograms?merge=1&filter=x&view=time&compare=1&q=42", "histograms?merge=1&filter=none", "histograms?filter=%s",
	"explorer", "explorer?view=map&sort=new", "explorer?prefix=x.&sort=name&view=map", "explorer?prefix=%s", "explorer?tag=%s", "explorer?tag=site", "explorer?tag=site&prefix=x", "explorer?sort=samples",
	"clusters", "clusters?cluster=%s", "clusters?cluster=gone%s", "clusters?unhealthy=1", "clusters?sort=connections", "clusters?sort=requests&dir=asc", "clusters?sort=p99", "clusters?sort=breakers", "clusters?sort=outlier", "clusters?sort=rate", "clusters?sort=success&dir=asc", "clusters?sort=version", "clusters?sort=why&dir=desc", "clusters?filter=^%s", "listeners", "ingest", "ingest?line=bad%s", "ingest?line=drop%s", "ingest?line=%s", "ingest?rules=unused", "ingest?rules=shadowed",
	"runtime", "runtime?key=key", "runtime?key=new%s", "runtime?filter=%s", "logging", "logging?filter=%s", "config", "certs", "circuits", "circuits?sort=name", "audit", "audit?filter=%s", "server"}

func request(srv *admin.Server, target, text string) *admin.Reply {
	return srv.Request("GET", Prefix+strings.ReplaceAll(target, "%s", escapeQuery(text)), nil, admin.Field{Name: "host", Value: text})
}

// TestPages renders every page and checks what holds for all: one heading, unique
// ids, labels for fields, alternatives for pictures, links to pages that exist.
func TestPages(t *testing.T) {
	srv := world(t, "plain", nil)
	for _, target := range targets {
		t.Run(target, func(t *testing.T) {
			r := request(srv, target, "plain")
			want := 200
			if strings.Contains(target, "nothing") || strings.Contains(target, "cluster=gone") {
				want = 404
			}
			if strings.Contains(target, "filter=(") {
				want = 400
			}
			if r.Status != want || r.Get("content-type") != typeHTML || !strings.Contains(r.Get("content-security-policy"), "require-trusted-types-for 'script'") {
				t.Fatalf("%d %v\n%s", r.Status, r.Header, r.Body)
			}
			checkPage(t, srv, r.Body)
		})
	}
}

// checkPage checks a page's structure.
func checkPage(t *testing.T, srv *admin.Server, body []byte) {
	t.Helper()
	checkBalance(t, body)
	root, err := html.Parse(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	count := map[string]int{}
	var refs []string
	var walk func(n *html.Node, labelled, hidden bool)
	walk = func(n *html.Node, labelled, hidden bool) {
		attr := map[string]string{}
		for _, a := range n.Attr {
			attr[a.Key] = a.Val
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
				t.Errorf("<%s> has %s", n.Data, a.Key)
			}
		}
		if n.Type == html.ElementNode {
			if !hidden { // a part of a picture can have a title
				count[n.Data]++
			}
			if id := attr["id"]; id != "" {
				if ids[id] {
					t.Errorf("the id %q occurs twice", id)
				}
				ids[id] = true
			}
			refs = append(refs, strings.Fields(attr["aria-labelledby"]+" "+attr["aria-describedby"])...)
			switch n.Data {
			case "input", "select", "textarea":
				if attr["type"] != "hidden" && !labelled {
					if attr["id"] == "" || !bytes.Contains(body, []byte("for='"+attr["id"]+"'")) {
						t.Errorf("a field %q has no label", attr["name"])
					}
				}
			case "svg":
				if !hidden && attr["aria-hidden"] != "true" && (attr["role"] != "img" || attr["aria-label"] == "") {
					t.Error("a picture has no alternative")
				}
			case "a":
				checkLink(t, srv, attr["href"])
			case "form":
				if attr["method"] == "post" && attr["data-effect"] == "" {
					t.Errorf("the form for %s does not say what it does", attr["action"])
				}
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c, labelled || n.Data == "label", hidden || n.Data == "svg")
		}
	}
	walk(root, false, false)
	for _, name := range []string{"h1", "main", "nav", "header", "footer", "title"} {
		if count[name] != 1 {
			t.Errorf("the page has %d <%s>", count[name], name)
		}
	}
	for _, id := range refs {
		if !ids[id] {
			t.Errorf("nothing has the id %q", id)
		}
	}
	if strings.Contains(string(body), "planted-secret") {
		t.Error("the page shows a secret")
	}
}

// checkLink expects a relative link to a path that the server knows.
func checkLink(t *testing.T, srv *admin.Server, link string) {
	t.Helper()
	path, _, _ := strings.Cut(link, "?")
	switch {
	case strings.HasPrefix(path, "#"), path == "../":
		return
	case strings.HasPrefix(path, "../"):
		path = path[2:]
	default:
		path = Prefix + strings.TrimPrefix(path, "./")
	}
	if reply := srv.Request("HEAD", path, nil); reply.Status == 404 && path != "/ui/stat" {
		t.Errorf("the link %q leads nowhere", link)
	}
}

// shapes counts the elements of a page by their name and the names of their
// attributes.
func shapes(body []byte) map[string]int {
	out := map[string]int{}
	for z := html.NewTokenizer(bytes.NewReader(body)); ; {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			return out
		case html.CommentToken:
			out["comment"]++
		case html.StartTagToken, html.SelfClosingTagToken:
			token := z.Token()
			element := token.Data
			for _, a := range token.Attr {
				element += " " + a.Key
			}
			out[element]++
		}
	}
}

// hostile returns texts that try to become markup.
func hostile() []string {
	return []string{`<script>alert(1)</script>`, `<img src=x onerror='a'>"'&`, `' onfocus='alert(1)' autofocus x='`, `" onfocus="alert(1)`, "`onload=alert(1)`",
		`</title><script>x</script>`, `</svg><script>x</script>`, `</textarea><b>`, `</option></select><b>`, `</a></td></table><b>`, `javascript:alert(1)`, `&lt;b&gt;`, `<!--`, `]]>`,
		"\x00<b\x00>", "\xff<script>\xc0\xbc", "\u2028<b>", "\u202e<b>", "x\ty\rz", `{{.}}`, `${x}`, `<base href=//evil.test>`, strings.Repeat("<", 600)}
}

// TestTagRules expects the page of a stat to name the rule of each tag, and the sinks.
func TestTagRules(t *testing.T) {
	for rule, want := range map[*tags.Step]string{{Regex: "^a((.))"}: "by the regex ^a((.))", {Tokens: "a.$"}: "by the tokens a.$", {}: "given"} {
		if got := tagRule(*rule); got != want {
			t.Errorf("%+v: %q, want %q", rule, got, want)
		}
	}
	srv := world(t, "plain", func(c *admin.Config) {
		c.Sources.Sinks = func() []flush.SinkStatus { return []flush.SinkStatus{{Name: "two"}, {Name: "one"}} }
	})
	body := string(request(srv, "stat?name=x.site.plain", "plain").Body)
	for _, want := range []string{"<dt>Tag site</dt><dd class='num'><code class='wrap'>plain</code> <span class='quiet'>given</span></dd>", "<dt>Sinks</dt><dd class='num'>one, two</dd>", "<dt>Limit plain</dt><dd class='num'><span data-value='80'>80</span> of <span data-value='100'>100</span> <span class='word warn'>"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
}

// TestHostileTextStaysText expects only elements that plain names give too, and as many
// forms and scripts. Where names sort and break differs.
func TestHostileTextStaysText(t *testing.T) {
	allowed := map[string]bool{"wbr": true, "i": true, "mark": true}
	plain := map[string]map[string]int{}
	srv := world(t, "plain", nil)
	for _, target := range targets {
		plain[target] = shapes(request(srv, target, "plain").Body)
		for element := range plain[target] {
			allowed[element] = true
		}
	}
	for _, text := range hostile() {
		srv := world(t, text, nil)
		for _, target := range targets {
			got := shapes(request(srv, target, text).Body)
			for element, n := range got {
				if !allowed[element] {
					t.Errorf("%s: %q becomes <%s>", target, text, element)
				}
				if acts := strings.Fields(element)[0]; (acts == "script" || acts == "form" || acts == "link" || acts == "meta") && n != plain[target][element] && !strings.Contains(target, "filter=") {
					t.Errorf("%s: %q gives %d of <%s> instead of %d", target, text, n, element, plain[target][element])
				}
			}
		}
	}
}

// TestTSV expects every table of every page as tab-separated values, with one cell
// for each column, and, but for the overview, a link to them.
func TestTSV(t *testing.T) {
	srv := world(t, "a\tb\nc", nil)
	table := regexp.MustCompile(`<table id='([a-z-]+)'`)
	seen := 0
	for _, target := range targets {
		body := string(request(srv, target, "a\tb\nc").Body)
		for _, m := range table.FindAllStringSubmatch(body, -1) {
			// The overview shows the beginnings of tables of other pages.
			if target != "" && !strings.Contains(body, "tsv="+m[1]+"'>TSV</a>") {
				t.Errorf("the table %s of %s has no link to its values", m[1], target)
			}
			separator := "?"
			if strings.Contains(target, "?") {
				separator = "&"
			}
			r := request(srv, target+separator+"tsv="+m[1], "a\tb\nc")
			if r.Status != 200 && !strings.Contains(target, "cluster=gone") || r.Get("content-type") != typeTSV {
				t.Fatalf("%s of %s: %d %v", m[1], target, r.Status, r.Header)
			}
			lines := strings.Split(strings.TrimSuffix(string(r.Body), "\n"), "\n")
			for _, line := range lines {
				if strings.Count(line, "\t") != strings.Count(lines[0], "\t") {
					t.Errorf("%s of %s: %q does not fit the head %q", m[1], target, line, lines[0])
				}
			}
			seen++
		}
	}
	if seen < 30 {
		t.Errorf("%d tables", seen)
	}
	if r := request(srv, "stats?tsv=other", ""); r.Status != 404 {
		t.Errorf("an unknown table: %d", r.Status)
	}
}

// TestReadOnly expects no form that changes something where nothing can be changed.
func TestReadOnly(t *testing.T) {
	srv := world(t, "plain", func(c *admin.Config) { c.Mode = admin.ModeReadOnly })
	forms := 0
	for _, target := range targets {
		if strings.Contains(string(request(srv, target, "plain").Body), "method='post'") {
			t.Errorf("%s has a form that changes something", target)
		}
		if strings.Contains(string(request(world(t, "plain", nil), target, "plain").Body), "method='post'") {
			forms++
		}
	}
	if forms < 5 {
		t.Errorf("%d pages have forms without the mode", forms)
	}
}

// checkBalance checks that each element that needs an end has one, in order. A parser
// would add a missing one.
func checkBalance(t *testing.T, body []byte) {
	t.Helper()
	needed := map[string]bool{}
	for _, name := range strings.Fields("a button code details div dl fieldset figure footer form h1 h2 h3 header label main nav ol pre section select span summary svg table tbody thead ul") {
		needed[name] = true
	}
	var open []string
	for z := html.NewTokenizer(bytes.NewReader(body)); ; {
		switch z.Next() {
		case html.ErrorToken:
			if len(open) > 0 {
				t.Errorf("%q have no end", open)
			}
			return
		case html.StartTagToken:
			if name, _ := z.TagName(); needed[string(name)] {
				open = append(open, string(name))
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			if !needed[string(name)] {
				continue
			}
			if len(open) == 0 || open[len(open)-1] != string(name) {
				t.Errorf("</%s> ends %q", name, open)
				return
			}
			open = open[:len(open)-1]
		}
	}
}
