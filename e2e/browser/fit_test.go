package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

// TestTablesFit expects the tables of all pages to need no sideways scrolling on a
// tablet and on a laptop, also just above and below the widths at which their layout
// changes, and times on a tablet not to make rows of the explorer high. On a phone it expects the cells of cards not to reach into each other, and the
// home page to be short.
func TestTablesFit(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Config{YAML: strings.Replace(usual, "type: STATIC\n", "type: STATIC\n    health_checks: [{timeout: 1s, interval: 1s, no_traffic_interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]\n", 1)})
	send(t, d, func(lines *strings.Builder) {
		for i := range 40 {
			fmt.Fprintf(lines, "shop.checkout.latency:%d|ms\nshop.page.view:1000|c|#site:de\nshop.checkout.queue_depth:%d|g\nbroken line\n", 10+i*i, i)
		}
		lines.WriteString("shop.last:1|c\n")
	})
	d.Wait("the lines", func(s daemon.Stats) bool { return s["shop.last"] == "1" })
	d.Post("/logging?main=debug")
	p := open(t)
	d.Until("the failed health check", func() bool { return strings.Contains(d.Get("/clusters"), "/failed_active_hc") })
	for _, path := range append(slices.Clone(livePages), "/ui/stats?filter=shop", "/ui/clusters?cluster=backend", "/ui/histograms?name=shop.checkout.latency", "/ui/explorer?prefix=shop.") {
		p.ready(base(d) + path)
		for _, width := range []int64{1280, 1153, 1152, 1057, 1056, 897, 768} {
			p.medium(width, 1)
			const wide = `[...document.querySelectorAll('.scroll:has(table)')].filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.querySelector('table').id + ' needs ' + e.scrollWidth + ' of ' + e.clientWidth + ': ' + [...e.querySelectorAll('thead th')].map((h) => h.offsetWidth))`
			for _, flaw := range eval[[]string](p, wide) {
				t.Errorf("%s at %d: %s", path, width, flaw)
			}
		}
	}
	p.ready(base(d) + "/ui/explorer")
	if got := eval[float64](p, `Math.max(...[...document.querySelectorAll('#groups tbody tr')].map((e) => e.offsetHeight))`); got > 60 {
		t.Errorf("a row of the explorer has %v px on a tablet", got)
	}
	p.medium(320, 2)
	p.ready(base(d) + "/ui/clusters")
	if got := eval[[]float64](p, `[...document.querySelectorAll('#clusters td')].map((e) => e.scrollWidth - e.clientWidth)`); slices.Max(got) > 0 {
		t.Errorf("the cells of the cards of clusters reach %v px into the next ones", got)
	}
	p.visit(base(d) + "/")
	rows := eval[[]int](p, "[...document.querySelectorAll('.command')].map((e) => e.offsetHeight)")
	if height := eval[float64](p, "document.documentElement.scrollHeight"); height > float64(64*len(rows)+500) {
		t.Errorf("the home page has %v px for %d commands: %v", height, len(rows), rows)
	} else {
		t.Logf("the home page has %v px for %d commands", height, len(rows))
	}
}

// TestEdgesLineUp expects the header over the content, key figures without a gap at the
// end, the check boxes of loggers in line with their names, and the heads of a table on
// one line, whether they sort or not.
func TestEdgesLineUp(t *testing.T) {
	t.Parallel()
	d := start(t)
	p := open(t)
	for _, width := range []int64{390, 1024, 1280, 2560} {
		p.medium(width, 1)
		p.ready(base(d) + "/ui/")
		if got := eval[[]float64](p, `((f) => [f('.brand').left - f('h1').left, f('.tools').right - f('.kpis').right, f('.kpis div:last-child').right - f('.kpis').right])((s) => document.querySelector(s).getBoundingClientRect())`); slices.Max(got) > 2 || slices.Min(got) < -2 {
			t.Errorf("at %d the brand, the tools and the last figure are %v px off", width, got)
		}
		p.ready(base(d) + "/ui/logging")
		if got := eval[[]float64](p, `((f) => [...document.querySelectorAll('#loggers tbody tr')].map((e) => f(e.querySelector('input')) - f(e.querySelector('code'))))((e) => { const r = e.getBoundingClientRect(); return (r.top + r.bottom) / 2; })`); len(got) == 0 || slices.Max(got) > 1.5 || slices.Min(got) < -1.5 {
			t.Errorf("at %d the check boxes are %v px off their names", width, got)
		}
		if width < 720 {
			continue // links above cards, in as many lines as they need
		}
		for _, path := range []string{"/ui/explorer", "/ui/stats"} {
			p.ready(base(d) + path)
			if got := eval[[]float64](p, `[...document.querySelector('.cards').querySelectorAll('thead th')].map((e) => { const r = document.createRange(); r.selectNodeContents(e.querySelector('a') ?? e); return r.getBoundingClientRect().bottom; })`); slices.Max(got)-slices.Min(got) > .5 {
				t.Errorf("%s at %d: the heads end at %v px", path, width, got)
			}
		}
	}
}

// TestPhoneHasRoom expects of a phone: the times under a line do not touch each other, the
// name of a logger with a temporary level stays on one line, a filter and its buttons take
// two lines, cards have no values that are missing and links that sort them, and the present page stays in view in
// the navigation when the window gets that narrow, and the tree of a chosen resource comes
// before the list of all.
func TestPhoneHasRoom(t *testing.T) {
	t.Parallel()
	d := start(t)
	send(t, d, func(lines *strings.Builder) { lines.WriteString("phone.hits:1|c\n") })
	d.Wait("the line", func(s daemon.Stats) bool { return s["phone.hits"] == "1" })
	p := open(t)
	p.medium(320, 2)
	p.ready(base(d) + "/ui/stat?name=phone.hits")
	p.until("[...document.querySelectorAll('#plot text')].filter((e) => / ago$/.test(e.textContent)).length >= 4")
	if got := eval[[]string](p, `(() => { const list = [...document.querySelectorAll('#plot text:not(.start)')].map((e) => [e.getBoundingClientRect(), e.textContent]).filter(([r]) => r.width > 0).sort(([a], [b]) => a.left - b.left); return list.filter(([r], i) => i > 0 && r.left < list[i - 1][0].right + 4).map(([, text]) => text); })()`); len(got) > 0 {
		t.Errorf("%q touch the times before them", got)
	}
	d.Post("/logging?admin=trace&ttl=10m")
	p.ready(base(d) + "/ui/logging")
	if got := eval[float64](p, `[...document.querySelectorAll('#loggers th')].find((e) => e.innerText.endsWith('admin')).querySelector('code').getBoundingClientRect().height`); got > 20 {
		t.Errorf("the name of a logger has %v px", got)
	}
	for _, path := range []string{"/ui/stats", "/ui/explorer"} {
		p.ready(base(d) + path)
		if got := eval[[]float64](p, `((list) => list.map((e) => e.getBoundingClientRect().bottom - list[0].getBoundingClientRect().bottom))([...document.querySelectorAll('main form .seg, main form .primary')])`); len(got) != 2 || got[1] > 2 || got[1] < -2 {
			t.Errorf("%s: the buttons of the filter are %v px apart", path, got)
		}
	}
	p.ready(base(d) + "/ui/listeners")
	if got := eval[string](p, `[...new Set([...document.querySelectorAll('#listeners td')].filter((e) => e.checkVisibility()).map((e) => e.dataset.l))].join()`); got != "Addresses,Protocol,Direction,State,Connections,Per second" {
		t.Errorf("the cards of listeners have %s", got)
	}
	for _, path := range []string{"/ui/stats", "/ui/clusters", "/ui/explorer", "/ui/listeners"} {
		p.ready(base(d) + path)
		if got := eval[[]string](p, `[...document.querySelectorAll('.cards > thead th:not(.spare)')].filter((e) => e.checkVisibility() !== (e.querySelector('a') !== null)).map((e) => e.textContent)`); len(got) > 0 {
			t.Errorf("%s: cards are not sorted by links alone: %q", path, got)
		}
	}
	p.ready(base(d) + "/ui/clusters")
	p.press("#clusters [data-k=sort-name]")
	p.until("document.querySelector('#clusters [data-k=sort-name]')?.closest('th').ariaSort === 'ascending'")
	const tops = `((f) => f('#dump') < f('.names'))((s) => document.querySelector(s).getBoundingClientRect().top)`
	for path, first := range map[string]bool{"/ui/config": false, "/ui/config?resource=static_clusters&name=backend": true} {
		p.ready(base(d) + path)
		if eval[bool](p, tops) != first {
			t.Errorf("%s: the tree is before the list: %v", path, !first)
		}
	}
	p.medium(1280, 1)
	p.ready(base(d) + "/ui/server")
	p.medium(390, 1)
	p.until(`((e) => e.left >= 0 && e.right <= innerWidth)(document.querySelector('nav [aria-current]').getBoundingClientRect())`)
}

// TestChosenInView expects the chosen histogram in view in the list of a phone, also after
// the page was rendered again, and values near their names on a wide screen.
func TestChosenInView(t *testing.T) {
	t.Parallel()
	d := start(t)
	send(t, d, func(lines *strings.Builder) {
		for _, name := range []string{"a", "b", "c", "d", "z"} {
			fmt.Fprintf(lines, "many.%s:1|ms\n", name)
		}
		lines.WriteString("many.last:1|c\n")
	})
	d.Wait("the lines", func(s daemon.Stats) bool { return s["many.last"] == "1" })
	d.Until("the histograms in the list", func() bool { return strings.Contains(d.Get("/ui/histograms?filter=^many"), "name=many.z") })
	p := open(t)
	for _, width := range []int64{320, 390, 720} {
		p.medium(width, 1)
		p.ready(base(d) + "/ui/histograms?filter=^many&name=many.z")
		p.do(chromedp.Evaluate[chromedp.Void](`window.again = false; document.addEventListener('replaced', () => { window.again = true; }); document.querySelector('#refresh').value = '1'; document.querySelector('#refresh').dispatchEvent(new Event('change'))`))
		for _, when := range []string{"at first", "after a refresh"} {
			if !eval[bool](p, `{ const [r, l] = ['.pick [aria-current]', '.pick ul'].map((s) => document.querySelector(s).getBoundingClientRect()); r.left >= l.left && r.right <= l.right + 1 }`) {
				t.Errorf("at %d px the chosen histogram is not in view %s", width, when)
			}
			p.until("window.again")
		}
	}
	p.medium(2560, 1)
	p.ready(base(d) + "/ui/server")
	if far := eval[[]string](p, `[...document.querySelectorAll('.pairs dt')].filter((e) => e.nextElementSibling.getBoundingClientRect().right - e.getBoundingClientRect().left > 720).map((e) => e.textContent)`); len(far) > 0 {
		t.Errorf("the values of %q are far from them", far)
	}
}

// TestHeaderStaysInPlace lets the uptime of the server grow: the header shows it, and
// nothing in it moves.
func TestHeaderStaysInPlace(t *testing.T) {
	t.Parallel()
	d := start(t)
	p := open(t)
	p.ready(base(d) + "/ui/")
	p.do(chromedp.Evaluate[chromedp.Void](`window.up = '9s'; window.fetch = ((fetch) => async (u, o) => {
		const r = await fetch(u, o);
		return new Response((await r.text()).replace(/("uptime_current_epoch": *")[^"]*/, '$1' + window.up), {headers: r.headers});
	})(window.fetch)`))
	const places = `JSON.stringify([...document.querySelectorAll('header, header *, nav')].map((e) => { const b = e.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; }))`
	for _, width := range []int64{1280, 768, 390, 320} {
		p.medium(width, 1)
		before := ""
		for _, x := range [][3]string{{"9s", "9 s", "9"}, {"10s", "10 s", "10"}, {"3599s", "59 min 59 s", "3599"}, {"86399s", "23 h 59 min", "86399"}, {"8600000s", "99 d 12 h", "8600000"}} {
			p.do(chromedp.Evaluate[chromedp.Void]("window.up = " + quoted(x[0]) + "; window.dispatchEvent(new Event('focus'))"))
			p.until(fmt.Sprintf("[...document.querySelectorAll('[data-uptime]')].every((e) => e.textContent === %q && e.dataset.value === %q) && document.querySelectorAll('[data-uptime]').length === 2", x[1], x[2]))
			now := eval[string](p, places)
			if before != "" && now != before {
				t.Errorf("at %d px and %s the header is at %s, before at %s", width, x[1], now, before)
			}
			before = now
		}
	}
}
