package browser

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

// hide makes the page believe that its window is hidden, or shown again.
func (p *tab) hide(hidden bool) {
	p.t.Helper()
	p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf("Object.defineProperty(document, 'hidden', {value: %t, configurable: true}); document.dispatchEvent(new Event('visibilitychange'))", hidden)))
}

// TestStreams follows the streams of two pages: they are independent, a paused or hidden
// page has none, and a page that is shown again has the value without a spike in the
// rate. The interval is in the address and in the request.
func TestStreams(t *testing.T) {
	t.Parallel()
	d := start(t)
	f := newFaults(t, d)
	hits(t, d, "1000")
	lines(t, d, "other:5|c")
	d.Wait("other: 5", func(s daemon.Stats) bool { return s["other"] == "5" })
	streams := func(want int32) {
		t.Helper()
		d.Until(fmt.Sprintf("%d streams", want), func() bool { return f.open.Load() == want })
	}
	one, two := open(t), open(t)
	one.ready(f.URL + "/ui/stats?filter=^hits$")
	two.ready(f.URL + "/ui/stats?filter=^other$&sort=value")
	streams(2)
	one.press("#pause")
	streams(1)
	if got := eval[string](two, "document.querySelector('#pause').textContent + location.search"); got != "Pause?filter=^other$&sort=value" {
		t.Errorf("a pause in one window makes the other one %q", got)
	}
	one.press("#pause")
	streams(2)

	one.hide(true)
	streams(1)
	lines(t, d, "hits:100000|c\nother:3|c")
	const shown = `document.querySelector('[data-stat="hits"]').textContent`
	two.until(`document.querySelector('[data-stat="other"]').textContent === '8'`)
	if got := eval[string](one, shown); got != "1,000" {
		t.Errorf("the hidden page shows %s", got)
	}
	one.do(chromedp.Evaluate[chromedp.Void](`window.rates = []; new MutationObserver(() => rates.push(document.querySelector('tr:has([data-stat="hits"]) [data-rate]').textContent)).observe(document.querySelector('#main'), {subtree: true, childList: true, characterData: true})`))
	one.hide(false)
	one.until(shown + " === '101,000'")
	lines(t, d, "hits:1|c")
	one.until(shown + " === '101,001'")
	for _, rate := range eval[[]string](one, "rates") {
		if x, err := strconv.ParseFloat(strings.ReplaceAll(rate, ",", ""), 64); rate != "" && rate != "–" && (err != nil || x > 1000) { // 1 in an interval that can be short
			t.Errorf("when the page is shown again the rate is %q", rate)
		}
	}

	one.do(chromedp.Evaluate[chromedp.Void](`{ const s = document.querySelector('#refresh'); s.value = '30'; s.dispatchEvent(new Event('change')); }`))
	d.Until("a stream with the interval", func() bool { return strings.Contains(f.asked.Load().(string), "interval_ms=30000") })
	if got := eval[string](one, "location.search"); !strings.HasSuffix(got, "&every=30") {
		t.Errorf("with another interval the address has %q", got)
	}
	one.do(chromedp.Reload())
	one.until("document.documentElement.dataset.live && document.querySelector('#refresh').value === '30'")

	// A page without a stream is rendered again; open details stay open, and nothing
	// is loaded anew.
	two.ready(f.URL + "/ui/ingest")
	two.do(chromedp.Evaluate[chromedp.Void](`window.same = true; document.querySelector('#content details').open = true`))
	two.do(chromedp.Evaluate[chromedp.Void](`{ const s = document.querySelector('#refresh'); s.value = '1'; s.dispatchEvent(new Event('change')); }`))
	lines(t, d, "hits:1|c\nno line")
	two.until("document.querySelector('#content').innerText.includes('no line') && document.querySelector('#content details').open && window.same")
	for _, p := range []*tab{one, two} {
		p.do(chromedp.Navigate("about:blank"))
	}
	streams(0)
}

// TestOverviewMoves opens the overview while a counter is among the top rates. It stays
// there when it rests, with the rate that it has then. The exact values move too.
func TestOverviewMoves(t *testing.T) {
	t.Parallel()
	d := start(t)
	rest := repeat(t, d, "hits:1000000|c\n")
	const rate = `document.querySelector('#top-rates [data-rate="hits"]')?.textContent`
	p := open(t)
	for shown := false; !shown; shown = eval[bool](p, rate+" !== undefined && "+rate+" !== '0'") {
		p.ready(base(d) + "/ui/")
	}
	// Apart from the stream, the page is rendered again now and then.
	again := func(seconds string) {
		p.do(chromedp.Evaluate[chromedp.Void]("{ const s = document.querySelector('#refresh'); s.dataset.stream = " + quoted(seconds) + "; s.dispatchEvent(new Event('change')); }"))
	}
	again("")
	rest()
	p.until(rate + " === '0'")
	// What moves has its exact value beside it.
	p.until(`document.querySelector('#top-rates [data-rate="hits"]').closest('[data-value]').dataset.value === '0'`)
	p.until(`[...document.querySelectorAll('#content [data-sum], #content [data-stat]:not([data-unit])')].every((e) => e.closest('[data-value]').dataset.value === e.textContent.replaceAll(',', ''))`)
	const received = `document.querySelector('[data-sum="ingest.lines.listener."]').dataset.value`
	before := eval[string](p, received)
	lines(t, d, "broken")
	p.until(received + " !== " + quoted(before))
	if got := eval[string](p, "document.querySelector('#content').innerText"); strings.Contains(got, "1 line rejected") {
		t.Error("the stream has what needs attention: this test sees nothing")
	}
	again("0.1")
	p.until("document.querySelector('#content').innerText.includes('1 line rejected')")
}

// TestStatPageMoves sends samples while the page of a stat is open, and expects not only
// the number to move without a reload, but also what no stream has: the last change and
// the line of a scrape.
func TestStatPageMoves(t *testing.T) {
	t.Parallel()
	d := start(t)
	hits(t, d, "1234")
	p := open(t)
	p.ready(base(d) + "/ui/stat?name=hits")
	const changed = `[...document.querySelectorAll('section:has(#about) dt')].find((e) => e.textContent === 'Last change').nextElementSibling.querySelector('time')?.dateTime`
	const scraped = `document.querySelector('section:has(#exposition) pre').innerText.trim()`
	p.until(changed + " && " + scraped + ".endsWith(' 1234')")
	p.until("(window.same ??= " + changed + ") && Date.now() > Date.parse(window.same) + 1000") // it has seconds
	lines(t, d, "hits:766|c")
	p.until(`document.querySelector('[data-stat="hits"]').textContent === '2,000' && window.same`)
	p.until(scraped + ".endsWith(' 2000') && " + changed + " > window.same")
	p.named("of a stat that has moved")
}

// TestClocksDiffer opens a page on a computer whose clock is an hour ahead: a note warns,
// and rates and ages follow the server's clock.
func TestClocksDiffer(t *testing.T) {
	t.Parallel()
	d := start(t)
	hits(t, d, "1")
	p := open(t)
	_, err := chromedp.Call(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `{ const now = Date.now; Date.now = () => now() + 3_600_000; }`})
	p.must("the clock", err)
	p.ready(base(d) + "/ui/stats?filter=^hits$")
	p.until("!document.querySelector('#skew').hidden && document.querySelector('#skew').innerText.includes('differ by 3,6')")
	const row = `document.querySelector('tr:has([data-stat="hits"])').querySelector`
	const rate, changed = row + `('[data-rate]').textContent`, row + `('[data-changed]').textContent`
	lines(t, d, "hits:1|c") // the page has a stream once it shows this, and rates from then on
	p.until(row + "('[data-stat]').textContent === '2' && " + rate + " === '0'")
	lines(t, d, "hits:60|c")
	p.until("(window.rate = " + rate + ") !== '0'")
	if got := eval[string](p, "window.rate"); got == "0.0" || strings.Contains(got, "\u2212") { // in an hour it would be 0.02
		t.Errorf("60 in about a second are %s per second", got)
	}
	p.until(rate + " === '0'") // nothing changes any more, so no event says so
	if got := eval[string](p, changed); got != "now" && !strings.HasSuffix(got, " s") {
		t.Errorf("the change was %s ago", got)
	}
}

// TestServerClockIsSetBack sets the clock of the server back by an hour, as far as the page
// can tell: ages go on.
func TestServerClockIsSetBack(t *testing.T) {
	t.Parallel()
	d := start(t)
	hits(t, d, "1")
	lines(t, d, "other:1|c")
	p := open(t)
	_, err := chromedp.Call(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `{
			const listen = EventSource.prototype.addEventListener;
			EventSource.prototype.addEventListener = function (type, f) {
				listen.call(this, type, (e) => f({ data: e.data?.replace(/"t":([0-9]+)/, (_, t) => '"t":' + (window.back ? t - 3_600_000 : t)) }));
			};
		}`})
	p.must("the clock", err)
	p.ready(base(d) + "/ui/stats?filter=^(hits|other)$")
	const row = `document.querySelector('tr:has([data-stat="hits"])').querySelector`
	const other = `document.querySelector('[data-stat="other"]').textContent`
	lines(t, d, "hits:1|c")
	p.until(row + "('[data-stat]').textContent === '2'") // the page has a stream
	lines(t, d, "hits:1|c")
	const changed = row + "('[data-changed]').textContent"
	p.until(changed + " === 'now'")
	p.until(changed + ".endsWith(' s')")
	eval[bool](p, "window.back = true")
	lines(t, d, "other:1|c")
	p.until(other + " === '2' && (window.shown = " + changed + ")")
	if got := eval[string](p, "window.shown"); !strings.HasSuffix(got, " s") {
		t.Errorf("after the step the change was %s ago", got)
	}
}

// measure returns numbers of the page that the browser counts.
func (p *tab) measure() map[string]float64 {
	p.t.Helper()
	got, err := chromedp.Call(p, performance.GetMetrics, cdp.Empty{})
	p.must("measuring", err)
	out := map[string]float64{}
	for _, m := range got.Metrics {
		out[m.Name] = m.Value
	}
	return out
}

// repeat sends lines now and every 250 ms, until the returned function is called or the
// test ends.
func repeat(t *testing.T, d *daemon.Daemon, text string) (end func()) {
	t.Helper()
	c, err := net.Dial("tcp", d.Address("tcp"))
	if err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(250 * time.Millisecond)
		defer ticker.Stop()
		for {
			if _, err := c.Write([]byte(text)); err != nil {
				return
			}
			select {
			case <-stop:
				return
			case <-ticker.C:
			}
		}
	}()
	end = sync.OnceFunc(func() { close(stop); <-stopped; c.Close() })
	t.Cleanup(end)
	return end
}

// ticking opens a page with stats that all change, as many as a page can have rows, and
// counts its ticks in window.ticked. Nothing may move.
func ticking(t *testing.T, rows string) (*daemon.Daemon, *tab) {
	t.Helper()
	d := start(t)
	var text strings.Builder
	for i := range 600 {
		fmt.Fprintf(&text, "ticking.%03d:%d|c\n", i, i+1)
	}
	repeat(t, d, text.String())
	d.Wait("the stats", func(s daemon.Stats) bool { return s.Number("ticking.599") > 0 })
	p := open(t)
	_, err := chromedp.Call(p, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks})
	p.must("measuring", err)
	p.ready(base(d) + "/ui/stats?filter=^ticking&rows=" + rows)
	p.until("document.documentElement.dataset.order")
	p.do(chromedp.Evaluate[chromedp.Void](`window.shift = 0; window.shifted = ''; window.ticked = 0;
		new PerformanceObserver((list) => { for (const e of list.getEntries()) { window.shift += e.value; window.shifted += e.sources.map((s) => s.node?.parentElement?.outerHTML.slice(0, 200)); } }).observe({type: 'layout-shift'});
		new MutationObserver(() => { window.ticked++; performance.mark('tick'); }).observe(document.querySelector('[data-stat="ticking.000"]'), {subtree: true, childList: true, characterData: true})`))
	p.until("window.ticked > 1") // by now the browser knows the rows in view
	p.do(chromedp.Evaluate[chromedp.Void](`window.drawn = new Set();
		new MutationObserver((list) => { for (const e of list) { window.drawn.add(e.target); } }).observe(document.querySelector('#stats tbody'), {subtree: true, attributeFilter: ['points']})`))
	return d, p
}

// ticks returns the processor time that the main thread of a page whose stats all change
// spends on each of n ticks or more, and the longest of its tasks.
func ticks(d *daemon.Daemon, p *tab, rows string, n int) (list []time.Duration, longest time.Duration) {
	t := p.t
	t.Helper()
	recorded := p.tasks()
	eval[bool](p, fmt.Sprintf("new Promise((done) => { const wait = () => (window.ticked > %d + this.first ? done(true) : setTimeout(wait, 1000)); this.first = window.ticked; wait(); })", n)) // to ask is work for the page, too
	list, longest = recorded()
	if got := eval[string](p, "`${document.querySelectorAll('#stats tbody tr').length} rows, shift ${window.shift}`"); got != rows+" rows, shift 0" {
		t.Errorf("after %d ticks there are %s: %s", n, got, eval[string](p, "window.shifted"))
	}
	if got := eval[string](p, "document.querySelector('[data-stream-filter]').dataset.streamFilter"); !strings.Contains(got, "ids=") || strings.Contains(got, "filter=") {
		t.Errorf("the page reads %s", got)
	}
	if drawn := eval[float64](p, "window.drawn.size"); drawn < 20 || drawn > 60 {
		t.Errorf("the lines of %v of %s rows were drawn", drawn, rows)
	}
	return list, longest
}

// tasks records the tasks of the main thread from now on. The returned function returns
// the processor time of all tasks between two ticks, for each tick, and of the longest.
func (p *tab) tasks() func() (list []time.Duration, longest time.Duration) {
	p.t.Helper()
	type event struct {
		PID  int     `json:"pid"`
		TID  int     `json:"tid"`
		Name string  `json:"name"`
		At   float64 `json:"ts"` // microseconds
		TDur float64 `json:"tdur"`
	}
	var mu sync.Mutex
	var events []event
	done := make(chan struct{})
	p.must("listening", chromedp.Listen(p, func(ev any) {
		switch ev := ev.(type) {
		case *tracing.EventDataCollected:
			mu.Lock()
			defer mu.Unlock()
			for _, raw := range ev.Value {
				var e event
				if json.Unmarshal(raw, &e) == nil && (e.Name == "tick" || strings.HasSuffix(e.Name, "::RunTask")) {
					events = append(events, e)
				}
			}
		case *tracing.EventTracingComplete:
			close(done)
		}
	}))
	_, err := chromedp.Call(p, tracing.Start, tracing.StartParams{TransferMode: tracing.StartTransferModeReportEvents,
		TraceConfig: &tracing.TraceConfig{IncludedCategories: []string{"toplevel", "blink.user_timing"}, ExcludedCategories: []string{"*"}}})
	p.must("tracing", err)
	return func() (list []time.Duration, longest time.Duration) {
		_, err := chromedp.Call(p, tracing.End, cdp.Empty{})
		p.must("tracing", err)
		<-done
		slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.At, b.At) })
		first := slices.IndexFunc(events, func(e event) bool { return e.Name == "tick" })
		var sum time.Duration
		for _, e := range events[first+1:] {
			switch {
			case e.PID != events[first].PID || e.TID != events[first].TID:
			case e.Name == "tick":
				list = append(list, sum)
				sum = 0
			default:
				took := time.Duration(e.TDur * 1000)
				sum += took
				longest = max(longest, took)
			}
		}
		return list, longest
	}
}

// TestManyRowsTick opens pages of 500 and of 100 rows that all change: nothing shifts, no
// row is added, and the browser lays out and paints no more of 500 rows than of 100. What
// a tick costs is judged by a proof, on a machine with nothing else to do.
func TestManyRowsTick(t *testing.T) {
	tick := func(rows string) float64 {
		d, p := ticking(t, rows)
		list, _ := ticks(d, p, rows, 5)
		painted := eval[float64](p, `[...document.querySelectorAll('#stats tbody [data-stat]')].filter((e) => e.checkVisibility({contentVisibilityAuto: true})).length`)
		p.do(chromedp.Navigate("about:blank"))
		slices.Sort(list)
		t.Logf("%s rows, %v painted: processor time of the ticks %v", rows, painted, list)
		return painted
	}
	few, many := tick("100"), tick("500")
	if few < 20 || few > 80 || many > few+5 {
		t.Errorf("%v of 100 rows are painted, and %v of 500", few, many)
	}
}

// hours feeds a page the events of so many seconds, and changes its view so many times. The numbers of nodes and listeners in the page, and its memory, must
// not grow.
func hours(t *testing.T, seconds, rows, views int) {
	t.Helper()
	d := start(t)
	var text strings.Builder
	for i := range rows {
		fmt.Fprintf(&text, "lasting.%03d:1|c\n", i)
	}
	lines(t, d, "%slasting.last:1|c", text.String())
	d.Wait("the stats", func(s daemon.Stats) bool { return s["lasting.last"] == "1" })
	f := newFaults(t, d)
	var left, sent atomic.Int64
	var turn sync.Mutex // a stream that the page has left sends into the void, so the next one must end later
	f.deltas = func(w http.ResponseWriter, r *http.Request) {
		turn.Lock()
		unlock := sync.OnceFunc(turn.Unlock)
		defer unlock()
		w.Header().Set("content-type", "text/event-stream")
		event := func(second int64, rest string) {
			fmt.Fprintf(w, "event: delta\ndata: {\"v\":1,\"seq\":%d,\"t\":%d,\"interval_ms\":1000,%s}\n\n", second, time.Now().UnixMilli(), rest)
		}
		var names []string
		for i := range rows {
			names = append(names, fmt.Sprintf("[%d,%q,%q,0]", i, "counter", fmt.Sprintf("lasting.%03d", i)))
		}
		values := func(second int64) string {
			var list []string
			for i := range rows {
				list = append(list, fmt.Sprintf("[%d,%d,%d]", i, second*int64(i+1), second%100))
			}
			return "\"rows\":[" + strings.Join(list, ",") + "]"
		}
		second := sent.Add(1)
		event(second, "\"new\":["+strings.Join(names, ",")+"],"+values(second))
		for left.Add(-1) >= 0 && r.Context().Err() == nil {
			second := sent.Add(1)
			event(second, values(second))
		}
		_ = http.NewResponseController(w).Flush() // the client may be gone
		unlock()
		<-r.Context().Done()
	}
	p := open(t)
	_, err := chromedp.Call(p, performance.Enable, performance.EnableParams{})
	p.must("measuring", err)
	p.ready(f.URL + "/ui/stats?filter=^lasting[.][0-9]&rows=1000")
	p.until("document.documentElement.dataset.order")
	run := func(seconds, views int) map[string]float64 {
		left.Store(int64(seconds))
		before := sent.Load()
		for i := range max(views, 1) {
			p.press("#pause")
			p.press("#pause")
			if i < views {
				p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`{ const f = document.querySelector('input[name="filter"]'); f.value = '^lasting[.]%s'; f.dispatchEvent(new Event('input', {bubbles: true})); }`, []string{"[0-9]", "0"}[i%2])))
				p.until(fmt.Sprintf("location.search.includes('filter=' + encodeURIComponent('^lasting[.]%s')) && !document.querySelector('[aria-busy]')", []string{"[0-9]", "0"}[i%2]))
			}
		}
		d.Until("the events", func() bool { return left.Load() < 0 && sent.Load() >= before+int64(seconds) })
		want := fmt.Sprintf("document.querySelector('[data-stat=\"lasting.000\"]').closest('[data-value]').dataset.value >= %d", before+int64(seconds))
		p.until(want)
		_, err := chromedp.Call(p, heapprofiler.CollectGarbage, cdp.Empty{})
		p.must("collecting", err)
		return p.measure()
	}
	first := run(seconds/10, views/5+1)
	last := run(seconds, views)
	t.Logf("nodes %.0f to %.0f, listeners %.0f to %.0f, heap %.1f to %.1f MiB after %d events and %d views", first["Nodes"], last["Nodes"],
		first["JSEventListeners"], last["JSEventListeners"], first["JSHeapUsedSize"]/(1<<20), last["JSHeapUsedSize"]/(1<<20), seconds, views)
	for _, what := range []string{"Nodes", "JSEventListeners"} {
		if last[what] > first[what]*1.1+50 {
			t.Errorf("%s grow from %.0f to %.0f", what, first[what], last[what])
		}
	}
	if last["JSHeapUsedSize"] > first["JSHeapUsedSize"]+8<<20 {
		t.Errorf("the heap grows from %.0f to %.0f bytes", first["JSHeapUsedSize"], last["JSHeapUsedSize"])
	}
}

// TestPageStaysSmall feeds a page ten minutes of events.
func TestPageStaysSmall(t *testing.T) { hours(t, 600, 20, 6) }

// TestRowsOutOfView: rows that are out of view are brought up to date little by little,
// and all at once before they can be seen, copied, printed or searched.
func TestRowsOutOfView(t *testing.T) {
	t.Parallel()
	_, p := ticking(t, "500")
	// Each stat is a multiple of the first one, unless a look at the store fell into the samples.
	p.do(chromedp.Evaluate[chromedp.Void](`window.behind = () => {
		const value = (i) => document.querySelector('[data-stat="ticking.' + String(i).padStart(3, '0') + '"]').textContent.replaceAll(',', '') / (i + 1);
		return Math.max(...Array.from({length: 500}, (_, i) => value(0) - value(i)));
	}`))
	for what, event := range map[string]string{
		"scrolled": "window.dispatchEvent(new Event('scroll'))", "copied": "document.dispatchEvent(new Event('copy', {bubbles: true}))",
		"printed": "window.dispatchEvent(new Event('beforeprint'))", "searched": "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'f', ctrlKey: true, bubbles: true}))",
	} {
		p.until("window.behind() > 8")
		if got := eval[float64](p, event+"; window.behind()"); got > 4 {
			t.Errorf("when the page is %s, a row shows a value of %v samples ago", what, got)
		}
	}
	last := eval[string](p, `document.querySelector('[data-stat="ticking.499"]').textContent`)
	p.until(`document.querySelector('[data-stat="ticking.499"]').textContent !== ` + quoted(last))
}
