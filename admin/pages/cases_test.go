package pages

import (
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/admin/dump"
	"github.com/statsd-admin/statsd-admin/certinfo"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/server/listeners"
	"github.com/statsd-admin/statsd-admin/server/logctl"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// TestDaysLeft checks the words for certificates around each threshold.
func TestDaysLeft(t *testing.T) {
	for days, want := range map[float64]string{
		-2: "bad expired 2 days ago", -1: "bad expired 1 day ago", -.5: "bad expired today", 0: "bad expires in less than a day", .9: "bad expires in less than a day", 1: "bad 1 day left",
		6: "bad 6 days left", 6.9: "bad 6 days left", 7: "warn 7 days left", 29: "warn 29 days left", 29.9: "warn 29 days left", 30: "ok 30 days left", 400: "ok 400 days left",
	} {
		for _, zone := range []*time.Location{time.UTC, time.FixedZone("east", 13*3600), time.FixedZone("west", -11*3600)} {
			meaning, text := expiry(testNow.Add(time.Duration(days*24)*time.Hour).In(zone), testNow)
			if got := meaning + " " + text; got != want {
				t.Errorf("%v days, %v: %q, want %q", days, zone, got, want)
			}
		}
	}
}

// TestExpired expects the certificates page and its entry in the navigation to count expired
// certificates apart from certificates that expire soon.
func TestExpired(t *testing.T) {
	for _, x := range []struct {
		days         []int
		title, badge string
	}{
		{[]int{300}, "1 certificate", ""},
		{[]int{-1}, "1 expired", "1<span class='vh'> expired<"},
		{[]int{0, 300}, "1 expires soon", "1<span class='vh'> expires soon<"},
		{[]int{6, 29, 30}, "2 expire soon", "2<span class='vh'> expire soon<"},
		{[]int{-9, -1, 6, 29}, "2 expired, 2 expire soon", "4<span class='vh'>: 2 expired, 2 expire soon<"},
	} {
		srv := world(t, "plain", func(c *admin.Config) {
			c.Sources.Certificates = func() []certinfo.Context {
				var chain []certinfo.Certificate
				for _, n := range x.days {
					chain = append(chain, certinfo.Certificate{Until: testNow.AddDate(0, 0, n)})
				}
				return []certinfo.Context{{Chain: chain}}
			}
		})
		body := string(request(srv, "certs", "").Body)
		if !strings.Contains(body, "<title>"+x.title+" · ") || !strings.Contains(body, x.badge) {
			t.Errorf("%v: lacks %q and %q: %s", x.days, x.title, x.badge, body)
		}
	}
}

// flagged is a cluster with a host for each combination of flags.
type flagged struct{ fakeClusters }

const allFlags = status.EDSStatusDraining<<1 - 1

func (flagged) Statuses(yield func(*status.Cluster) bool) {
	yield(&status.Cluster{Name: "flagged", ObservabilityName: "flagged", Hosts: func(yield func(*status.Host) bool) {
		for flags := status.Flags(0); flags <= allFlags; flags++ {
			if !yield(&status.Host{Address: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(flags >> 8), byte(flags)}), 80), Health: flags}) {
				return
			}
		}
	}})
}

// TestFlagsInWords expects for each combination of health flags one word and one flag
// of the interface per bit.
func TestFlagsInWords(t *testing.T) {
	srv := world(t, "plain", func(c *admin.Config) { c.Sources.Clusters = flagged{} })
	seen := 0
	for offset := 0; offset <= int(allFlags); offset += 1000 {
		r := request(srv, fmt.Sprintf("clusters?cluster=flagged&rows=1000&offset=%d", offset), "plain")
		for _, row := range strings.Split(string(r.Body), "<tr>")[1:] {
			if !strings.Contains(row, "10.0.") {
				continue
			}
			seen++
			address, err := netip.ParseAddrPort(row[strings.Index(row, "10.0."):][:strings.Index(row[strings.Index(row, "10.0."):], "<")])
			if err != nil {
				t.Fatal(err)
			}
			ip := address.Addr().As4()
			flags := status.Flags(ip[2])<<8 | status.Flags(ip[3])
			for _, f := range flagWords {
				if strings.Contains(row, ">"+f.flag.String()+"<") != (flags&f.flag != 0) || strings.Contains(row, ">"+html.EscapeString(f.word)+"<") && flags&f.flag == 0 {
					t.Errorf("flags %v: %s", flags, row)
				}
			}
			if got := strings.Count(row, "class='word "); got != max(bits.OnesCount(uint(flags)), 1) {
				t.Errorf("flags %v have %d words", flags, got)
			}
		}
	}
	if seen != int(allFlags)+1 {
		t.Errorf("%d hosts", seen)
	}
}

// files are loggers that are source files.
type files struct{ *logctl.Registry }

func (files) List() (list []logctl.LoggerLevel) {
	for i := range 500 {
		list = append(list, logctl.LoggerLevel{Name: fmt.Sprintf("module/dir%02d/file%02d.go", i/25, i%25)})
	}
	return list
}

// TestLoggersAreGrouped expects source files below their directory, each with its
// level, and a form for picked ones.
func TestLoggersAreGrouped(t *testing.T) {
	srv := world(t, "plain", func(c *admin.Config) { c.Sources.Loggers = files{} })
	body := string(request(srv, "logging?pick=module/dir01/file02.go&pick=module/dir19/file24.go&pick=absent&to=debug", "plain").Body)
	checkPage(t, srv, []byte(body))
	for want, n := range map[string]int{
		"<tr class='group'>": 20, "<code class='wrap'>module/dir07/</code>": 1, "<code class='wrap'>file03.go</code>": 20, "name='pick'": 500, " checked>": 2,
		"name='paths' value='module/dir01/file02.go:debug,module/dir19/file24.go:debug'": 1,
	} {
		if got := strings.Count(body, want); got != n {
			t.Errorf("%d of %s, want %d", got, want, n)
		}
	}
}

// sections is a configuration dump whose sections are a list and settings.
type sections []dump.Section

func (s sections) Sections(bool) []dump.Section { return s }

func (sections) Write(w io.Writer, _ dump.Query) error {
	_, err := io.WriteString(w, "{}")
	return err
}

// TestSettingsHaveNoResources expects an empty list to be called one, and settings, which
// are no list, not.
func TestSettingsHaveNoResources(t *testing.T) {
	settings, list := dump.Section{Key: "settings", Fields: []string{"fields"}}, dump.Section{Key: "clusters", Lists: []dump.List{{Field: "static_clusters", Resources: func(func(dump.Resource) bool) {}}}}
	for want, source := range map[int]sections{0: {settings}, 1: {settings, list}, 2: {list, list}} {
		srv := world(t, "plain", func(c *admin.Config) { c.Sources.ConfigDump = source })
		if got := strings.Count(string(request(srv, "config", "plain").Body), "no resources"); got != want {
			t.Errorf("%d times no resources, want %d", got, want)
		}
	}
}

// TestSearchDump searches keys and values of a dump.
func TestSearchDump(t *testing.T) {
	const text = "{\n \"configs\": [\n  {\n   \"@type\": \"x\",\n   \"clusters\": [\n    {\n     \"version\": \"One\",\n     \"cluster\": {\n      \"name\": \"a\",\n      \"list\": [\n       1,\n       \"one\"\n      ]\n     }\n    },\n" +
		"    {\n     \"cluster\": {\n      \"name\": \"b\",\n      \"key \\\"one\\\": \": {},\n      \"other\": \"two\"\n     }\n    }\n   ],\n   \"last\": \"one\"\n  }\n ]\n}\n"
	hits, more := searchDump([]byte(text), "ONE")
	var got []string
	for _, x := range hits {
		in := "none"
		if x.in != nil {
			in = x.in.field + "/" + x.in.name
		}
		got = append(got, in+" "+x.path+" = "+x.value)
	}
	want := []string{"clusters/a configs.0.clusters.0.version = One", "clusters/a configs.0.clusters.0.cluster.list.1 = one",
		`clusters/b configs.0.clusters.1.cluster.key \"one\":  = {}`, "none configs.0.last = one"}
	if more != 0 || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	long := "{\n \"a\": [\n" + strings.Repeat("  \"x\",\n", mostHits+5) + " ]\n}\n"
	if hits, more := searchDump([]byte(long), "x"); len(hits) != mostHits || more != 5 || hits[7].path != "a.7" {
		t.Errorf("%d hits and %d more: %+v", len(hits), more, hits[7])
	}
}

// TestClustersByColumn sorts clusters by what the stats know of them. Unknown values are
// least.
func TestClustersByColumn(t *testing.T) {
	srv := world(t, "plain", func(c *admin.Config) {
		for i, name := range []string{"good", "none"} {
			scope := c.Store.Scope("cluster." + name)
			scope.Gauge("upstream_cx_active").Set(uint64(7 - i))
			scope.Gauge("upstream_rq_active").Set(uint64(4 + i))
			scope.Histogram("upstream_rq_time", store.Milliseconds).Record(uint64(20 - i))
		}
		c.Store.Flush(store.FlushOptions{}).Close()
	})
	for sort, want := range map[string]string{
		"sort=name": "good none plain", "sort=connections": "good none plain", "sort=connections&dir=asc": "plain none good", "sort=active": "none good plain",
		"sort=requests": "plain good none", "sort=p99": "good none plain", "sort=outlier": "good none plain", "sort=outlier&dir=desc": "plain none good", "sort=hosts": "plain good none",
		"sort=rate": "plain good none", "sort=success": "good none plain", "sort=success&dir=desc": "plain good none", "sort=breakers": "plain good none", "sort=version": "good none plain", "sort=version&dir=desc": "plain good none",
		"sort=why&dir=desc": "plain good none",
	} {
		var got []string
		for _, line := range strings.Split(strings.TrimSpace(string(request(srv, "clusters?"+sort+"&tsv=clusters", "").Body)), "\n")[1:] {
			name, _, _ := strings.Cut(line, "\t")
			got = append(got, name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %s", sort, got, want)
		}
	}
}

// TestClusterColumns expects what the board and the page of a cluster know of it: its
// version, requests a second (over a step of no length, counted as a millisecond), their
// success, and the use of both circuit breakers.
func TestClusterColumns(t *testing.T) {
	srv := world(t, "plain", nil)
	for target, want := range map[string]string{
		"clusters?filter=plain&tsv=clusters":  "plain\tAPI plain\t1/4\t2 failed active health checks, 1 ejected as outlier, 1 degraded by health check\t\t\t100000\t100\t90\t\t812/1024 10/10\t98.5\t\n",
		"clusters?cluster=plain&tsv=breakers": "Connections\t1000/1024\t0/18446744073709551615\t\nPending requests\t0/0\t0/0\t\nRequests\t812/1024\t10/10\t\nRetries\t1/3\t0/0\t\n",
	} {
		if _, got, _ := strings.Cut(string(request(srv, target, "").Body), "\n"); got != want {
			t.Errorf("%s:\n%q\nwant\n%q", target, got, want)
		}
	}
	// Unfolded hosts are not among the exported rows.
	if got, want := string(request(srv, "clusters?open=plain&tsv=clusters", "").Body), string(request(srv, "clusters?tsv=clusters", "").Body); got != want {
		t.Errorf("with unfolded hosts the table is\n%s, without\n%s", got, want)
	}
	body := string(request(srv, "clusters", "").Body)
	for _, want := range []string{"<span class='sub'>default</span>", "<rect class='f warn' width='79.3%'", "<span class='sub'>812 of 1,024</span>", "<span class='sub'>high</span>", "<rect class='f bad' width='100%'",
		"not enough data", "<span class='bad'>90</span>", "<b data-value='98.5'>98.5", "<span class='sub' data-value='90'>ejects under 90</span>"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
	if !strings.Contains(body, "<title>1 unhealthy of 3 clusters · Clusters · ") {
		t.Error("the title does not say how many clusters are unhealthy")
	}
	if body := string(request(srv, "clusters?cluster=plain", "").Body); !strings.Contains(body, "<title>2 unhealthy of 4 hosts · plain · ") {
		t.Error("the title of a cluster does not say how many hosts are unhealthy")
	}
}

// TestListenerStates expects the state of each listener, the rest of its drain time, and
// its connections.
func TestListenerStates(t *testing.T) {
	srv := world(t, "plain", func(c *admin.Config) {
		c.Sources.Listeners = func() []listeners.Listener {
			return []listeners.Listener{{Name: "tcp"}, {Name: "plain", Protocol: listeners.UDP, DrainEnd: testNow.Add(95 * time.Second)},
				{Name: "late", Direction: listeners.Inbound, DrainEnd: testNow.Add(-time.Second)}, {Name: "gone", Stopped: true}}
		}
	})
	want := "tcp\t\tTCP\tunspecified\tactive\t\t1\t\nplain\t\tUDP\tunspecified\tdraining\t95\t\t\nlate\t\tTCP\tinbound\tdraining\t0\t\t\ngone\t\tTCP\tunspecified\tdrained\t\t\t\n"
	if _, got, _ := strings.Cut(string(request(srv, "listeners?tsv=listeners", "").Body), "\n"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if body := string(request(srv, "listeners", "").Body); !strings.Contains(body, ">1 min 35 s</td>") || !strings.Contains(body, "<title>2 draining of 4 listeners · Listeners · ") {
		t.Error(body)
	}
}

// TestValueIsEditedInItsRow expects the form of a known key in its row, that of a new
// key above, and the row of a changed value to be marked.
func TestValueIsEditedInItsRow(t *testing.T) {
	srv := world(t, "plain", nil)
	const field = "<input type='text' class='find grow' id='value' name='"
	for target, inside := range map[string]bool{"runtime?key=key": true, "runtime?key=key&filter=other": true, "runtime?key=new": false} {
		body := string(request(srv, target, "").Body)
		checkPage(t, srv, []byte(body))
		if at := strings.Index(body, field); at < 0 || strings.Count(body, field) != 1 || (at > strings.Index(body, "<table id='values'")) != inside {
			t.Errorf("%s: the field is at %d of\n%s", target, at, body)
		}
	}
	if r := srv.Request("POST", "/runtime_modify?key=other", nil); r.Status != 200 {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	seq := srv.Audit(1)[0].Seq
	body := string(request(srv, fmt.Sprintf("runtime?key=key&done=%d", seq), "").Body)
	if strings.Contains(body, field) || strings.Count(body, "Remove override") != 1 {
		t.Errorf("after the change: %s", body)
	}
	if strings.Count(body, "<tr class='changed'>") != 1 || !strings.Contains(body, "<tr class='changed'><th scope='row' class=''><code class='wrap'>key</code>") {
		t.Error(body)
	}
}

// TestNothingMatches expects lists to say that a filter matches nothing, not that they are
// empty, and how to get rid of it.
func TestNothingMatches(t *testing.T) {
	srv := world(t, "plain", nil)
	srv.Request("POST", "/runtime_modify?key=other", nil)
	for page, want := range map[string]string{"runtime": "No key matches.", "logging": "No logger matches.", "audit": "No change matches.", "clusters": "No cluster matches.", "histograms": "No histogram matches."} {
		body := string(request(srv, page+"?filter=zzz", "").Body)
		checkPage(t, srv, []byte(body))
		if !strings.Contains(body, "<p class='empty'>"+want+" <a href='"+page+"'>Show all</a></p>") || strings.Contains(body, "<table") {
			t.Errorf("%s lacks %q:\n%s", page, want, body)
		}
	}
}

// TestTriedValueStaysOpen expects the form to stay after a trial, and no row to be marked.
func TestTriedValueStaysOpen(t *testing.T) {
	srv := world(t, "plain", nil)
	srv.Request("POST", "/runtime_modify?key=other&dry_run=1", nil)
	body := string(request(srv, fmt.Sprintf("runtime?key=key&done=%d", srv.Audit(1)[0].Seq), "").Body)
	if !strings.Contains(body, "id='value'") || strings.Contains(body, "class='changed'") || !strings.Contains(body, "Nothing was changed") {
		t.Error(body)
	}
}

// TestServerPage expects the waits for mutexes and the limits.
func TestServerPage(t *testing.T) {
	srv := world(t, "plain", func(c *admin.Config) {
		c.Sources.Contention = func() (admin.Contention, bool) {
			return admin.Contention{Contentions: 7, LifetimeWaitCycles: 9000}, true
		}
	})
	body := string(request(srv, "server", "").Body)
	for _, want := range []string{"<dt>Times</dt><dd class='num'><span data-value='7'>7</span></dd>", "<dt>Cycles in all</dt><dd class='num'><span data-value='9000'>9,000</span></dd>", "<h2 id='limits'>"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s", want)
		}
	}
	if body := string(request(world(t, "plain", nil), "server", "").Body); !strings.Contains(body, "--enable-mutex-tracing") {
		t.Error("the page does not say what turns on the tracing")
	}
}

// TestDefaultOptionsAreCollapsed expects the options that differ from a start without
// arguments, and the others quiet behind their number.
func TestDefaultOptionsAreCollapsed(t *testing.T) {
	const set, quiet = "<dt>log_path</dt><dd class='num'><span class='wrap'>/log</span></dd>", "<dt>drain_time</dt><dd class='num'><span class='quiet'>600s</span></dd>"
	info := admin.ServerInfo{CommandLine: admin.CommandLine{LogPath: "/log", DrainTime: 10 * time.Minute}, DefaultCommandLine: admin.CommandLine{DrainTime: 10 * time.Minute, StatsTags: []string{}}}
	srv := world(t, "plain", func(c *admin.Config) { c.Sources.Info = func() admin.ServerInfo { return info } })
	body := string(request(srv, "server", "").Body)
	checkPage(t, srv, []byte(body))
	shown, collapsed, _ := strings.Cut(body, "<summary class='pad'>39 options with default values</summary>")
	if !strings.Contains(shown, set) || strings.Contains(shown, "drain_time") || !strings.Contains(collapsed, quiet) || strings.Contains(collapsed, "log_path") {
		t.Error(body)
	}
	info.DefaultCommandLine.DrainTime, info.CommandLine.EnableCoreDump = time.Minute, true
	body = string(request(srv, "server", "").Body)
	if shown, _, _ := strings.Cut(body, "<details id='defaults'>"); !strings.Contains(shown, "drain_time") || !strings.Contains(shown, "enable_core_dump") {
		t.Error(body)
	}
}

// TestOverviewInWords expects beside the heading the most severe findings alone.
func TestOverviewInWords(t *testing.T) {
	for meanings, want := range map[string]string{
		"": "", "info": "", "warn info": "1 warning", "warn warn": "2 warnings", "bad": "1 critical", "bad bad warn": "2 critical, 1 warning",
	} {
		var found []finding
		for meaning := range strings.FieldsSeq(meanings) {
			found = append(found, finding{meaning: meaning})
		}
		var v *view
		drawn(func(x *view) { v = x; x.needsAttention(found) })
		if v.summary != want {
			t.Errorf("findings %q: %q, want %q", meanings, v.summary, want)
		}
	}
}

// TestOverviewNumbers expects the duration of the last flush and its skipped ones, the
// times of requests, and a warning of skipped flushes.
func TestOverviewNumbers(t *testing.T) {
	srv := world(t, "plain", func(c *admin.Config) {
		c.Sources.FlushTime = func() time.Duration { return 41 * time.Millisecond }
		c.Sources.ConfigDump = fullDump{}
		c.Store.Own().Counter(skippedFlushes).Add(2)
		c.Store.Own().Counter(deprecatedUses).Add(1)
	})
	for range 3 {
		request(srv, "audit", "")
	}
	srv.Store().Flush(store.FlushOptions{}).Close()
	body := string(request(srv, "", "").Body)
	checkPage(t, srv, []byte(body))
	for _, want := range []string{"Last flush</a></dt><dd data-value='0.041'><span class='big'>41</span> <small>ms</small></dd><dd class='sub'><span data-stat='server.dropped_stat_flushes' data-value='2'>2</span> skipped</dd>",
		"<b>2 flushes were skipped</b>", "<b>1 use of deprecated options</b>", "<b>The last update of other was refused: an older one is in use</b> <span class='quiet'>no &lt;name&gt;</span>",
		">State</a></dt><dd><span data-state='word' class='word ok'>", "<dd class='sub'>up <span data-uptime data-value='", "<dt>Requests running</dt>", "<dt>p99</dt><dd class='num'><a href='stat?name=http.admin.downstream_rq_time' data-value='0'>0"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
	// What does not deliver needs attention, and so do limits that are reached. Limits of a
	// stat are its own.
	broken := full(t, func(c *admin.Config) {
		c.Sources.Clusters, c.Sources.Certificates, c.Sources.ConfigDump, c.Sources.Unready = nil, nil, nil, nil
		c.Sources.Sinks = func() []flush.SinkStatus {
			return []flush.SinkStatus{
				{Name: "slow", Joined: 3},
				{Name: "well", Delivery: &flush.SinkDelivery{Kind: "statsd", Target: "10.0.0.1:8125", LastSent: testNow, LastError: errors.New("refused"), LastErrorAt: testNow.Add(-time.Second)}},
				{Name: "dead", Delivery: &flush.SinkDelivery{Kind: "graphite", Target: "10.0.0.2:2003", Dropped: 4, Lost: 1, LastSent: testNow.Add(-time.Minute), LastError: errors.New("refused"), LastErrorAt: testNow}},
				{Name: "new", Delivery: &flush.SinkDelivery{Kind: "statsd", Target: "10.0.0.3:8125", LastSent: testNow.Add(-time.Millisecond), LastError: errors.New("refused"), LastErrorAt: testNow}},
			}
		}
	})
	found := string(request(broken, "", "").Body)
	for _, want := range []string{"<b>Sink dead cannot send</b> <span class='quiet'>last sent 1 min ago; refused</span>", "<b>Sink new cannot send</b> <span class='quiet'>last sent 1 s ago; refused</span>", "<b>Sink dead lost 5 packets</b>", "<b>Sink slow fell behind: 3 snapshots joined</b>",
		"<b>Relay target 10.0.0.6:8125 is down</b> <span class='quiet'>refused</span>", "<b>Relay target 10.0.0.6:8125 lost 7,654 lines</b>", "<b>Limit name_bytes reached</b>", "limit reached</span>",
		"<b>3 lines rejected</b> <span class='quiet'>no type 2, long 1</span>"} {
		if !strings.Contains(found, want) {
			t.Errorf("no %s in\n%s", want, found)
		}
	}
	if strings.Contains(found, "Sink well") {
		t.Error("a sink that sends again needs attention")
	}
	if got, want := string(request(broken, "server?tsv=sinks", "").Body), "Sink\tState\tPackets sent\tPackets lost\tQueue\tSnapshots joined\n"+
		"dead\tcannot send\t0\t5\t0\t0\nnew\tcannot send\t0\t0\t0\t0\nslow\t\t\t\t\t3\nwell\tsending\t0\t0\t0\t0\n"; got != want {
		t.Errorf("the sinks are %q, want %q", got, want)
	}
	quiet := string(request(world(t, "plain", func(c *admin.Config) {
		own := c.Store.Own()
		own.Counter(skippedFlushes).Add(0)
		own.Counter(deprecatedUses).Add(0)
		own.Gauge("server.admin_exposed").Set(0)
	}), "", "").Body)
	for _, not := range []string{"flushes were skipped", "flush was skipped", "deprecated options", "open to other machines"} {
		if strings.Contains(quiet, not) {
			t.Errorf("%s although the number is 0", not)
		}
	}
	// Counts of the input come with their rates.
	all := string(request(full(t, nil), "", "").Body)
	for _, what := range []string{"samples", "packets", "rejected", "kernel_drops"} {
		if !strings.Contains(all, "data-sum='ingest."+what+".listener.' data-value='") {
			t.Errorf("no sum of %s", what)
		}
	}
	// Each part leads to the page that has more.
	for _, id := range []string{"top", "port", "changes", "sick", "limits"} {
		_, part, _ := strings.Cut(body, "aria-labelledby='"+id+"'>")
		if head, _, _ := strings.Cut(part, "</div>\n"); !strings.Contains(head, "<a href=") {
			t.Errorf("%s leads nowhere: %s", id, head)
		}
	}
}

// TestMergedHistograms expects the sum of the histograms that match, and the number of
// histograms that do not fit.
func TestMergedHistograms(t *testing.T) {
	srv := world(t, "plain", func(c *admin.Config) {
		for i, name := range []string{"one", "two"} {
			h := c.Store.Scope("m").Histogram(name, store.Milliseconds)
			for n := range 10 * (i + 1) {
				h.Record(uint64(n))
			}
		}
		c.Store.Scope("m").Histogram("zip", store.Bytes).Record(1)
		c.Store.Flush(store.FlushOptions{}).Close()
	})
	body := string(request(srv, "histograms?merge=1&filter=^m[.]", "").Body)
	for _, want := range []string{"The sum of 2 histograms.", "1 histogram with other units or buckets", "<dd data-value='30'>30 <small>values</small>"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in %s", want, body)
		}
	}
	checkPage(t, srv, []byte(body))
}

// TestNoSuchStat expects links to the name that was probably meant, and to what begins
// alike: the stats of the nearest scope, or prefixes that exist.
func TestNoSuchStat(t *testing.T) {
	srv := full(t, nil)
	for target, want := range map[string]string{
		"stat?name=web.nothing":                      " under web</a>",
		"stat?name=web.temprature":                   "Did you mean <a class='wrap' href='stat?name=web.temperature'>web.temperature</a>?",
		"stat?name=wes":                              "Names begin with <a href='stats?filter=%5Eweb%5C.'>web.</a>",
		"stats?filter=^xeb\\.hits":                   "Names begin with <a href='stats?filter=%5Eweb%5C.'>web.</a>",
		"stats?filter=cluster.pliann.up":             "Names begin with <a href='stats?filter=%5Ecluster%5C.plain%5C.'>cluster.plain.</a>",
		"stats?filter=^web.hitss":                    "Names begin with <a href='stats?filter=%5Eweb%5C.hits'>web.hits</a>",
		"stats?filter=^" + strings.Repeat("w", 1000): "Names begin with <a ",
	} {
		r := request(srv, target, "")
		status := 200
		if strings.HasPrefix(target, "stat?") {
			status = 404
		}
		if r.Status != status || !strings.Contains(string(r.Body), want) {
			t.Errorf("%.50s: %d lacks %s: %s", target, r.Status, want, pageText(r.Body))
		}
	}
	for _, page := range []string{"stat?name=else", "stat?name=web.nothing"} {
		if body := string(request(srv, page, "").Body); strings.Contains(body, "Did you mean") {
			t.Error(page, "suggests a far name")
		}
	}
}

// TestVersionInHead expects the head of clusters to sort by their version too, which the
// cells show below the name.
func TestVersionInHead(t *testing.T) {
	srv := full(t, nil)
	for query, want := range map[string]string{
		"":                       "<th scope='col'><a href='clusters?sort=name&amp;dir=asc' data-k='sort-name'>Cluster</a> · <a href='clusters?sort=version&amp;dir=asc' data-k='sort-version'>Version</a></th>",
		"?sort=version":          "<th scope='col' aria-sort='ascending'><a href='clusters?sort=name&amp;dir=asc' data-k='sort-name'>Cluster</a> · <a href='clusters?sort=version&amp;dir=desc' data-k='sort-version'>Version<span aria-hidden='true'>\u00A0↑</span></a></th>",
		"?sort=version&dir=desc": "<th scope='col' aria-sort='descending'><a href='clusters?sort=name&amp;dir=asc' data-k='sort-name'>Cluster</a> · <a href='clusters?sort=version&amp;dir=asc' data-k='sort-version'>Version<span aria-hidden='true'>\u00A0↓</span></a></th>",
	} {
		if body := string(request(srv, "clusters"+query, "").Body); !strings.Contains(body, want) {
			t.Errorf("%q: no head %s", query, want)
		}
	}
}

// named are loggers that are mostly at one level.
type named struct{ *logctl.Registry }

func (named) List() []logctl.LoggerLevel {
	return []logctl.LoggerLevel{{Name: "upstream", Level: logctl.Error}, {Name: "statsd", Level: logctl.Warning}, {Name: "admin", Level: logctl.Warning}}
}

// TestSeveralLoggersKeepTheirLevel expects loggers by name, and forms for several ones to
// begin with the level that most have.
func TestSeveralLoggersKeepTheirLevel(t *testing.T) {
	srv := world(t, "plain", func(c *admin.Config) { c.Sources.Loggers = named{} })
	body := string(request(srv, "logging", "plain").Body)
	for _, form := range []string{"<select name='level'>", "<select name='to'>"} {
		_, options, _ := strings.Cut(body, form)
		options, _, _ = strings.Cut(options, "</select>")
		if !strings.Contains(options, "<option selected>warning") {
			t.Errorf("%s%s", form, options)
		}
	}
	if got, want := string(request(srv, "logging?tsv=loggers", "plain").Body), "Logger\tLevel\nadmin\twarning\nstatsd\twarning\nupstream\terror\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestExplorerLinksToEachPrefix expects the way to a prefix as links, except to itself.
func TestExplorerLinksToEachPrefix(t *testing.T) {
	body := string(request(full(t, nil), "explorer?prefix=cluster.good.", "").Body)
	const want = "<a href='explorer'>All stats</a> / <a href='explorer?prefix=cluster.'>cluster.</a>good.</p>"
	if !strings.Contains(body, want) {
		_, rest, _ := strings.Cut(body, "<p class='crumbs'>")
		t.Errorf("%.200s, want %s", rest, want)
	}
}

// crowded has more names than the page shows.
type crowded struct{ fullIngest }

func (c crowded) Report() report.Report {
	r := c.fullIngest.Report()
	r.TopSeries = nil
	for i := range 11 {
		r.TopSeries = append(r.TopSeries, report.NameCount{Name: fmt.Sprintf("crowd%02d", i), Count: uint64(20 - i)})
	}
	return r
}

// TestTenNamesWithTheMostSeries expects the first ten of eleven.
func TestTenNamesWithTheMostSeries(t *testing.T) {
	body := string(request(world(t, "plain", func(c *admin.Config) { c.Sources.Ingest = crowded{} }), "ingest", "").Body)
	if !strings.Contains(body, "crowd09") || strings.Contains(body, "crowd10") {
		t.Error("not ten names")
	}
}
