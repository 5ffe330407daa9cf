package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/admin"
	pagesof "github.com/statsd-admin/statsd-admin/admin/pages"
	"github.com/statsd-admin/statsd-admin/e2e/daemon"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestExplorerTotals expects the explorer to count as many series as /stats lists, on
// every level, and a mark at a name that has reached its limit.
func TestExplorerTotals(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Config{YAML: `
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
statsd:
  listeners: [{name: tcp, address: "tcp://127.0.0.1:0"}]
  limits: {series_per_name: 5}
`})
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, "many.tagged.requests:1|c|#user:u%d\nmany.other.n%d:1|c\n", i, i)
	}
	lines(t, d, "%smany.last:1|c", text.String())
	d.Wait("the stats", func(s daemon.Stats) bool { return s["many.last"] == "1" })
	p := open(t)
	// The pages of the own requests are stats, too, so compare the received ones.
	const sum = `[...document.querySelectorAll('#groups tbody tr')].reduce((n, row) => n + Number(row.cells[1].dataset.value), 0)`
	const total = `Number([...document.querySelectorAll('dl.strip div')].find((e) => e.innerText.startsWith('Series')).querySelector('dd').dataset.value)`
	for _, prefix := range []string{"many.", "many.tagged.", "many.other."} {
		p.ready(base(d) + "/ui/explorer?prefix=" + prefix)
		want := float64(strings.Count(d.Get("/stats?filter=^"+strings.ReplaceAll(prefix, ".", "[.]")), "\n"))
		if got := eval[[]float64](p, "["+sum+", "+total+"]"); got[0] != want || got[1] != want || want < 5 {
			t.Errorf("%s: the rows have %v series, the head says %v, /stats has %v", prefix, got[0], got[1], want)
		}
	}
	p.ready(base(d) + "/ui/explorer?prefix=many.")
	marked := eval[[]string](p, `[...document.querySelectorAll('#groups tbody tr')].filter((row) => row.innerText.includes('overflow')).map((row) => row.querySelector('a').innerText)`)
	if len(marked) != 1 || !strings.HasPrefix(marked[0], "many.tagged") {
		t.Errorf("an overflow is marked at %q", marked)
	}
}

// TestPagesOfLittle opens all pages of a server that has nothing but a store: no history,
// no stream, no clusters, no configuration. They work, name the missing parts, and link
// to, post to and name in commands nothing that is not there.
func TestPagesOfLittle(t *testing.T) {
	t.Parallel()
	s := store.New(store.Options{})
	s.Root().Counter("little.count").Add(7)
	s.Root().Histogram("little.ms", store.Milliseconds).Record(12)
	s.Flush(store.FlushOptions{})
	srv, err := admin.New(admin.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	if err := pagesof.Add(srv); err != nil {
		t.Fatal(err)
	}
	d := httptest.NewServer(srv)
	t.Cleanup(func() { d.CloseClientConnections(); d.Close(); _ = srv.Close() })
	p := open(t)
	links := map[string]string{} // and the page that has it
	for path, want := range map[string]string{
		"/": "stats", "/ui/": "Needs attention", "/ui/stats?filter=little": "little.count", "/ui/stat?name=little.count": "7",
		"/ui/histograms": "little.ms",
		"/ui/histograms?name=little.ms&view=time": "stats_config.history_bytes",
		"/ui/histograms?name=little.ms&compare=1": "stats_config.history_bytes",
		"/ui/explorer": "little.", "/ui/clusters": "No clusters are configured", "/ui/listeners": "no listeners",
		"/ui/ingest": "section statsd", "/ui/runtime": "no runtime values", "/ui/logging": "no loggers", "/ui/config": "no configuration dump",
		"/ui/certs": "No TLS certificates", "/ui/circuits": "No clusters are configured", "/ui/audit": "No changes", "/ui/server": "Memory",
	} {
		p.ready(d.URL + path)
		if text := p.text(); !strings.Contains(text, want) {
			t.Errorf("%s lacks %q: %.600s", path, want, text)
		}
		if path != "/" {
			p.named("of little, " + path)
		}
		for _, link := range eval[[]string](p, "[...document.querySelectorAll('a[href], form, details code')].map((e) => e.href ?? e.action ?? /'(http[^']+)'/.exec(e.textContent)?.[1]).filter(Boolean)") {
			links[link] = path
		}
	}
	if len(links) < 100 {
		t.Errorf("the pages have only %d links", len(links))
	}
	for link, from := range links {
		resp, err := http.Get(link)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusNotFound {
			t.Errorf("%s links to %s, which answers %s", from, link, resp.Status)
		}
	}
	p.ready(d.URL + "/ui/stats?filter=little")
	if got := eval[bool](p, "document.querySelector('#pause').hidden && !document.querySelector('[data-stream-filter]')"); !got {
		t.Error("without a stream the page offers to pause")
	}
}

// TestCardsOfPhones expects the rows of long lists in few lines where the window is
// narrow: a logger in one, others in as many as their cells need side by side, and no
// cell for a column that only groups rows, nor a label without a value.
func TestCardsOfPhones(t *testing.T) {
	t.Parallel()
	d := start(t)
	send(t, d, func(lines *strings.Builder) { lines.WriteString("broken line\ngood:1|c\n") })
	d.Wait("the line", func(s daemon.Stats) bool { return s["good"] == "1" })
	p := open(t)
	p.medium(320, 2)
	for path, most := range map[string]int{"logging": 50, "explorer": 140, "listeners": 120, "ingest": 200} {
		p.ready(base(d) + "/ui/" + path)
		rows := eval[[]int](p, "[...document.querySelectorAll('.cards')].flatMap((e) => [...e.tBodies[0].rows]).map((row) => row.offsetHeight)")
		if len(rows) == 0 || slices.Max(rows) > most {
			t.Errorf("%s has rows of %v pixels, want at most %d", path, rows, most)
		}
	}
	d.Post("/runtime_modify?a=1&dry_run")
	p.ready(base(d) + "/ui/audit")
	if got := eval[[]string](p, "[...document.querySelectorAll('.cards td')].filter((e) => e.checkVisibility() && e.textContent.trim() === '').map((e) => e.dataset.l)"); len(got) > 0 {
		t.Errorf("a dry run has the labels %q without values", got)
	}
	// Of many rejected lines, the last of each reason is in view.
	send(t, d, func(lines *strings.Builder) {
		lines.WriteString(strings.Repeat("broken line\nbad:x|c\nbad:1|q\n", 20) + "last:1|c\n")
	})
	d.Wait("the lines", func(s daemon.Stats) bool { return s["last"] == "1" })
	p.ready(base(d) + "/ui/ingest")
	if got := eval[[]int](p, "[document.documentElement.scrollHeight, ...[...document.querySelectorAll('#rejects tbody tr')].map((row) => row.offsetHeight)]"); got[0] > 2200 || len(got) != 4 || slices.Max(got[1:]) > 120 {
		t.Errorf("the page and its rejected lines have the heights %v", got)
	}
}
