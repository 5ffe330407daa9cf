package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

// TestRandomViews uses the controls of the stats page at random. The address of each
// view shows the same view again.
func TestRandomViews(t *testing.T) {
	t.Parallel()
	d := start(t)
	var text strings.Builder
	for i := range 400 {
		fmt.Fprintf(&text, "view.a%d.%03d:%d|%s\n", i%3, i, i%5, []string{"c", "g", "ms"}[i%3])
	}
	lines(t, d, "%sview.last:1|c", text.String())
	d.Wait("the stats", func(s daemon.Stats) bool { return s["view.last"] == "1" })
	d.Until("rates of zero", func() bool {
		return strings.Contains(d.Get("/ui/stats?filter=^view[.]last$&tsv=stats"), "view.last\tcounter\t1\t0\t\t2")
	})
	random := random(t)
	p := open(t)
	p.ready(base(d) + "/ui/stats?filter=^view")
	p.until("document.documentElement.dataset.order")
	settled := func() { t.Helper(); p.until("!document.querySelector('[aria-busy]')") }
	seen := map[string]bool{}
	any := func(list ...string) string { return list[random.IntN(len(list))] }
	for range 50 {
		for range 1 + random.IntN(3) {
			selector := any(`.chips [name="type"]`, `.chips [type="checkbox"]`, `[name="re"]`, `#stats thead a`, `#columns ul a`, `#stats .pin`, `.pager a`, "#pause", "#zero", "filter", "rows", "refresh", "sel")
			// Elements are clicked without the pointer, which would keep rows in place.
			script := fmt.Sprintf(`{ const list = [...document.querySelectorAll(%q)]; list[%d %% list.length]?.click(); }`, selector, random.IntN(1000))
			choose := `{ const f = document.querySelector('%s'); f.value = %q; f.dispatchEvent(new Event('%s', {bubbles: true})); }`
			switch selector {
			case "filter":
				script = fmt.Sprintf(choose, `input[name="filter"]`, any("^view", "view[.]a1", "^view.*0$", "nothing", "ü+&?#%"), "input")
			case "rows":
				script = fmt.Sprintf(choose, `select[name="rows"]`, any("100", "250", "500"), "input")
			case "refresh":
				script = fmt.Sprintf(choose, "#refresh", any("", "5", "10", "30"), "change")
			case "sel":
				script = fmt.Sprintf(`{ const list = [...document.querySelectorAll('#stats tbody a:not(.pin)')]; list[%d %% list.length]?.focus(); document.activeElement.blur(); }`, random.IntN(1000))
			}
			p.do(chromedp.Evaluate[chromedp.Void](script))
			if selector == "filter" {
				p.until("(new URLSearchParams(location.search).get('filter') ?? '') === document.querySelector('input[name=\"filter\"]').value")
			}
			eval[bool](p, "new Promise((done) => { setTimeout(done, 0, true); })") // a choice takes effect in a task of its own
			p.until("[...document.querySelectorAll('.chips [type=\"checkbox\"]')].every((c) => new URLSearchParams(location.search).has(c.name) === c.checked)")
			settled()
		}
		before, address := eval[string](p, view), eval[string](p, "location.href")
		seen[address] = true
		p.ready(address)
		p.until("document.documentElement.dataset.live !== undefined || !document.querySelector('[data-stream-filter]')")
		if after := eval[string](p, view); after != before {
			t.Errorf("%s: the view was\n%s\nand is\n%s", address, before, after)
		}
	}
	if len(seen) < 30 {
		t.Errorf("only %d views", len(seen))
	}
}
