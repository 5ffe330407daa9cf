package browser

import (
	"fmt"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

// lines sends StatsD lines.
func lines(t *testing.T, d *daemon.Daemon, format string, a ...any) {
	t.Helper()
	c, err := net.Dial("tcp", d.Address("tcp"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, format+"\n", a...)
}

// cell is the place of a number in the table of stats.
func cell(what, name string) string {
	return `document.querySelector('#stats tr:not(.pinned):has([data-stat="` + name + `"]) [data-` + what + `]')`
}

// names are the names in the table of stats, as shown.
const names = `[...document.querySelectorAll('#stats tbody tr:not(.pinned) a:not(.pin)')].map((a) => a.textContent).join(' ')`

// view is what the stats page shows, without values.
const view = `[...document.querySelector('#controls').elements].filter((e) => e.name && e.type !== 'hidden').map((e) => e.name + e.value + e.checked) + document.querySelector('.pager span')?.textContent + [...document.querySelectorAll('#stats thead th')].map((e) => e.textContent + e.ariaSort) +
	document.querySelector('tr.sel .pin')?.dataset.k + [...document.querySelectorAll('#stats .pin')].map((e) => e.dataset.k) + document.querySelector('#pause').textContent + location.search`

// TestZeroPoint sets a zero point and expects exact changes, beyond 2^53, over another
// order, a reload and a reset of the counters; pins, hidden columns and pausing.
func TestZeroPoint(t *testing.T) {
	t.Parallel()
	d := start(t)
	lines(t, d, "z.a:9007199254740990|c\nz.a:3|c\nz.b:5|c\nz.g:7|g\nz.h:3|ms")
	d.Wait("z.h", func(s daemon.Stats) bool { return strings.Contains(s["z.h"], "P0") })
	p := open(t)
	p.ready(base(d) + "/ui/stats?filter=^z[.]")
	p.until("document.documentElement.dataset.order && " + cell("delta", "z.a") + "?.textContent === '0'")
	p.do(chromedp.Evaluate[chromedp.Void]("window.same = true"))
	lines(t, d, "z.a:2|c")
	p.until(cell("delta", "z.a") + ".textContent === '+2'")
	p.key("z")
	p.until("document.querySelector('#since') && new URLSearchParams(location.search).get('zero')")
	lines(t, d, "z.a:9007199254740990|c\nz.a:5|c\nz.b:1|c\nz.g:-4|g\nz.g:-9|g")
	want := new(big.Int).SetUint64(9007199254740995)
	p.until(cell("delta", "z.a") + ".textContent === '+9,007,199,254,740,995' && " + cell("delta", "z.b") + ".textContent === '+1' && " + cell("delta", "z.g") + ".textContent === '\u221213'")
	exact := `.closest('td').dataset.value`
	if got := eval[string](p, cell("delta", "z.a")+exact); got != want.String() {
		t.Errorf("the exact change is %s, want %s", got, want)
	}
	if got := eval[string](p, cell("stat", "z.a")+exact); got != "18014398509481990" {
		t.Errorf("the exact value is %s", got)
	}
	d.Wait("a flush", func(s daemon.Stats) bool { return s["z.b"] == "6" })
	// By change, with the keyboard: the fifth column. The values at the zero point stay.
	p.key("5")
	p.until("location.search.includes('sort=delta') && " + names + " === 'z.a z.b z.h z.g'")
	if !eval[bool](p, "window.same") || eval[string](p, cell("delta", "z.a")+".textContent") != "+9,007,199,254,740,995" {
		t.Error("the order by change loses the zero point")
	}
	p.key("5")
	p.until(names + " === 'z.g z.h z.b z.a'")
	p.do(chromedp.Reload())
	p.until("document.documentElement.dataset.order && " + cell("delta", "z.a") + "?.textContent === '+9,007,199,254,740,995'")
	p.do(chromedp.Evaluate[chromedp.Void](`window.rates = []; new MutationObserver(() => rates.push(...[...document.querySelectorAll('[data-rate]')].map((e) => e.textContent))).observe(document.getElementById('main'), {subtree: true, childList: true, characterData: true})`))
	d.Post("/reset_counters")
	lines(t, d, "z.b:2|c")
	p.until(cell("stat", "z.b") + ".textContent === '2' && " + cell("delta", "z.b") + ".textContent === '+2'")
	if rates := eval[string](p, "rates.join(' ')"); rates == "" || strings.ContainsAny(rates, "-\u2212") {
		t.Errorf("after a reset the rates are %q", rates)
	}
	// A pin stays on top whatever the filter; the address has it. Rows move after the reset.
	p.click(`#stats tr:has([data-stat="z.g"]) .pin`)
	p.until("document.querySelector('#stats tr.pinned [data-stat=\"z.g\"]')")
	p.ready(base(d) + "/ui/stats?filter=server.live&pins=z.g%0Aabsent&hide=type.trend")
	if got := eval[[]string](p, `[...document.querySelectorAll('#stats tr.pinned a:not(.pin)')].map((a) => a.textContent)`); !slices.Equal(got, []string{"z.g", "absent"}) {
		t.Errorf("the pins are %q", got)
	}
	if got := eval[string](p, `[...document.querySelectorAll('#stats thead th')].map((e) => e.textContent.trim()).join()`); got != "Name\u00A0↑,Value,Per second,Change,Changed" {
		t.Errorf("the columns are %s", got)
	}
	p.press("#columns summary")
	p.press(`[data-k="column-type"]`)
	p.until("document.querySelector('#stats thead .type') && document.querySelector('#columns').open && location.search.endsWith('hide=trend')")
	p.key(kb.Escape)
}

// TestResetBeforeTheStream resets a counter between the page and the first event of its
// stream, which then has less than the page.
func TestResetBeforeTheStream(t *testing.T) {
	t.Parallel()
	d := start(t)
	lines(t, d, "unseen:7|c")
	d.Wait("unseen", func(s daemon.Stats) bool { return s["unseen"] == "7" })
	f := newFaults(t, d)
	f.deltas = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("content-type", "text/event-stream")
		fmt.Fprintf(w, "event: delta\ndata: {\"v\":1,\"seq\":1,\"t\":%d,\"interval_ms\":0,\"new\":[[0,\"counter\",\"unseen\",0]],\"rows\":[[0,2,0]]}\n\n", time.Now().UnixMilli())
		_ = http.NewResponseController(w).Flush() // the client may be gone
		<-r.Context().Done()
	}
	p := open(t)
	p.ready(f.URL + "/ui/stats?filter=^unseen")
	p.until(cell("stat", "unseen") + ".textContent === '2' && " + cell("delta", "unseen") + ".textContent === '+2'")
}

// TestOrderIsFrozen sorts by value, both ways, and expects that rows do not move while
// the focus or the pointer is among them, or after something was typed, but on request.
// The offer to sort them has a place at all widths, so that it moves nothing either.
func TestOrderIsFrozen(t *testing.T) {
	t.Parallel()
	d := start(t)
	lines(t, d, "o.a:3|c\no.b:2|c\no.c:1|c")
	d.Wait("o.c", func(s daemon.Stats) bool { return s["o.c"] == "1" })
	p := open(t)
	p.ready(base(d) + "/ui/stats?filter=^o[.]")
	p.until("document.documentElement.dataset.order")
	p.do(chromedp.Evaluate[chromedp.Void]("window.same = true"))
	for i, want := range []string{"o.a o.b o.c", "o.c o.b o.a", "o.a o.b o.c"} {
		p.key("3")
		p.until(names + " === " + quoted(want) + " && document.querySelector('#stats [data-k=\"sort-value\"]').closest('th').ariaSort === " + quoted([]string{"descending", "ascending"}[i%2]))
	}
	p.key("j")
	p.until(`document.activeElement.closest('tr').classList.contains('sel') && location.search.includes('sel=o.a')`)
	lines(t, d, "o.c:10|c")
	p.until("!document.querySelector('#fresh').hidden && document.querySelector('#fresh button').textContent === 'Re-sort now'")
	if got := eval[string](p, names); got != "o.a o.b o.c" {
		t.Errorf("while the focus is among them the rows are %s", got)
	}
	p.do(chromedp.Evaluate[chromedp.Void]("window.waits = []; window.setTimeout = ((wait) => (f, ms) => { if (ms >= 2000) { waits.push(ms); } return wait(f, ms); })(setTimeout)"))
	p.until("waits.length > 0")
	if got := eval[float64](p, "Math.min(...waits)"); got < 5000 {
		t.Errorf("the offer can change after %v ms: screen readers read each change", got)
	}
	for _, width := range []int64{320, 390, 720, 721, 1280, 2560} {
		p.medium(width, 1)
		if got := eval[string](p, `(() => {
			const offer = document.getElementById('fresh');
			const places = () => JSON.stringify([...document.querySelectorAll('#results .head > :not(.place), #stats th, #stats td')].map((e) => e.getBoundingClientRect()));
			const shown = places();
			const [box, place] = [offer.lastElementChild, offer.parentElement].map((e) => e.getBoundingClientRect());
			const covered = [...document.querySelectorAll('#results h2, #results .head a, #stats th')].map((e) => e.getBoundingClientRect()).some((r) => r.width > 1 && r.left < place.right && r.right > place.left && r.top < place.bottom && r.bottom > place.top);
			offer.hidden = true;
			const same = places() === shown;
			offer.hidden = false;
			return [!same && 'moves the table', covered && 'covers something', box.right > place.right + 1 && 'does not fit'].filter(Boolean).join();
		})()`); got != "" {
			t.Errorf("at %d px the offer to sort %s", width, got)
		}
	}
	p.medium(1200, 1)
	p.press("#fresh button")
	p.until(names + " === 'o.c o.a o.b' && document.querySelector('tr.sel [data-stat=\"o.a\"]')")
	x, y := 0.0, 0.0
	_, err := fmt.Sscan(eval[string](p, "{ const r = document.querySelector('#stats tbody td').getBoundingClientRect(); `${r.x + 5} ${r.y + 5}` }"), &x, &y)
	p.must("the place of a row", err)
	p.do(chromedp.Evaluate[chromedp.Void]("document.activeElement.blur()"), chromedp.MouseEvent("mouseMoved", x, y))
	lines(t, d, "o.a:20|c")
	p.until("!document.querySelector('#fresh').hidden && " + names + " === 'o.c o.a o.b'")
	p.press("#fresh button")
	p.until(names + " === 'o.a o.c o.b'")
	// Without focus or pointer they move by themselves, as the same elements.
	p.do(chromedp.Evaluate[chromedp.Void](`document.activeElement.blur(); document.querySelector('tr:has([data-stat="o.b"])').kept = true`))
	lines(t, d, "o.b:50|c")
	p.until(names + ` === 'o.b o.a o.c' && document.querySelector('#stats tbody tr').kept`)
	lines(t, d, "o.d:1|c\no.e:1|c")
	empty := open(t)
	empty.ready(base(d) + "/ui/stats?filter=^late[.]")
	p.until("document.querySelector('#fresh p').textContent === '2 new matches'")
	p.press("#fresh button")
	p.until(names + " === 'o.b o.a o.c o.d o.e' && window.same")
	p.do(chromedp.Evaluate[chromedp.Void]("window.typing = setInterval(() => document.dispatchEvent(new Event('input')), 100)"))
	lines(t, d, "o.e:100|c")
	p.until("!document.querySelector('#fresh').hidden && " + names + " === 'o.b o.a o.c o.d o.e'")
	p.press("#fresh button")
	p.until(names + " === 'o.e o.b o.a o.c o.d'")
	// A view without stats finds the first ones, and then they move.
	lines(t, d, "late.a:1|c\nlate.b:2|c")
	empty.until("document.querySelector('#fresh p').textContent === '2 new matches'")
	empty.press("#fresh button")
	empty.until(names + " === 'late.a late.b'")
	lines(t, d, "late.a:1|c")
	empty.until(cell("stat", "late.a") + ".textContent === '2'")
}

// TestStatsAddress goes through views of the stats page by typing and clicking, and
// expects the same views from the address, and from the history of the browser.
func TestStatsAddress(t *testing.T) {
	t.Parallel()
	d := start(t)
	var text strings.Builder
	for i := range 230 {
		fmt.Fprintf(&text, "many.%03d:%d|c\n", i, i)
	}
	lines(t, d, "%s", text.String())
	d.Wait("many.229", func(s daemon.Stats) bool { return s["many.229"] == "229" })
	p := open(t)
	p.ready(base(d) + "/ui/stats")
	p.until("document.documentElement.dataset.order")
	p.do(chromedp.Evaluate[chromedp.Void]("window.same = true"))
	var views []string
	note := func(condition string) {
		t.Helper()
		p.until(condition + " && window.same && !document.querySelector('[aria-busy]')")
		views = append(views, eval[string](p, view))
	}
	note("true")
	p.key("/")
	p.until("document.activeElement.name === 'filter'")
	// The driver types the key, too. Deleted at once, it makes no entry of the history, and
	// the text typed after it makes one.
	eval[bool](p, `new Promise((done) => {
		document.activeElement.value = '';
		document.activeElement.dispatchEvent(new Event('input', {bubbles: true}));
		setTimeout(done, 200, true);
	})`)
	p.key("many")
	p.key(kb.Escape)
	note("document.querySelector('#validity').textContent.includes('230 of ')")
	p.press(`#stats [data-k="sort-value"]`)
	note("document.querySelector('#stats tbody a:not(.pin)').textContent === 'many.229'")
	p.press(`a[rel="next"]`)
	note("document.querySelector('.pager').textContent.includes('101 to 200')")
	p.key("j")
	p.key("j")
	p.until("location.search.includes('sel=many.128')")
	views[len(views)-1] = eval[string](p, view)
	// The driver would scroll the page, too.
	p.do(chromedp.Evaluate[chromedp.Void]("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: ' ', bubbles: true}))"))
	note("document.querySelector('tr.pinned') && location.search.includes('sel=') && document.activeElement.textContent === 'many.128'")
	p.press(`.chip:has([name="nonzero"])`)
	note("document.querySelector('#results').dataset.total === '229'")
	p.press("#pause")
	p.until("location.search.includes('pause=1')")
	views[len(views)-1] = eval[string](p, view)
	for i := len(views) - 2; i >= 0; i-- {
		p.do(chromedp.Evaluate[chromedp.Void]("setTimeout(() => history.back())"))
		p.until(view + " === " + quoted(views[i]))
	}
	for i := 1; i < len(views); i++ {
		p.do(chromedp.Evaluate[chromedp.Void]("setTimeout(() => history.forward())"))
		p.until(view + " === " + quoted(views[i]))
	}
	if !eval[bool](p, "window.same") {
		t.Error("the page was loaded again")
	}
	// A colleague opens the address.
	address := eval[string](p, "location.href")
	other := open(t)
	other.ready(address)
	other.until(view + " === " + quoted(views[len(views)-1]))
	// Copy gives the bytes of the TSV, and the shown request the same.
	p.do(chromedp.Evaluate[chromedp.Void](`Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (x) => { window.copied = x; }}})`))
	p.press(`#results [data-copy]`)
	p.until("window.copied")
	p.press(`#results .req summary`)
	command := eval[string](p, "document.querySelector('#results .req code').textContent")
	path, ok := strings.CutPrefix(strings.TrimSuffix(command, "'"), "curl -s '"+base(d))
	if !ok {
		t.Fatalf("the request is %s", command)
	}
	tsv := d.Get(path)
	if got := eval[string](p, "window.copied"); got != tsv {
		t.Errorf("copied:\n%.300s\nthe request gives:\n%.300s", got, tsv)
	}
	shown := eval[string](p, `[...document.querySelectorAll('#stats tbody tr')].map((row) => [row.querySelector('a:not(.pin)').textContent, row.querySelector('[data-stat]').closest('td').dataset.value].join('\t')).join('\n')`)
	var exported []string
	for _, line := range strings.Split(strings.TrimSpace(tsv), "\n")[1:] {
		cells := strings.Split(line, "\t")
		exported = append(exported, cells[0]+"\t"+cells[2])
	}
	if got := strings.Join(exported, "\n"); got != shown {
		t.Errorf("exported:\n%.300s\nshown:\n%.300s", got, shown)
	}
}

// TestLinesOfZero sees no line of a gauge that is always zero, as the server draws none,
// and on a phone no unit of the rate that a gauge has not.
func TestLinesOfZero(t *testing.T) {
	t.Parallel()
	d := start(t)
	lines(t, d, "zero:0|g\nhalf:1|g")
	d.Wait("the lines", func(s daemon.Stats) bool { return s["half"] == "1" })
	p := open(t)
	p.ready(base(d) + "/ui/stats?filter=^(zero|half)$")
	const trend = `(name) => document.querySelector('tr:has([data-stat="' + name + '"]) [data-spark]')`
	// The line of the other gauge is longer with each interval.
	p.do(chromedp.Evaluate[chromedp.Void](`window.lines = new Set(); new MutationObserver(() => { const points = (` + trend + `)('half').querySelector('polyline')?.getAttribute('points'); if (points) { lines.add(points.split(' ').length); } }).observe(document.getElementById('main'), {subtree: true, childList: true, attributes: true})`))
	p.until("window.lines.size > 2")
	if got := eval[string](p, `(`+trend+`)('zero').innerHTML`); got != "" {
		t.Errorf("the line of zeros is %s", got)
	}
	p.medium(390, 1)
	if got := eval[string](p, `getComputedStyle(document.querySelector('[data-rate][data-value=""]'), '::after').content`); got != "none" {
		t.Errorf("a gauge has no rate, but the unit %s", got)
	}
}
