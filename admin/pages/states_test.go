package pages

import (
	"bytes"
	"fmt"
	"io"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/admin/dump"
	"github.com/statsd-admin/statsd-admin/certinfo"
	"github.com/statsd-admin/statsd-admin/flush/history"
	"github.com/statsd-admin/statsd-admin/internal/markup"
	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/server/layers"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// many has n of whatever pages list.
type many struct {
	fakeIngest
	fakeClusters
	n int
}

func (m many) Report() report.Report {
	var rep report.Report
	for i := range m.n {
		rep.Relay = append(rep.Relay, report.RelayTarget{Name: fmt.Sprint("target", i)})
	}
	return rep
}

func (m many) Statuses(yield func(*status.Cluster) bool) {
	for i := range m.n {
		name := fmt.Sprintf("c%03d", i)
		if !yield(&status.Cluster{Name: name, ObservabilityName: name}) {
			return
		}
	}
}

func (m many) certificates() []certinfo.Context {
	return []certinfo.Context{{Chain: make([]certinfo.Certificate, m.n)}}
}

func (m many) runtime(t *testing.T) *layers.Loader {
	values := map[string]any{}
	for i := range m.n {
		values[fmt.Sprintf("key%04d", i)] = "x"
	}
	runtime, err := layers.New(layers.Config{Layers: []layers.Layer{{Name: "base", Kind: layers.Static, Values: values}, {Name: "admin", Kind: layers.Admin}}})
	if err != nil {
		t.Fatal(err)
	}
	return runtime
}

// TestLongLists expects lists to show as much as they may, and from one more on to say
// how much they leave out.
func TestLongLists(t *testing.T) {
	for _, x := range []struct {
		target string
		most   int
		row    string // once a row
		more   string // once the list is longer
	}{
		{"", 12, "<li class='bad'>", "<p class='pad line quiet'>and 1 more</p>"},
		{"certs", 1000, "<tr><th scope='row'", "<p class='empty'>and 1 more</p>"},
		{"circuits", 200, "<li class='panel tile'", "<p class='empty'>and 1 more; the <a href='clusters'>"},
		{"clusters?rows=25", 25, "<tr><th scope='row'", " id='truncated'>Showing 1 to 25 of 26"},
		{"runtime", 500, "<option value='key", ""},
		{"runtime?rows=200", 200, "<tr><th scope='row'", " id='truncated'>Showing 1 to 200 of 201"},
		{"explorer?prefix=group.", 100, "<tr><th scope='row'", "All others"},
		{"explorer?view=map&prefix=group.", 60, "<title>group.name", "<title>all others: 1 stat</title>"},
		{"histograms", 25, "<li><a href='histograms?name=", " id='truncated'>Showing 1 to 25 of 26"},
		{"stats?filter=^group", 100, "<tr class='unused'>", " id='truncated'>Showing 1 to 100 of 101"},
		{"stats?filter=^none&pins=" + strings.Repeat("a%0A", 50) + "a", 50, "<tr class='pinned", ""},
		{"audit", 20, "<span class='change'>", "and 1 more"},
	} {
		for _, n := range []int{x.most, x.most + 1} {
			srv := world(t, "plain", func(c *admin.Config) {
				all := many{n: n}
				c.Store = store.New(store.Options{})
				for i := range n {
					scope := c.Store.Scope(fmt.Sprintf("group.name%03d", i))
					switch x.target {
					case "histograms":
						scope.Histogram("time", store.Milliseconds).Record(1)
					case "explorer?prefix=group.", "explorer?view=map&prefix=group.", "stats?filter=^group":
						scope.Counter("x")
					}
				}
				c.Store.Flush(store.FlushOptions{}).Close()
				s := &c.Sources
				s.Ingest, s.Clusters, s.Runtime = all, all, all.runtime(t)
				s.Certificates = func() []certinfo.Context { return nil }
				if x.target == "certs" {
					s.Certificates = all.certificates
				}
			})
			if x.target == "audit" {
				var keys []string
				for i := range n {
					keys = append(keys, fmt.Sprintf("k%d=1", i))
				}
				srv.Request("POST", "/runtime_modify?"+strings.Join(keys, "&"), nil)
			}
			body := string(request(srv, x.target, "plain").Body)
			_, body, _ = strings.Cut(body, "<div id='content'>")
			want := min(n, x.most)
			if n > x.most && strings.HasPrefix(x.more, "All others") {
				want++
			}
			if got := strings.Count(body, x.row); got != want || x.more != "" && strings.Contains(body, x.more) != (n > x.most) {
				t.Errorf("%s: %d rows of %d, want %d:\n%.300s", x.target, got, n, want, body)
			}
		}
	}
}

// TestExplorerIsPrepared expects views of the explorer not to wait while many names, or
// the values of a tag, are put in order: browsers load the page again. Tables for
// programs do wait.
func TestExplorerIsPrepared(t *testing.T) {
	const many, again = 16_385, "<meta http-equiv='refresh' content='1'>"
	synctest.Test(t, func(t *testing.T) {
		srv := world(t, "plain", func(c *admin.Config) {
			for i := range many {
				c.Store.Root().Counter(fmt.Sprintf("many.name%05d", i), tags.Tag{Name: "color", Value: strconv.Itoa(i % 7)})
			}
		})
		for _, x := range []struct{ target, want string }{
			{"explorer", "<span class='quiet'>16,416 stats</span>"},
			{"explorer?tag=color", "<span class='quiet'>16,385 stats</span>"},
		} {
			body := request(srv, x.target, "").Body
			checkPage(t, srv, body)
			if !bytes.Contains(body, []byte(again)) || !bytes.Contains(body, []byte("The names are put in order")) || bytes.Contains(body, []byte("<table")) {
				t.Errorf("the first view of %s:\n%s", x.target, body)
			}
			synctest.Wait() // until the preparation is done
			for range 2 {
				if body := request(srv, x.target, "").Body; bytes.Contains(body, []byte(again)) || !bytes.Contains(body, []byte(x.want)) {
					t.Errorf("a later view of %s:\n%s", x.target, body)
				}
			}
		}
		if got := string(request(srv, "explorer?tag=site&tsv=groups", "").Body); !strings.HasPrefix(got, "Name\t") {
			t.Errorf("a table at once: %q", got)
		}
	})
}

// TestStates expects what pages say in states that their controls or sources lead to.
func TestStates(t *testing.T) {
	srv := world(t, "plain", func(c *admin.Config) {
		c.Store.Root().Counter("loose").Add(1)
		c.Store.Scope("long").Text("text").Set(strings.Repeat("x", exposed))
		for i := range 26 {
			c.Store.Scope("many").Histogram(fmt.Sprintf("h%02d", i), store.Milliseconds)
		}
		c.Store.Scope("odd").Counter("x", tags.Tag{Name: "color"})
		c.Store.Flush(store.FlushOptions{}).Close()
	})
	for _, x := range []struct {
		target string
		status int
		want   []string
	}{
		{"histograms?filter=(", 400, []string{"id='filter-error'", "Invalid re2 regex"}},
		{"histograms?name=x.gauge", 404, []string{"There is no histogram <code>x.gauge</code>."}},
		{"histograms?filter=^many&unused=1", 200, []string{"<li><a href='histograms?filter=%5Emany&amp;unused=1&amp;name=many.h00' aria-current='true'>", "<h2 id='histogram' class='mono wrap'>many.h00</h2>", "No recorded values", "Showing 1 to 25 of 26"}},
		{"histograms?filter=^many&unused=1&offset=25", 200, []string{"many.<wbr>h25", "Showing 26 to 26 of 26", "<a class='btn' rel='prev' href='histograms?filter=%5Emany&amp;unused=1'>"}},
		{"histograms?name=x.time&q=many", 200, []string{"value='many' aria-invalid='true' aria-describedby='q-error'>", "<span id='q-error' class='bad'>not a number from 0 to 100</span>"}},
		{"histograms?name=x.time&q=100", 200, []string{"<tr class='sel'><th scope='row' class=''>P100<", "value='100'>"}},
		{"histograms?name=x.time&q=0", 200, []string{"<tr class='sel'><th scope='row' class=''>P0<", "value='0'>"}},
		{"histograms?name=x.time&q=100.1", 200, []string{"not a number"}},
		{"histograms?name=x.time&q=-0.1", 200, []string{"not a number"}},
		{"explorer?tag=color", 200, []string{"'>(empty)</a>"}},
		{"clusters?filter=(", 400, []string{"id='filter-error'"}},
		{"clusters?cluster=plain&offset=4", 200, []string{"1 to 4 of 4"}},
		{"clusters?cluster=plain&rows=50&offset=3", 200, []string{"Showing 4 to 4 of 4"}},
		{"clusters?offset=3", 200, []string{"1 to 3 of 3"}},
		{"stats?type=gauge&filter=", 200, []string{"x.<wbr>gauge"}},
		{"stats?group=1&filter=loose", 200, []string{"<span class='mono wrap'>(no scope)</span>"}},
		{"stat?name=x" + strings.Repeat(".y", 20), 404, []string{" under x</a></p>"}},
		{"stat?name=x" + strings.Repeat(".y", 21), 404, []string{"<p><a href='stats'>All stats</a></p>"}},
		{"stat?name=none", 404, []string{"<p><a href='stats'>All stats</a></p>"}},
		{"stat?name=long.text", 200, []string{"Only the first 16 KiB are shown."}},
		{"logging?ttl=5h", 200, []string{"<option value='' selected>until changed</option>"}},
		{"stat?name=x.time&over=2h", 200, []string{" aria-current='true'>5 min</a>"}},
		{"config?search=none", 200, nil},
	} {
		r := request(srv, x.target, "plain")
		checkPage(t, srv, r.Body)
		if r.Status != x.status {
			t.Errorf("%s: status %d, want %d", x.target, r.Status, x.status)
		}
		for _, want := range x.want {
			if !strings.Contains(string(r.Body), want) {
				t.Errorf("%s lacks %s", x.target, want)
			}
		}
	}
	empty := world(t, "plain", func(c *admin.Config) {
		c.Store = store.New(store.Options{})
		c.Sources.Runtime, c.Sources.History, c.Sources.Ingest = many{}.runtime(t), history.New(history.Config{Store: c.Store}), many{}
	})
	for target, want := range map[string]string{"stats?type=text": "There are no stats of this kind.", "runtime": "There are no runtime values.", "histograms": "No histogram has values.",
		"": "No counter or histogram changed in the last flush.", "ingest": "There are no StatsD listeners.", "stats?filter=none": "Show all</a></p>\n<p class='empty'>Names begin with "} {
		if body := string(request(empty, target, "").Body); !strings.Contains(body, want) {
			t.Errorf("%s lacks %s", target, want)
		}
	}
	for _, filter := range []string{"none", "("} {
		if body := string(request(empty, "histograms?filter="+filter, "").Body); strings.Contains(body, "No histogram has values.") {
			t.Errorf("with the filter %s, the page says that no histogram has values", filter)
		}
	}
}

// TestSearchPage expects the lines of a dump with their resources, and secrets to stay
// marked.
func TestSearchPage(t *testing.T) {
	srv := full(t, func(c *admin.Config) { c.Sources.ConfigDump = searched{} })
	for target, wants := range map[string][]string{
		"config?search=tok":               {"<title>1 line found · ", "<i>" + none + "</i>", "redacted</span>"},
		"config?search=a1&include_eds=1":  {"<a class='wrap' href='config?resource=clusters&amp;name=a1'>a1</a>", "/config_dump?include_eds=1"},
		"config?search=absent":            {"<title>0 lines found · ", "No key and no value contains the text."},
		"config?search=row":               {"<title>204 lines found · ", "<p class='empty'>and 4 more lines</p>"},
		"config?resource=fits":            {"xxx&#34;</pre>"},
		"config?resource=exceeds":         {"256\u202fKiB are too much to show at once"},
		"config?resource=broken":          {"<pre>{broken</pre>"},
		"config?resource=deep&filter=PLA": {"<details><summary><span class='key'>0</span>"},
		"config?resource=deep&open=all":   {"<details open><summary><span class='key'>0</span>"},
		"config?resource=deep&open=none":  {"<details><summary><span class='key'>0</span>", "open=all#dump'>Expand all</a>"},
	} {
		body := string(srv.Request("GET", Prefix+target, nil).Body)
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s lacks %s", target, want)
			}
		}
	}
	for n, valid := range map[int]bool{100: true, 101: false} {
		v := &view{}
		if v.tree([]byte(strings.Repeat("[", n)+"1"+strings.Repeat("]", n))) != valid {
			t.Errorf("%d levels: valid is %v", n, !valid)
		}
	}
	// A dump of a program's own can be indented otherwise.
	if hits, _ := searchDump([]byte("{\n    \"x\": {\n        \"\": \"y\\\\\",\n        \"unended\n    }\n}\n"), ""); len(hits) != 3 || hits[1].value != `y\\` || !strings.HasSuffix(hits[1].path, ".x....") {
		t.Errorf("%+v", hits)
	}
}

// failingHealth are health checks that a test fails.
type failingHealth struct {
	fakeDrains
	failed bool
}

func (f *failingHealth) HealthFailed() bool { return f.failed }

// TestRoles expects pages to offer the changes that a role may make, and no others.
func TestRoles(t *testing.T) {
	secret := func(role admin.Role) string { return strings.Repeat(role.String(), 30) }
	var list []admin.Token
	for _, role := range []admin.Role{admin.RoleRead, admin.RoleOperate, admin.RoleAdmin} {
		token, err := admin.NewToken("who", role, secret(role))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, token)
	}
	var health failingHealth
	srv := world(t, "plain", func(c *admin.Config) {
		c.Sources.Health = &health
		c.Auth = &admin.Auth{Tokens: admin.NewTokens(list...)}
		c.Sources.CPUProfiler, c.Sources.HeapProfiler = testProfiler("cpu"), testProfiler("heap")
	})
	srv.Request("POST", "/runtime_modify?key=other", nil) // can be undone
	action := regexp.MustCompile(`(method='post' action|<a class='btn' href)='\.\.(/[a-z_/]+)(?:\?enable=[yn])?'`)
	const operate = "/audit/undo /drain_listeners /healthcheck/fail /healthcheck/ok /logging /reset_counters /reopen_logs /runtime_modify /stats/recentlookups/clear /stats/recentlookups/disable /stats/recentlookups/enable "
	for role, want := range map[admin.Role]string{admin.RoleRead: "", admin.RoleOperate: operate, admin.RoleAdmin: operate + "/bundle /cpuprofiler /heap_dump /heapprofiler"} {
		seen := map[string]bool{}
		for i, target := range append([]string{"server", "listeners"}, targets...) {
			switch i {
			case 0: // recording can be stopped and health checks restored, later the opposite
				srv.Store().Symbols().EnableRecent()
				health.failed = true
			case 2:
				srv.Store().Symbols().DisableRecent()
				health.failed = false
			}
			r := httptest.NewRequest("GET", "http://localhost"+Prefix+strings.ReplaceAll(target, "%s", "plain"), nil)
			r.Header.Set("authorization", "Bearer "+secret(role))
			w := httptest.NewRecorder()
			srv.ServeHTTP(w, r)
			if target == "" && !strings.Contains(w.Body.String(), "<dt>Role</dt><dd>"+role.String()+"</dd>") {
				t.Errorf("the page does not show the role %v", role)
			}
			for _, m := range action.FindAllStringSubmatch(w.Body.String(), -1) {
				seen[m[2]] = true
			}
		}
		words := strings.Fields(want)
		slices.Sort(words)
		if got := sortedKeys(seen); !slices.Equal(got, words) {
			t.Errorf("%v: %q, want %q", role, got, words)
		}
	}
}

// TestFiltersAreBounded expects an error on the page of a filter that takes too long, or
// finds all slots taken.
func TestFiltersAreBounded(t *testing.T) {
	slow := world(t, "plain", func(c *admin.Config) { c.Limits.RegexBudget = time.Nanosecond })
	if r := request(slow, "stats?filter=x", ""); r.Status != 400 || !strings.Contains(string(r.Body), "Too expensive: the filter was stopped after ") {
		t.Errorf("%d %s", r.Status, r.Body)
	}
	if r := request(slow, "stats?filter=x&dir=desc", ""); r.Status != 400 {
		t.Errorf("in reverse: %d %s", r.Status, r.Body)
	}
	busy := world(t, "plain", func(c *admin.Config) { c.Limits.RegexParallel = 1 })
	_ = busy.Filtered("x", func(*render.Filter) error {
		if r := request(busy, "stats?filter=x", ""); r.Status != 503 || !strings.Contains(string(r.Body), "too many filters are at work") {
			t.Errorf("%d %s", r.Status, r.Body)
		}
		return nil
	})
	if r := request(slow, "histograms?filter=x", ""); r.Status != 400 || !strings.Contains(string(r.Body), "The filter takes too long.") {
		t.Errorf("%d %s", r.Status, r.Body)
	}
}

// TestAddressForNC expects the host and the port of a listener as nc wants them.
func TestAddressForNC(t *testing.T) {
	for address, want := range map[string]string{"udp://10.0.0.1:8125": "10.0.0.1 8125 true", "udp://0.0.0.0:1": "127.0.0.1 1 true", "udp://[::]:1": "127.0.0.1 1 true", "udp://[fd00::1]:2": "fd00::1 2 true",
		"udp://:3": "127.0.0.1 3 true", "unixgram:///run/x": "  false", "udp": "  false"} {
		if host, port, ok := hostPort(address); fmt.Sprint(host, " ", port, " ", ok) != want {
			t.Errorf("%s: %q %q %v, want %s", address, host, port, ok, want)
		}
	}
	v := &view{Page: markup.Page{}}
	v.noTraffic(&report.Report{Listeners: []report.Listener{{ListenerInfo: report.ListenerInfo{Protocol: "tcp", Address: "tcp://0.0.0.0:1"}}}})
	if got := string(v.Bytes()); !strings.Contains(got, "No samples in the last minute.") {
		t.Error(got)
	}
}

// searched is a dump with more lines than a search shows, and documents that are no tree.
type searched struct{ fullDump }

func (searched) Write(w io.Writer, q dump.Query) error {
	text := strings.Replace(fullDumpText, `"bootstrap": {`, `"clusters": [
    {
     "name": "a1"
    }
   ],
   "rows": [
`+strings.Repeat("    \"row\",\n", 203)+`    "last"
   ],
   "bootstrap": {`, 1)
	switch q.Resource {
	case "broken":
		text = "{broken"
	case "fits", "exceeds":
		text = strings.Repeat("x", mostShown-1) + "\""
		if q.Resource == "exceeds" {
			text = "x" + text
		}
	case "deep":
		text = strings.Repeat("[", 6) + "1" + strings.Repeat("]", 6)
	}
	_, err := io.WriteString(w, text)
	return err
}
