package server_test

import (
	"encoding/json"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/statsd"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
)

func ingestTime() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC) }

// fed is a running server with two listeners: lines for streams and packets for
// datagrams.
type fed struct {
	*running
	dir string
}

func feed(t *testing.T, limits statsd.Limits) *fed {
	t.Helper()
	f := &fed{dir: t.TempDir()}
	limits.MemoryBytes = 1 << 30 // not that of the machine
	f.running = start(t, server.Config{
		Store: store.New(store.Options{Now: ingestTime}), Admin: anyPort(), Flush: flush.Config{Interval: time.Minute},
		StatsD: &statsd.Config{
			Limits: limits, Now: ingestTime,
			Listeners: []statsd.ListenerConfig{
				{Name: "lines", Address: "unixlines://" + filepath.Join(f.dir, "l")},
				{Name: "packets", Address: "unixgram://" + filepath.Join(f.dir, "p")},
			},
		},
	})
	return f
}

// send sends the text to the listener of that network and waits until all its lines
// are counted.
func (f *fed) send(t *testing.T, network, socket, text string) {
	t.Helper()
	lines := func() (n uint64) {
		for _, l := range f.StatsD().Report().Listeners {
			n += l.Lines
		}
		return n
	}
	want := lines() + uint64(strings.Count(text, "\n"))
	conn, err := net.Dial(network, filepath.Join(f.dir, socket))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "all lines are counted", func() bool { return lines() == want })
	conn.Close()
	waittest.Until(t, "the connection is closed", func() bool { return f.StatsD().Report().Listeners[0].Connections == 0 })
}

// machine matches the parts that differ between runs and machines.
var machine = regexp.MustCompile(`("?(?:rcvbuf_bytes|queue_limit_bytes|unix_queue_datagrams|[a-z_]*busy_seconds)"?: )[0-9.e+-]+`)

func (f *fed) page(t *testing.T, target string) []byte {
	t.Helper()
	reply := f.Admin().Request("GET", target, nil)
	if reply.Status != 200 {
		t.Fatalf("%s: %d %s", target, reply.Status, reply.Body)
	}
	text := strings.ReplaceAll(string(reply.Body), f.dir, "/run")
	return []byte(machine.ReplaceAllString(text, "${1}0"))
}

// TestIngestPages sends input to a server and checks the pages about it.
func TestIngestPages(t *testing.T) {
	f := feed(t, statsd.Limits{SeriesPerName: 2})
	f.StatsD().Flush(ingestTime()) // the interval begins
	f.send(t, "unix", "l", "cart.items:3|c|@0.1\n"+
		"rt:12.5:13|ms|#route:/a,canary\n"+
		"rt:1|g\n"+ // a second kind
		"many:1|c|#u:1\nmany:1|c|#u:2\nmany:1|c|#u:3\n"+ // one series too many
		"users:anna|s\n"+
		"bad\nx:0x10|c\n"+
		"_e{6,4}:deploy|text|d:1700000000|h:web-1|t:error|#a:b\n"+
		"_sc|db|2|d:1700000000|h:web-1|#a:b|m:down\n")
	f.send(t, "unixgram", "p", strings.Repeat("hot:1|c\n", 510)+"hot:1|c\nhot:1|c|z:x\nhot:x|c\n")
	f.StatsD().Flush(ingestTime().Add(2 * time.Second))
	f.Store().Flush(store.FlushOptions{}).Close()
	for name, target := range map[string]string{
		"ingest":               "/ingest",
		"ingest-json":          "/ingest?format=json",
		"ingest-listener":      "/ingest?listener=packets&top=samples&limit=1",
		"ingest-events":        "/ingest/events",
		"ingest-events-json":   "/ingest/events?format=json",
		"ingest-explain":       "/ingest/explain?line=hot:-2:%2B0.5|g|@0.5|%23route:/a,canary",
		"ingest-explain-json":  "/ingest/explain?format=json&line=hot:1000000|c|%23a:b,bad:",
		"ingest-explain-bad":   "/ingest/explain?line=%20hot:1:x|c",
		"ingest-explain-set":   "/ingest/explain?line=users:anna:x|s",
		"ingest-explain-limit": "/ingest/explain?line=many:1|c|%23u:4",
		"ingest-explain-event": "/ingest/explain?line=_e{1,1}:a|b|p:low|k:x",
		"ingest-explain-check": "/ingest/explain?line=_sc|db|3",
	} {
		t.Run(name, func(t *testing.T) { golden.Check(t, name, f.page(t, target)) })
	}
}

func TestIngestParameters(t *testing.T) {
	f := feed(t, statsd.Limits{})
	f.send(t, "unix", "l", "web.a:1|c\nweb.b:1|c\nwebx:1|c\n")
	const explain, forget = "usage: /ingest/explain?line=<line, percent-encoded>\n",
		"usage: /ingest/forget?name=<full name> or /ingest/forget?prefix=<beginning of names>\n"
	for _, tt := range []struct {
		method, target string
		status         int
		body           string // a part of it
	}{
		{"GET", "/ingest?top=series", 200, "top_series:\n"},
		{"GET", "/ingest?top=samples", 200, "top_samples: none\n"},
		{"GET", "/ingest?top=new", 200, "newest:\n"},
		{"GET", "/ingest?top=", 200, "top_tags: none\n"},
		{"GET", "/ingest?top=Series", 400, "usage: /ingest?top=(series|samples|new)\n"},
		{"GET", "/ingest?limit=x", 400, "limit must be a non-negative integer\n"},
		{"GET", "/ingest?limit=-1", 400, "limit must be a non-negative integer\n"},
		{"GET", "/ingest?limit=0&top=new", 200, "newest: none\n"},
		{"GET", "/ingest?limit=1&top=new", 200, "name: webx\n    kind: counter\n"},
		{"GET", "/ingest?listener=nobody", 400, "no such listener: nobody\n"},
		{"GET", "/ingest/events?limit=1.5", 400, "limit must be a non-negative integer\n"},
		{"GET", "/ingest/explain", 400, explain},
		{"GET", "/ingest/explain?lines=a", 400, explain},
		{"GET", "/ingest/explain?line=%0D", 200, "kind: blank\n"},
		{"GET", "/ingest/explain?line=" + strings.Repeat("x", 9<<10), 414, ""},
		{"GET", "/ingest/mappings", 404, "invalid path"},
		{"POST", "/ingest/forget", 400, forget},
		{"POST", "/ingest/forget?name=&prefix=", 400, forget},
		{"POST", "/ingest/forget?name=web.a&prefix=web", 400, forget},
		{"GET", "/ingest/forget?prefix=web", 400, ""},
		{"HEAD", "/ingest/forget?prefix=web", 400, ""},
		{"GET", "/stats?filter=^web", 200, "web.a: 1\nweb.b: 1\nwebx: 1\n"}, // nothing of it had an effect
	} {
		reply := f.Admin().Request(tt.method, tt.target, nil)
		if reply.Status != tt.status || !strings.Contains(string(reply.Body), tt.body) {
			t.Errorf("%s %.60s: %d %q, want %d and %q", tt.method, tt.target, reply.Status, reply.Body, tt.status, tt.body)
		}
	}
}

// TestForgetEndsReceivedStatsOnly removes stats by name, by prefix, and all of them.
func TestForgetEndsReceivedStatsOnly(t *testing.T) {
	f := feed(t, statsd.Limits{})
	f.Store().Root().Counter("web.own").Add(7)
	f.send(t, "unix", "l", "web.a:1|c\nweb.b:1|c\nweb:1|c|#k:v\nrt:1|ms\n")
	for _, step := range []struct{ query, answer, left string }{
		{"name=web", "OK, removed 0 series\ndid you mean web.a, or the prefix web.?\n", "web.a: 1\nweb.b: 1\nweb.k.v: 1\nweb.own: 7\n"},
		{"name=web.ow", "OK, removed 0 series\n", "web.a: 1\nweb.b: 1\nweb.k.v: 1\nweb.own: 7\n"},
		{"name=web.k.v", "OK, removed 1 series\n", "web.a: 1\nweb.b: 1\nweb.own: 7\n"},
		{"prefix=web.", "OK, removed 2 series\n", "web.own: 7\n"},
		{"prefix=ingest", "OK, removed 0 series\n", "web.own: 7\n"},
		{"prefix=r", "OK, removed 1 series\n", "web.own: 7\n"},
	} {
		if reply := f.post(t, "/ingest/forget?"+step.query); reply.Status != 200 || string(reply.Body) != step.answer {
			t.Errorf("%s: %d %q", step.query, reply.Status, reply.Body)
		}
		if got := f.get(t, "/stats?type=Counters&filter=^web"); got != step.left {
			t.Errorf("after %s: %q, want %q", step.query, got, step.left)
		}
	}
	if got := f.get(t, "/stats?filter=^rt"); got != "" {
		t.Errorf("the forgotten histogram: %q", got)
	}
	if got := f.get(t, "/stats?filter=^ingest.lines"); !strings.Contains(got, "ingest.lines") {
		t.Errorf("the server's own stats: %q", got)
	}
	if got := len(f.Admin().Audit(100)); got != 6 {
		t.Errorf("%d entries in the audit log, want 6", got)
	}
	f.send(t, "unix", "l", "web.a:1|c\n")
	if got := f.get(t, "/stats?filter=^web.a"); got != "web.a: 1\n" {
		t.Errorf("a sample that comes later: %q", got)
	}
}

// encoded percent-encodes a query value, in which a plus is literal.
func encoded(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// hostile are names that try to break out of their context in the output.
var hostile = []string{
	"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, `say "hi"`, `"quoted"`, "a\x1b[2Jb", "a\rb", "nul\x00",
	"\u202egnp.exe", "line\u2028sep", "nb\u00a0sp", "back\\slash\\n", "{{.}}${x}", "listeners", "x - name", "é",
}

// factLine is the format of every line of the text pages.
var factLine = regexp.MustCompile(`^ *(- )?[a-z0-9_ ]+:( .*)?$`)

// TestHostileNames sends hostile names, tags, events and rejected lines. Each fact
// stays one printable line of text, and the JSON has the exact texts.
func TestHostileNames(t *testing.T) {
	f := feed(t, statsd.Limits{})
	var text strings.Builder
	for _, h := range hostile {
		n := strconv.Itoa(len(h))
		text.WriteString(h + ":1|c\n" + h + ":x|c\nt:1|c|#" + h + ":" + h + "\n_sc|" + h + "|1|m:" + h + `\nx` + "\n" +
			"_e{" + n + "," + n + "}:" + h + "|" + h + "|h:" + h + "|#" + h + "\n")
	}
	f.send(t, "unix", "l", text.String())
	f.StatsD().Flush(ingestTime().Add(time.Second))
	targets := []string{"/ingest?limit=1000", "/ingest/events?limit=1000"}
	for _, h := range append(hostile, "a\nlisteners: none", "_e{3,3}:a\nb|c\nd", "\xff\xfe") {
		targets = append(targets, "/ingest/explain?line="+encoded(h)+":1|c", "/ingest/explain?line="+encoded(h))
	}
	held := ""
	for _, target := range targets {
		reply := f.Admin().Request("GET", target, nil)
		if kind := reply.Get("content-type"); reply.Status != 200 || !strings.HasPrefix(kind, "text/plain") {
			t.Errorf("%s: %d %s", target, reply.Status, kind)
		}
		body, ended := strings.CutSuffix(string(reply.Body), "\n")
		if !ended {
			t.Errorf("%s does not end with a line feed", target)
		}
		for line := range strings.SplitSeq(body, "\n") {
			odd := strings.ContainsFunc(line, func(r rune) bool { return !strconv.IsPrint(r) })
			if odd || !factLine.MatchString(line) {
				t.Errorf("%s has the line %q", target, line)
			}
		}
		reply = f.Admin().Request("GET", target+"&format=json", nil)
		var any map[string]any
		if err := json.Unmarshal(reply.Body, &any); err != nil {
			t.Errorf("%s&format=json: %v", target, err)
		}
		if kind := reply.Get("content-type"); !strings.HasPrefix(kind, "application/json") {
			t.Errorf("%s&format=json is %s", target, kind)
		}
		held += strings.Join(texts(any), "\n") + "\n"
	}
	for _, h := range hostile {
		message := strings.ReplaceAll(h, `\n`, "\n") // of a check
		for _, want := range []string{h + ":x|c", message + "\nx"} {
			if !strings.Contains(held, want) {
				t.Errorf("the JSON does not hold %q", want)
			}
		}
	}
}

// texts returns all strings in a JSON value.
func texts(v any) (out []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, e := range v {
			out = append(out, texts(e)...)
		}
	case map[string]any:
		for _, e := range v {
			out = append(out, texts(e)...)
		}
	}
	return out
}

func TestIngestNeedsInput(t *testing.T) {
	r := start(t, server.Config{Admin: anyPort()})
	if reply := r.Admin().Request("GET", "/ingest", nil); reply.Status != 404 {
		t.Errorf("without StatsD input: %d", reply.Status)
	}
}

// ownIngest is an input implemented by the program.
type ownIngest struct{ admin.Ingest }

func (ownIngest) Report() report.Report { return report.Report{Collisions: 42} }

func TestIngestOfTheProgramStays(t *testing.T) {
	cfg := anyPort()
	cfg.Sources.Ingest = ownIngest{}
	r := start(t, server.Config{Admin: cfg, StatsD: statsdOn("tcp://127.0.0.1:0")})
	if got := r.get(t, "/ingest"); !strings.Contains(got, "collisions: 42\n") {
		t.Errorf("/ingest: %s", got)
	}
}

// TestExplanationsMatchTheStats compares explanations of lines with the stats that
// the lines create.
func TestExplanationsMatchTheStats(t *testing.T) {
	f := feed(t, statsd.Limits{})
	for _, line := range []string{
		"cart.items:3|c", "temp,room=a b:-1.5|g", "rt:5|ms|#route:/a,canary", "a-b[k=v].c:1|c", "cart.items:1|g", "users:anna|s",
		`quote:1|c|#q:"x\y"`, "9lives:1|c|#1st:é", "same:1|c:1|g",
	} {
		var x struct {
			Samples []struct{ Kind, Stat, Series string }
		}
		if err := json.Unmarshal([]byte(f.get(t, "/ingest/explain?format=json&line="+encoded(line))), &x); err != nil {
			t.Fatal(err)
		}
		f.send(t, "unix", "l", line+"\n")
		f.StatsD().Flush(ingestTime())
		f.Store().Flush(store.FlushOptions{}).Close()
		stats, metrics := f.get(t, "/stats"), f.get(t, "/stats/metrics")
		if len(x.Samples) == 0 {
			t.Errorf("%s has no samples", line)
		}
		for _, s := range x.Samples {
			series := strings.TrimSuffix(s.Series, "{}")
			if s.Kind == "histogram" {
				name, labels, _ := strings.Cut(s.Series, "{")
				series = name + "_count{" + labels
			}
			if !strings.Contains("\n"+stats, "\n"+s.Stat+": ") {
				t.Errorf("%s: no stat %q in\n%s", line, s.Stat, stats)
			}
			if !strings.Contains(metrics, "\n"+series+" ") && !strings.Contains(metrics, "\n"+series+"{} ") {
				t.Errorf("%s: no series %q in\n%s", line, series, metrics)
			}
		}
	}
}

// TestExplainerFollowsTheConfiguration explains lines under settings that change
// their meaning.
func TestExplainerFollowsTheConfiguration(t *testing.T) {
	for _, tt := range []struct{ yaml, line, reason, stat, series, values string }{
		{"{}", "a,k=v:-1|g", "", "a.k.v", `a{k="v"}`, "-1"},
		{"{}", "a:+1|g", "", "a", "a{}", "+1"},
		{"statsd: {parse: {gauge_signs: absolute}}", "a:+1|g", "", "a", "a{}", "1"},
		{"statsd: {parse: {influx: false}}", "a,k=v:1|g", "", "a,k=v", "a_k_v{}", "1"},
		{"statsd: {prefix: p, limits: {name_bytes: 2}}", "abc:1|c", "name_too_long", "", "", ""},
		{"statsd: {prefix: p, exposition: {prefix: x_}}", "ab:-1e-9:1e21:1000000|h", "", "p.ab", "x_p_ab{}", "-1e-09 1e+21 1000000"},
		{"statsd: {listeners: [{address: 'tcp://:1', tls: {certificate_chain: /none, private_key: /none}}]}", "a:1|c", "", "a", "a{}", "1"},
	} {
		c, err := bootstrap.Load(bootstrap.Source{YAML: tt.yaml}, bootstrap.Options{})
		if err != nil {
			t.Errorf("%s: %v", tt.yaml, err)
			continue
		}
		explain, err := c.Explainer(bootstrap.Startup{})
		if err != nil {
			t.Fatal(err)
		}
		x := explain([]byte(tt.line))
		var got [3]string
		for _, s := range x.Samples {
			got = [3]string{s.Stat, s.Series, strings.Join(s.Values, " ")}
		}
		if want := [3]string{tt.stat, tt.series, tt.values}; x.Reason != tt.reason || got != want {
			t.Errorf("%s: %s: %q %q, want %q %q", tt.yaml, tt.line, x.Reason, got, tt.reason, want)
		}
	}
}
