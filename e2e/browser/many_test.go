package browser

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/statsd-admin/statsd-admin/admin"
	pagesof "github.com/statsd-admin/statsd-admin/admin/pages"
	"github.com/statsd-admin/statsd-admin/e2e/daemon"
	"github.com/statsd-admin/statsd-admin/server/configdump"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// many is a server of 10,000 clusters with 10 hosts each, whose configuration dump has
// 50 MiB. Only the source of the data is not the real one.
type many struct{ private string }

const manyClusters = 10_000

func (many) Version() string                    { return "1" }
func (many) Tracked(func(*status.Cluster) bool) {}
func (many) Statuses(yield func(*status.Cluster) bool) {
	for i := range manyClusters {
		name := fmt.Sprintf("cluster-%05d", i)
		c := status.Cluster{Name: name, ObservabilityName: name, Hosts: func(yield func(*status.Host) bool) {
			for j := range 10 {
				host := status.Host{Address: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i / 256), byte(i), byte(j)}), 80), Weight: 1, SuccessRate: -1}
				if i%100 == 7 && j < 3 {
					host.Health = status.FailedEDSHealth
				}
				if !yield(&host) {
					return
				}
			}
		}}
		if !yield(&c) {
			return
		}
	}
}

func (m many) configuration(bool) []configdump.Section {
	filler := strings.Repeat("filler of metadata ", 270)
	list := func(yield func(string, proto.Message) bool) {
		for i := range manyClusters {
			name := fmt.Sprintf("cluster-%05d", i)
			owner, err := structpb.NewStruct(map[string]any{"team": fmt.Sprintf("team-%d", i), "text": filler, "api_token": m.private})
			if err != nil {
				panic(err)
			}
			packed, err := anypb.New(&clusterv3.Cluster{Name: name, Metadata: &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"owner": owner}}})
			if err != nil {
				panic(err)
			}
			if !yield(name, &adminv3.ClustersConfigDump_StaticCluster{Cluster: packed}) {
				return
			}
		}
	}
	return []configdump.Section{
		{Key: "bootstrap", Message: &adminv3.BootstrapConfigDump{Bootstrap: &bootstrapv3.Bootstrap{Node: &corev3.Node{Id: "node-17"}}}},
		{Key: "clusters", Message: &adminv3.ClustersConfigDump{VersionInfo: "1"}, Lists: map[string]iter.Seq2[string, proto.Message]{"static_clusters": list}},
	}
}

// newMany starts the server.
func newMany(t *testing.T, source many) *httptest.Server {
	t.Helper()
	srv, err := admin.New(admin.Config{Store: store.New(store.Options{}), Sources: admin.Sources{Clusters: source, ConfigDump: configdump.Source(source.configuration)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := pagesof.Add(srv); err != nil {
		t.Fatal(err)
	}
	d := httptest.NewServer(srv)
	t.Cleanup(func() { d.CloseClientConnections(); d.Close(); _ = srv.Close() })
	return d
}

// timed types a filter of the clusters and returns the milliseconds from the key to the
// rows.
func (p *tab) timed(filter string) float64 {
	p.t.Helper()
	p.do(chromedp.Evaluate[chromedp.Void](`document.addEventListener('input', () => { window.typed = performance.now(); window.timed = 0; }, {capture: true, once: true});
		document.addEventListener('replaced', () => { window.timed = performance.now() - window.typed; }, {once: true});
		{ const f = document.querySelector('input[name="filter"]'); f.value = ` + quoted(filter) + `; f.dispatchEvent(new Event('input', {bubbles: true})); }`))
	p.until("window.timed > 0 && document.querySelectorAll('#clusters tbody tr').length === 1")
	return eval[float64](p, "window.timed")
}

// TestManyClusters opens the pages of 10,000 clusters with 10 hosts each, and a
// configuration dump of 50 MiB: only the wanted part is in the page, filters and the
// search find it, and no secret is in it.
func TestManyClusters(t *testing.T) {
	t.Parallel()
	source := many{private: "canary-of-a-secret"}
	d := newMany(t, source)
	resp, err := http.Get(d.URL + "/config_dump")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); n < 50<<20 || err != nil {
		t.Errorf("the dump has only %d bytes: %v", n, err)
	}

	p := open(t)
	p.ready(d.URL + "/ui/clusters")
	if got := eval[string](p, "document.title"); !strings.HasPrefix(got, "100 unhealthy of 10,000 clusters · Clusters · ") {
		t.Errorf("the title is %q", got)
	}
	// The worst are first, with the reason, and the page has no more rows than it shows.
	if got := eval[string](p, "document.querySelectorAll('#clusters tbody tr').length + ' ' + document.querySelector('#clusters tbody tr').innerText.replace(/\\s+/g, ' ')"); !strings.HasPrefix(got, "200 cluster-00007 static 7 of 10 healthy 3 unhealthy 3 unhealthy by discovery") {
		t.Errorf("the rows are %q", got)
	}
	// On a phone a card is small: name, hosts, reason, one line of numbers.
	p.medium(390, 1)
	if got := eval[float64](p, "Math.max(...[...document.querySelectorAll('#clusters tbody tr')].map((e) => e.offsetHeight))"); got > 135 {
		t.Errorf("a cluster takes %v px on a phone", got)
	}
	p.medium(1200, 1)
	t.Logf("from a key to the rows: %.0f ms", p.timed("4711$"))
	if got := eval[string](p, "document.querySelector('#clusters tbody').innerText"); !strings.Contains(got, "cluster-04711") {
		t.Errorf("the filter selects %s", got)
	}
	if got := eval[string](p, "document.querySelector('.pager').innerText"); !strings.Contains(got, "1 to 1 of 1") {
		t.Errorf("the pager says %q", got)
	}
	p.ready(d.URL + "/ui/clusters?sort=name")
	p.press("a[rel=next]")
	p.until("document.documentElement.dataset.ready && document.querySelector('#clusters tbody tr').innerText.includes('cluster-00200')")

	// Nothing of that size is shown without being asked for.
	p.ready(d.URL + "/ui/config")
	if n := eval[float64](p, "document.querySelectorAll('*').length"); n > 500 || !strings.Contains(p.text(), "10,000") {
		t.Errorf("the page has %v elements: %.500s", n, p.text())
	}
	p.ready(d.URL + "/ui/config?resource=static_clusters")
	if got := eval[string](p, "`${document.querySelectorAll('.tree details').length} ${document.querySelector('main').innerText}`"); !strings.HasPrefix(got, "0 ") || !strings.Contains(got, "too much to show at once") {
		t.Errorf("the page shows %.500s", got)
	}
	p.do(chromedp.SendKeys(`input[name="search"]`, "TEAM-4711\r"))
	p.until("document.documentElement.dataset.ready && document.querySelector('#hits')")
	if got := eval[string](p, "document.querySelector('#hits').innerText"); !strings.Contains(got, "cluster-04711") || !strings.Contains(got, "filter_metadata.owner.team") {
		t.Errorf("the search found %s", got)
	}
	p.press(`#hits a`)
	p.until("document.documentElement.dataset.ready && document.querySelector('.tree .badge')")
	if got := eval[string](p, "document.documentElement.outerHTML"); !strings.Contains(got, ">redacted<") || strings.Contains(got, source.private) || !strings.Contains(got, "team-4711") {
		t.Error("the page of a cluster with a key lacks the badge or has the key")
	}
}

// TestSavedDumps opens saved files and compares them, without a request, and a file with
// the server.
func TestSavedDumps(t *testing.T) {
	t.Parallel()
	d := start(t)
	dir := t.TempDir()
	dump := d.Get("/config_dump")
	one := filepath.Join(dir, "one.json")
	two := filepath.Join(dir, "two.json")
	stats := filepath.Join(dir, "stats.txt")
	for file, text := range map[string]string{one: dump, two: strings.Replace(dump, `"connect_timeout": "1s"`, `"connect_timeout": "<img src=x onerror=canary()>"`, 1), stats: "a.b: 1\n<script>canary()</script>: 2\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := open(t)
	p.ready(base(d) + "/ui/config")
	p.until("document.querySelector('#saved').dataset.ready")
	p.mu.Lock()
	before := len(p.requests)
	p.mu.Unlock()
	p.do(chromedp.SetUploadFiles("#saved input", []string{stats}))
	p.until("document.querySelector('#saved-out').innerText.includes('<script>canary()</script> 2')")
	p.do(chromedp.SetUploadFiles("#saved input", []string{one, two}))
	p.until("document.querySelector('#differences')")
	if got := eval[string](p, "document.querySelector('#saved-out').innerText"); !strings.Contains(got, "connect_timeout") || !strings.Contains(got, "1s\t<img src=x onerror=canary()>") || !strings.Contains(got, "[backend]") {
		t.Errorf("the difference is %s", got)
	}
	p.do(chromedp.Evaluate[chromedp.Void](`Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (x) => { window.copied = x; }}})`))
	p.press("#saved-out button")
	p.until(`/^Path\tSaved\tOther\n(.*\n)*.*connect_timeout\t1s\t<img src=x onerror=canary\(\)>\n/.test(window.copied)`)
	p.mu.Lock()
	for _, r := range p.requests[before:] {
		if !strings.HasSuffix(r, "/server_info") && !strings.HasSuffix(r, ".svg") {
			t.Errorf("an opened file led to a request for %s", r)
		}
	}
	p.mu.Unlock()
	p.do(chromedp.SetUploadFiles("#saved input", []string{two}))
	p.until("!document.querySelector('#saved button').disabled")
	p.press("#saved button")
	p.until("document.querySelector('#differences')?.innerText.includes('connect_timeout')")
	p.do(chromedp.SetUploadFiles("#saved input", []string{one, one}))
	p.until("document.querySelector('#saved-out').innerText.includes('do not differ')")

	// The shown part is compared with its state when the page was opened.
	p.ready(base(d) + "/ui/config?resource=static_clusters&name=backend")
	p.until("document.querySelector('#saved').dataset.ready")
	p.press("#since")
	p.until("document.querySelector('#since-out').innerText.includes('do not differ')")
	p.do(chromedp.Evaluate[chromedp.Void](`window.fetch = ((fetch) => async (u, o) => new Response((await (await fetch(u, o)).text()).replace('"1s"', '"2s"')))(window.fetch)`))
	p.press("#since")
	p.until("document.querySelector('#changes')?.innerText.includes('connect_timeout\\t1s\\t2s')")
	p.until("document.querySelector('#changes thead').innerText.includes('When opened\\tNow')")
	p.do(chromedp.Evaluate[chromedp.Void]("window.fetch = () => Promise.reject(new TypeError('down'))"))
	p.press("#since")
	p.until("document.querySelector('#since-out').innerText.includes('did not answer')")

	// Rendered again, opened files and the comparison stay, and it follows.
	p.ready(base(d) + "/ui/config?tab=clusters")
	p.until("document.querySelector('#saved').dataset.ready")
	if got := eval[string](p, "[...document.querySelectorAll('.split > :first-child h2')].map((e) => e.textContent) + ' ' + document.querySelector('#dump').textContent"); got != "Clusters static_clusters" {
		t.Errorf("the tab shows %q", got)
	}
	p.do(chromedp.SetUploadFiles("#saved input", []string{stats}))
	p.until("document.querySelector('#saved-out').innerText.includes('a.b 1')")
	p.press("#since")
	p.until("document.querySelector('#since-out').innerText.includes('do not differ')")
	p.do(chromedp.Evaluate[chromedp.Void](`window.fetch = ((fetch) => async (u, o) => new Response((await (await fetch(u, o)).text()).replace('"1s"', '"3s"')))(window.fetch); document.getElementById('fresh').old = true`))
	p.do(chromedp.SetValue("#refresh", "1"), chromedp.Evaluate[chromedp.Void]("document.activeElement.blur(); document.getElementById('refresh').dispatchEvent(new Event('change'))"))
	p.until("!document.getElementById('fresh').old && document.querySelector('#changes')?.innerText.includes('connect_timeout\\t1s\\t3s')")
	if got := eval[string](p, "document.querySelector('#saved-out').innerText"); !strings.Contains(got, "a.b 1") {
		t.Errorf("after rendering again, the opened file is %q", got)
	}

	// Each node has a path, by pointer and by keyboard.
	p.ready(base(d) + "/ui/config?resource=static_clusters&name=backend")
	p.until("document.querySelector('#saved').dataset.ready")
	p.do(chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll('.tree .leaf')].find((e) => e.innerText === 'connect_timeout 1s').click()`))
	p.until("document.querySelector('.tree').previousElementSibling.querySelector('code').textContent === '.configs[0].cluster.connect_timeout'")
	p.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('.tree').focus()"))
	for range 4 {
		p.key(kb.ArrowDown)
	}
	const copied = `(() => { const c = new ClipboardEvent('copy', { clipboardData: new DataTransfer(), bubbles: true, cancelable: true }); document.activeElement.dispatchEvent(c); return c.clipboardData.getData('text/plain') })()`
	if got := eval[string](p, copied); got != `.configs[0]["@type"]` {
		t.Errorf("the path is %s", got)
	}
}

// TestCircuitTiles sends the page an event stream with 200 clusters, comments and an
// interruption.
func TestCircuitTiles(t *testing.T) {
	t.Parallel()
	var list []any
	for i := range 200 {
		list = append(list, object{"name": fmt.Sprintf("c%d", i), "type": "STATIC"})
	}
	text, err := json.Marshal(object{
		"admin":            object{"address": object{"socket_address": object{"address": "127.0.0.1", "port_value": 0}}},
		"stats_sinks":      []any{object{"name": "circuit_stream"}},
		"static_resources": object{"clusters": list},
	})
	if err != nil {
		t.Fatal(err)
	}
	d := daemon.Start(t, daemon.Config{YAML: string(text)})
	f := newFaults(t, d)
	first := 0
	f.stream = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("content-type", "text/event-stream")
		fmt.Fprint(w, "retry: 20\n\n: ping\n\n")
		for i := range 200 {
			fmt.Fprintf(w, ": ping %d\n\ndata: {\"type\": \"HystrixCommand\", \"name\": \"c%d\", \"requestCount\": %d, \"errorPercentage\": %d, \"rollingCountSuccess\": 77, \"rollingCountSemaphoreRejected\": 8, \"rollingCountThreadPoolRejected\": 0, \"currentConcurrentExecutionCount\": 9, \"latencyExecute\": {\"99\": 12}}\n\n"+
				"data: {\"type\": \"HystrixThreadPool\", \"name\": \"c%d\", \"requestCount\": 5}\n\n", i, i, 1000+first+i, i%100, i)
		}
		first += 10_000
		_ = http.NewResponseController(w).Flush() // the client may be gone
		<-r.Context().Done()
	}
	p := open(t)
	p.ready(f.URL + "/ui/circuits")
	const tile = `[...document.querySelectorAll('.tile')].find((e) => e.dataset.cluster === 'c199')`
	text199 := func() string { return eval[string](p, tile+".innerText.replace(/\\s+/g, ' ')") }
	p.until(tile + ".innerText.includes('1,199')")
	if got := text199(); !strings.Contains(got, "99 %") || !strings.Contains(got, "p99 12 ms") || !strings.Contains(got, "Successes 77") || !strings.Contains(got, "Rejected 8") || strings.Contains(got, "no requests") || !strings.Contains(got, " errors ") || !strings.Contains(got, "Active 0") {
		t.Errorf("the tile shows %q", got)
	}
	if got := eval[float64](p, "document.querySelectorAll('ul#tiles > li.tile > h2').length"); got != 200 {
		t.Errorf("%v tiles", got)
	}
	p.do(chromedp.Evaluate[chromedp.Void](`Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (x) => { window.copied = x; }}})`))
	p.press("#copy-stream")
	p.until("window.copied === '" + f.URL + "/circuit_event_stream'")
	f.CloseClientConnections()
	p.until(tile + ".innerText.includes('11,199')")
	// Paused, the page has no stream, also when its address is opened again.
	p.press("#pause")
	p.until("document.querySelector('#pause').textContent === 'Go live' && location.search === '?pause=1'")
	p.ready(f.URL + "/ui/circuits?pause=1")
	p.until("document.querySelector('#pause').textContent === 'Go live'")
	if got := eval[[]string](p, "performance.getEntriesByType('resource').map((e) => e.name).filter((x) => x.endsWith('circuit_event_stream'))"); len(got) > 0 || strings.Contains(text199(), "1,199") {
		t.Errorf("a paused page reads %q", got)
	}
	p.key("p")
	p.until(tile + ".innerText.includes('21,199') && location.search === ''")
}

// TestDaysLeftInAllTimeZones: the words for the end of a certificate do not depend on
// the time zone of the browser, the shown time does.
func TestDaysLeftInAllTimeZones(t *testing.T) {
	t.Parallel()
	d := crowd(t)
	p := open(t)
	var words, times []string
	for _, zone := range []string{"Pacific/Auckland", "UTC", "America/Los_Angeles"} {
		_, err := chromedp.Call(p, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: zone})
		p.must("the time zone", err)
		p.ready(base(d) + "/ui/certs")
		words = append(words, eval[string](p, "document.querySelector('#certificates .word').innerText"))
		times = append(times, eval[string](p, "document.querySelector('#certificates time').innerText"))
	}
	if words[0] != words[1] || words[1] != words[2] || words[0] != "expires in less than a day" || times[0] == times[1] || times[1] == times[2] {
		t.Errorf("in three time zones: %q %q", words, times)
	}
}
