package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// TestHostsUnfold unfolds the hosts of a cluster below its row, with and without scripts:
// the address says so, the focus and the filter stay, and the form keeps the unfolded clusters.
func TestHostsUnfold(t *testing.T) {
	t.Parallel()
	d := newMany(t, many{})
	p := open(t)
	p.ready(d.URL + "/ui/clusters?filter=0000[789]&sort=name")
	const row = `[data-k="fold-cluster-00008"]`
	hosts := func() string {
		return eval[string](p, `[...document.querySelectorAll('tr.hosts')].map((e) => e.previousElementSibling.querySelector('a.wrap').textContent + ' ' + e.querySelectorAll('table > tbody > tr').length).join()`)
	}
	p.do(chromedp.Evaluate[chromedp.Void]("window.same = true"))
	p.press(row)
	p.until(`document.querySelector('tr.hosts')`)
	if got := hosts(); got != "cluster-00008 10" {
		t.Errorf("unfolded: %q", got)
	}
	if got := eval[string](p, "location.search"); got != "?filter=0000%5B789%5D&sort=name&open=cluster-00008" || !eval[bool](p, "window.same") {
		t.Errorf("the address has %q, or the page was loaded again", got)
	}
	if !eval[bool](p, "document.activeElement.matches('"+row+"[aria-expanded=true]')") {
		t.Errorf("the focus is on %s", eval[string](p, "document.activeElement.outerHTML"))
	}
	p.press(`[data-k="fold-cluster-00007"]`)
	p.until(`document.querySelectorAll('tr.hosts').length === 2`)
	p.press(row)
	p.until(`document.querySelectorAll('tr.hosts').length === 1`)
	if got := hosts(); got != "cluster-00007 10" {
		t.Errorf("after folding one: %q", got)
	}

	_, err := chromedp.Call(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	p.must("switching scripts off", err)
	p.visit(d.URL + "/ui/clusters?filter=0000[789]")
	for _, name := range []string{"cluster-00008", "cluster-00009"} {
		p.press(`[data-k="fold-` + name + `"]`)
		p.until(`document.querySelector('[data-k="fold-` + name + `"][aria-expanded=true]')`)
	}
	p.press(`form.panel button`)
	p.until(`location.search.includes('%0D%0A')`)
	p.until(`document.readyState === 'complete' && document.querySelectorAll('tr.hosts').length === 2`)
	if got := hosts(); got != "cluster-00008 10,cluster-00009 10" {
		t.Errorf("after the form: %q", got)
	}
}

// TestLinksKeepWhatScriptsSet: links that were rendered before a script paused a page, or
// set its interval, keep both.
func TestLinksKeepWhatScriptsSet(t *testing.T) {
	t.Parallel()
	d := start(t)
	p := open(t)
	for path, set := range map[string]string{"/ui/clusters": "every", "/ui/certs": "every", "/ui/audit": "every", "/ui/circuits": "pause"} {
		p.ready(base(d) + path)
		if set == "pause" {
			p.do(chromedp.Evaluate[chromedp.Void]("history.replaceState(null, '', '?pause=1')"))
		} else {
			p.do(chromedp.SetValue("#refresh", "30"), chromedp.Evaluate[chromedp.Void]("document.getElementById('refresh').dispatchEvent(new Event('change'))"))
		}
		before := eval[string](p, "location.search")
		if !strings.Contains(before, set+"=") || !eval[bool](p, "!!document.querySelector('#content a[href*=\"sort=name\"]')") {
			continue
		}
		p.press(`#content a[href*="sort=name"]`)
		p.until("document.documentElement.dataset.ready && location.search.includes('sort=name')")
		if got := eval[string](p, "location.search"); !strings.Contains(got, strings.TrimPrefix(before, "?")) {
			t.Errorf("%s: after a link, %q has become %q", path, before, got)
		}
	}
}
