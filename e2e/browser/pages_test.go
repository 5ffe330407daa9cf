package browser

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

// livePages are the pages below /ui/, each once.
var livePages = []string{"/ui/", "/ui/stats", "/ui/stat?name=server.live", "/ui/histograms",
	"/ui/histograms?name=server.initialization_time_ms&view=time", "/ui/histograms?name=server.initialization_time_ms&compare=1&a=1m&span=5m", "/ui/histograms?merge=1&unused=1", "/ui/explorer", "/ui/explorer?view=map&prefix=server.", "/ui/clusters", "/ui/clusters?cluster=backend", "/ui/listeners", "/ui/ingest", "/ui/ingest?line=a:x|c",
	"/ui/runtime?key=planted", "/ui/logging", "/ui/config", "/ui/certs", "/ui/circuits", "/ui/audit", "/ui/server"}

// size sets the size of the window and the color scheme.
func (p *tab) size(width int64, scheme string) {
	p.t.Helper()
	_, err := chromedp.Call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 900, DeviceScaleFactor: 1})
	p.must("the size", err)
	_, err = chromedp.Call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	p.must("the color scheme", err)
}

// ready opens a page and waits for its script.
func (p *tab) ready(url string) {
	p.t.Helper()
	p.visit(url)
	p.until("document.documentElement.dataset.ready")
}

// TestStatsMove sends samples while the page is open, and expects the number to move
// without a reload, to stop while it is paused, and to catch up. So do the quantiles of
// a histogram.
func TestStatsMove(t *testing.T) {
	t.Parallel()
	d := start(t)
	hits(t, d, "1234")
	lines(t, d, "wait:20|ms")
	d.Wait("wait", func(s daemon.Stats) bool { return strings.Contains(s["wait"], "P0") })
	p := open(t)
	p.ready(base(d) + "/ui/stats?filter=^(hits|wait)$")
	const shown = `document.querySelector('[data-stat="hits"]').textContent`
	const median = `document.querySelector('[data-quantiles="wait"] b')`
	p.until(shown + " === '1,234' && " + median + ".textContent === '20\u202fms'")
	more := func() {
		c, err := net.Dial("tcp", d.Address("tcp"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprint(c, "hits:766|c\n")
	}
	p.do(chromedp.Evaluate[chromedp.Void]("window.same = true"))
	more()
	p.until(shown + " === '2,000' && window.same")
	d.Until("the quantiles", func() bool { // of an interval with values
		lines(t, d, "wait:500|ms")
		return eval[bool](p, median+".textContent === '500\u202fms' && "+median+".dataset.value === '500'")
	})
	p.press("#pause")
	more()
	d.Wait("hits: 2766", func(s daemon.Stats) bool { return s["hits"] == "2766" })
	if got := eval[string](p, shown); got != "2,000" {
		t.Errorf("while paused the page shows %s", got)
	}
	p.press("#pause")
	p.until(shown + " === '2,766'")
}

// TestLinesGrow sends samples until the line of a counter has grown in the open page.
func TestLinesGrow(t *testing.T) {
	t.Parallel()
	d := start(t)
	hits(t, d, "1")
	p := open(t)
	p.ready(base(d) + "/ui/stats?filter=^hits$")
	c, err := net.Dial("tcp", d.Address("tcp"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ended, sent := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sent)
		for {
			select {
			case <-ended:
				return
			case <-time.After(200 * time.Millisecond):
				fmt.Fprint(c, "hits:3|c\n")
			}
		}
	}()
	p.until(`(document.querySelector('tr:has([data-stat="hits"]) [data-spark] polyline')?.getAttribute('points') ?? '').split(' ').length > 2`)
	close(ended)
	<-sent
}

// filtered is whether the page has applied the typed filter, to the last character.
const filtered = `new URLSearchParams(location.search).get('filter') === document.querySelector('input[name="filter"]').value && !document.querySelector('[aria-busy]')`

// TestFilterWhileTyping types into the filter and expects other rows without a
// reload. A wrong expression is marked where it is wrong and leaves the rows; a valid one
// brings rows again. A click on a column right after a key keeps the typed text.
func TestFilterWhileTyping(t *testing.T) {
	t.Parallel()
	d := start(t)
	p := open(t)
	p.provoke("status 400")
	p.ready(base(d) + "/ui/stats")
	p.do(chromedp.Evaluate[chromedp.Void]("window.same = true"))
	p.key("/")
	p.until("document.activeElement.name === 'filter'")
	p.do(chromedp.Evaluate[chromedp.Void]("document.activeElement.value = ''"))
	p.key("^server.live$")
	p.until(names + " === 'server.live' && window.same && " + filtered)
	for _, wrong := range []struct {
		typed, why string
		at         int // character
	}{{"(", "Invalid re2 regex", 13}, {"[z-a]", "Invalid re2 regex", 14}, {"[éz-a]", "Invalid re2 regex", 15}} {
		p.key(wrong.typed)
		p.until("document.querySelector('#filter-error')?.textContent.includes(" + quoted(wrong.why) + ") && document.querySelector('.caret')?.textContent.startsWith(document.activeElement.value + '\\n')")
		if got, want := eval[string](p, "document.querySelector('.caret').textContent"), "^server.live$"+wrong.typed+"\n"+strings.Repeat(" ", wrong.at)+"^"; got != want {
			t.Errorf("the mark is %q, want %q", got, want)
		}
		if got := eval[string](p, names+" + document.activeElement.getAttribute('aria-invalid') + document.querySelector('#filter-error').role"); got != "server.livetruealert" {
			t.Errorf("with a wrong filter the page has %q", got)
		}
		p.named("a wrong filter")
		p.key(strings.Repeat(kb.Backspace, utf8.RuneCountInString(wrong.typed)))
		p.until("!document.querySelector('#filter-error, [aria-invalid]') && " + filtered + " && " + names + " === 'server.live'")
	}
	if got := eval[string](p, "location.search"); !strings.Contains(got, "filter=%5Eserver.live%24") {
		t.Errorf("the address has %q", got)
	}
	// A single key acts at once. Of keys that follow fast, the last one acts after a pause.
	const keys = `new Promise((done) => {
		const f = document.querySelector('input[name="filter"]');
		const type = (text) => { f.value = text; f.dispatchEvent(new Event('input', {bubbles: true})); };
		const shown = () => new URL(location).searchParams.get('filter');
		setTimeout(() => {
			type('^a');
			setTimeout(() => {
				const first = shown();
				type('^ab');
				type('^abc');
				setTimeout(() => {
					const burst = shown();
					setTimeout(() => done([first, burst, shown()].join(' ')), 50);
				}, 5);
			}, 5);
		}, 60);
	})`
	if got := eval[string](p, keys); got != "^a ^a ^abc" {
		t.Errorf("after a key, in a burst and after it the filter is %q", got)
	}
	p.do(chromedp.Evaluate[chromedp.Void](`{ const f = document.querySelector('input[name="filter"]'); f.value = '^server.live$'; f.dispatchEvent(new Event('input', {bubbles: true})); }`))
	p.until(filtered + " && " + names + " === 'server.live'")
	const typeAndSort = `{ const f = document.querySelector('input[name="filter"]'); f.value = '^[a-z]'; f.dispatchEvent(new Event('input', {bubbles: true})); document.querySelector('#content [data-k="sort-%s"]').click(); }`
	const both = `location.search.includes('filter=%%5E%%5Ba-z%%5D') && document.querySelector('input[name="filter"]').value === '^[a-z]' && document.querySelector('[data-k="sort-%s"]').closest('th').ariaSort && document.documentElement.dataset.ready && !document.querySelector('[aria-busy]')`
	p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(typeAndSort, "value")))
	p.until(fmt.Sprintf(both, "value") + " && window.same")
	p.key(kb.Escape)
	p.key("gc")
	p.until("location.pathname === '/ui/clusters' && document.documentElement.dataset.ready")
	p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(typeAndSort, "name")))
	p.until(fmt.Sprintf(both, "name"))
	p.key("?")
	p.until("document.querySelector('dialog#help')?.open")
	p.named("help")
	p.key(kb.Escape)
	p.until("!document.querySelector('dialog')")
}

// TestFilterEngines switches to ECMAScript for a look ahead. An expression that
// takes too long says so, and the rows stay.
func TestFilterEngines(t *testing.T) {
	t.Parallel()
	d := start(t)
	lines(t, d, "look.ahead:1|c\nlook.back:1|c\n%s!:1|c", strings.Repeat("a", 60))
	d.Wait("look.back", func(s daemon.Stats) bool { return s["look.back"] == "1" })
	p := open(t)
	p.provoke("status 400")
	p.ready(base(d) + "/ui/stats?filter=^look")
	set := func(filter string) {
		t.Helper()
		p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`{ const f = document.querySelector('input[name="filter"]'); f.value = %q; f.dispatchEvent(new Event('input', {bubbles: true})); }`, filter)))
	}
	set("^look[.](?!back)")
	p.until("document.querySelector('#filter-error') && " + names + " === 'look.ahead look.back'")
	p.press(`label:has(> input[name="re"][value="ecma"])`)
	p.until(names + " === 'look.ahead' && location.search.includes('re=ecma') && !document.querySelector('#filter-error')")
	set("^(a+)+$")
	p.until("document.querySelector('#filter-error')?.textContent.includes('Too expensive')")
	if got := eval[string](p, names); got != "look.ahead" {
		t.Errorf("with a filter that takes too long the rows are %s", got)
	}
	p.named("too expensive")
	set("^a+!$")
	p.until("!document.querySelector('#filter-error') && " + names + ".startsWith('aaa')")
	p.press(`label:has(> input[name="re"][value=""])`)
	p.until("!location.search.includes('re=') && " + names + ".startsWith('aaa')")
}

// TestStatsWithoutScripts filters and turns pages with a browser that runs no scripts.
func TestStatsWithoutScripts(t *testing.T) {
	t.Parallel()
	d := start(t)
	var text strings.Builder
	for i := range 130 {
		fmt.Fprintf(&text, "many.%03d:%d|c\n", i, i)
	}
	lines(t, d, "%s", text.String())
	d.Wait("many.129", func(s daemon.Stats) bool { return s["many.129"] == "129" })
	p := open(t)
	_, err := chromedp.Call(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	p.must("switching scripts off", err)
	p.visit(base(d) + "/ui/stats")
	p.do(chromedp.SendKeys(`input[name="filter"]`, "^many"+kb.Enter))
	for _, step := range []struct{ link, first, pager string }{{"", "many.000", "1 to 100 of 130"}, {`a[rel="next"]`, "many.100", "101 to 130 of 130"}, {`[data-k="sort-value"]`, "many.129", "1 to 100 of 130"}} {
		if step.link != "" {
			p.press(step.link)
		}
		p.until(names + ".startsWith(" + quoted(step.first) + ") && document.querySelector('.pager').textContent.includes(" + quoted(step.pager) + ")")
	}
	if eval[bool](p, "document.documentElement.dataset.ready !== undefined || document.querySelector('#pause').checkVisibility()") {
		t.Error("scripts ran, or the page shows what needs them")
	}
}

// TestChangesWithoutScripts changes a log level and runtime values, and expects the
// page to come back with the change.
func TestChangesWithoutScripts(t *testing.T) {
	t.Parallel()
	d := start(t)
	p := open(t)
	_, err := chromedp.Call(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	p.must("switching scripts off", err)
	text := func(url string) string {
		p.until("document.readyState === 'complete' && (location.pathname + location.search).includes(" + quoted(url) + ")")
		return p.text()
	}
	p.visit(base(d) + "/ui/logging")
	p.do(chromedp.SetValue(`form[action="../logging"] select[name="main"]`, "error"))
	p.press(`tr:has(select[name="main"]) button`)
	if got := text("/ui/logging?done="); !strings.Contains(got, "Done: /logging: main info → error") {
		t.Errorf("after a change of the level the page shows %s", got)
	}
	p.visit(base(d) + "/ui/runtime")
	p.do(chromedp.SendKeys(`input[name="key"]`, "a.b"))
	p.press(`form:has(input[name="key"]) button`)
	text("/ui/runtime?key=a.b")
	p.do(chromedp.SendKeys("#value", "17"))
	p.press(`form:has(#value) button`)
	if got := text("done="); !strings.Contains(got, "a.b (none) → 17") {
		t.Errorf("after a new value the page shows %s", got)
	}
	p.press(`form:has(input[type="hidden"][name="a.b"]) button`)
	d.Until("the end of the override", func() bool { return !strings.Contains(d.Get("/runtime"), "a.b") })
}

// TestDrainNamesItsEffect expects the dialog to name the request with its options and
// what they do, and to be on the screen of a phone.
func TestDrainNamesItsEffect(t *testing.T) {
	t.Parallel()
	d := start(t)
	p := open(t)
	p.size(390, "light")
	for page, words := range map[string][]string{
		"/ui/listeners": {"drain_listeners?graceful&inboundonly", "Listeners stop accepting", "wait for the drain time", "node-17"},
		"/":             {"drain_listeners?graceful&inboundonly", "stop listeners", "wait for the drain time", "node-17"},
	} {
		p.ready(base(d) + page)
		p.do(chromedp.Evaluate[chromedp.Void](`document.querySelector('tr:has(form[action$="drain_listeners"]) .opts input')?.click();
			for (const name of ['graceful', 'inboundonly']) document.querySelector('form[action$="drain_listeners"]').elements[name].checked = true`))
		p.press(`form[action$="drain_listeners"] button`)
		p.until("document.activeElement.id === 'confirm-word'")
		p.named("the dialog of " + page)
		text := eval[string](p, "document.querySelector('dialog').innerText")
		for _, w := range words {
			if !strings.Contains(text, w) {
				t.Errorf("%s: the dialog lacks %q: %s", page, w, text)
			}
		}
		if !eval[bool](p, `(() => { const b = document.querySelector('dialog').getBoundingClientRect(); return b.left >= 0 && b.right <= innerWidth && b.top >= 0 && b.bottom <= innerHeight; })()`) {
			t.Errorf("%s: the dialog is not on the screen", page)
		}
		p.key(kb.Escape)
	}
}
