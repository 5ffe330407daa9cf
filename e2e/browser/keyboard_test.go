package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

// tabTo presses Tab, or Shift and Tab, until an element has the focus.
func (p *tab) tabTo(selector string) {
	p.t.Helper()
	for range 150 {
		switch eval[float64](p, "document.activeElement.matches("+quoted(selector)+") ? 0 : document.activeElement.compareDocumentPosition(document.querySelector("+quoted(selector)+")) & Node.DOCUMENT_POSITION_PRECEDING ? -1 : 1") {
		case 0:
			return
		case 1:
			p.key(kb.Tab)
		case -1:
			p.do(chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(chromedp.ModifierShift)))
		}
	}
	p.t.Fatalf("Tab does not reach %s", selector)
}

// TestKeyboardTasks does what people do on the pages with keys alone.
func TestKeyboardTasks(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Config{YAML: fmt.Sprintf(settable, "")})
	var text strings.Builder
	for i := range 130 {
		fmt.Fprintf(&text, "task.%03d:%d|c\n", i, i)
	}
	lines(t, d, "%stasks.ms:12|ms\ntasks.ms:90|ms\ntask.last:1|c", text.String())
	d.Wait("the stats", func(s daemon.Stats) bool {
		return s["task.last"] == "1" && strings.Contains(s["tasks.ms"], "P100(90,90)")
	})
	p := open(t)
	_, err := chromedp.Call(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (x) => { window.copied = x; }}}); if (location.host) sessionStorage[location.pathname] = Number(sessionStorage[location.pathname] ?? 0) + 1`})
	p.must("the script", err)
	p.ready(base(d) + "/ui/")
	at := func(path string) string {
		return "location.pathname === " + quoted(path) + " && document.documentElement.dataset.ready"
	}
	first := `document.querySelector('#stats tbody tr:not(.pinned) a:not(.pin)').textContent`
	for _, task := range []struct {
		name, focus, keys, want string
	}{
		{"open the stats", "", "gs", at("/ui/stats") + " && document.documentElement.dataset.order"},
		{"filter them", "", "/", "document.activeElement.name === 'filter'"},
		{"type a filter", "", "^task.", first + ".startsWith('task.') && document.querySelector('#results').dataset.total === '132' && " + filtered},
		{"leave the field", "", kb.Escape, "document.activeElement === document.body"},
		{"sort by value", "", "3", first + " === 'task.129'"},
		{"reverse the order", "", "3", first + " === 'task.000'"},
		{"next page", "", "]", "document.querySelector('.pager').textContent.includes('101 to 132')"},
		{"previous page", "", "[", "document.querySelector('.pager').textContent.includes('1 to 100')"},
		{"walk over the rows", "", "jj", "document.activeElement.textContent === 'task.001'"},
		{"with arrows", "", kb.ArrowDown, "document.activeElement.textContent === 'task.last'"},
		{"and back", "", kb.ArrowUp, "document.activeElement.textContent === 'task.001'"},
		{"walk back", "", "k", "document.activeElement.textContent === 'task.000'"},
		{"copy the row", "", "c", "window.copied?.startsWith('task.000\\tcounter\\t0\\t') && document.querySelector('#say').textContent === 'Copied task.000'"},
		{"pin the row", "", "space", "document.querySelector('tr.pinned')"},
		{"set the zero point", "", "z", "document.querySelector('#since')"},
		{"pause", "", "p", "document.querySelector('#pause').textContent === 'Go live'"},
		{"select nothing", "#stats tbody tr:not(.pinned) a:not(.pin)", kb.Escape, "document.activeElement === document.body && !document.querySelector('tr.sel') && !location.search.includes('sel=')"},
		{"open a row", "#stats tbody tr:not(.pinned) a:not(.pin)", kb.Enter, at("/ui/stat")},
		{"open the histograms", "", "gh", at("/ui/histograms")},
		{"walk over the buckets", "svg.plot[data-bins]", kb.End + kb.ArrowLeft + kb.ArrowRight, "document.querySelector('#bin').textContent.includes('From') && document.querySelectorAll('.bin.sel, #bins tr.sel').length === 2 && document.querySelector('#bins tbody tr:last-child').classList.contains('sel')"},
		{"open the explorer", "", "ge", at("/ui/explorer")},
		{"read it again", "", "n", at("/ui/explorer") + " && sessionStorage['/ui/explorer'] === '2'"},
		{"copy the table", "", "c", "window.copied?.includes('task.\\t131\\t')"},
		{"go into a prefix", "", "j" + kb.Enter, at("/ui/explorer") + " && location.search.includes('prefix=')"},
		{"open a cluster", "", "gc", at("/ui/clusters")},
		{"with its hosts", "", "j" + kb.Enter, "location.search.includes('cluster=backend') && document.documentElement.dataset.ready"},
		{"open the log levels", "", "go", at("/ui/logging")},
		{"change a level", "select[name=admin]", kb.ArrowDown, "document.querySelector('dialog')?.open"},
		{"and confirm", "dialog button[type=submit]", kb.Enter, "document.querySelector('#done')?.innerText.includes('admin info') && document.documentElement.dataset.ready"},
		{"open the runtime values", "", "gr", at("/ui/runtime")},
		{"name a value", "input[name=key]", "by.keys" + kb.Enter, "document.querySelector('#value') && document.documentElement.dataset.ready"},
		{"set it", "#value", "7" + kb.Enter, "document.querySelector('dialog')?.open"},
		{"confirm it", "dialog button[type=submit]", kb.Enter, "document.querySelector('#done')?.innerText.includes('by.keys (none) → 7') && document.documentElement.dataset.ready"},
		{"open the audit log", "", "ga", at("/ui/audit") + " && document.querySelector('main').innerText.includes('by.keys')"},
		{"undo the change", "form[action='../audit/undo'] button", kb.Enter, "document.querySelector('dialog')?.open"},
		{"and agree", "dialog button[type=submit]", kb.Enter, "document.querySelector('#done')?.innerText.includes('by.keys 7 → (none)') && document.documentElement.dataset.ready"},
		{"search the configuration", "", "gd", at("/ui/config")},
		{"open a certificate", "", "gt", at("/ui/certs")},
		{"let the page refresh", "#refresh", kb.ArrowDown, "location.search.includes('every=1')"},
		{"stop that", "", kb.Escape + "p", "!location.search.includes('every')"},
		{"drain, but not by accident", "", "gl", at("/ui/listeners")},
		{"ask for it", "form[action$=drain_listeners] button", kb.Enter, "document.activeElement.id === 'confirm-word'"},
		{"and leave", "", kb.Escape, "!document.querySelector('dialog')"},
		{"dark theme", "input[name=theme]:checked", kb.ArrowRight + kb.ArrowRight, "document.documentElement.dataset.theme === 'dark'"},
		{"read the keys", "", "?", "document.querySelector('dialog#help')?.open"},
		{"and close them", "", kb.Enter, "!document.querySelector('dialog')"},
	} {
		if task.focus != "" {
			p.tabTo(task.focus)
		}
		if task.keys == "space" { // the driver would scroll the page, too
			p.do(chromedp.Evaluate[chromedp.Void]("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: ' ', bubbles: true}))"))
		} else {
			p.key(task.keys)
		}
		if task.keys == "/" { // nor type the key
			p.do(chromedp.Evaluate[chromedp.Void]("document.activeElement.value = ''"))
		}
		t.Log(task.name)
		p.until(task.want)
	}
}

// TestRowsWithoutLinks walks over rows that no link names: the first control of each gets
// the focus, or the row if it has none.
func TestRowsWithoutLinks(t *testing.T) {
	t.Parallel()
	yaml := strings.NewReplacer(`{"disk.key": "10"}`, `{"disk.key": "10", "disk.last": "11"}`, "type: STATIC", `load_assignment: {cluster_name: backend, endpoints: [{lb_endpoints: [
  {endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}}}, {endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 2}}}}]}]}`)
	d := daemon.Start(t, daemon.Config{YAML: yaml.Replace(fmt.Sprintf(settable, ""))})
	p := open(t)
	const row = "[...document.querySelectorAll('main tbody tr')].indexOf(document.activeElement.closest('tr'))"
	for _, page := range []string{"runtime", "clusters?cluster=backend"} {
		p.ready(base(d) + "/ui/" + page)
		for keys, want := range map[string]string{"j": "0", "jj": "1", "jk": "0"} {
			p.do(chromedp.Evaluate[chromedp.Void]("document.activeElement.blur()"))
			p.key(keys)
			p.until(row + " === " + want)
		}
	}
}
