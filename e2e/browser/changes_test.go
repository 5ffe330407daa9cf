package browser

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

// settable is the configuration of a daemon with runtime layers.
const settable = `
node: {id: node-17, cluster: edge}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}, profile_path: $DIR/profile%s}
layered_runtime: {layers: [{name: base, static_layer: {"disk.key": "10"}}, {name: admin, admin_layer: {}}]}
static_resources: {clusters: [{name: backend, type: STATIC}]}
statsd: {listeners: [{name: udp, address: "udp://127.0.0.1:0"}, {name: tcp, address: "tcp://127.0.0.1:0"}]}
`

// confirm agrees to the open dialog and waits for the page with the change.
func (p *tab) confirm(change string) {
	p.t.Helper()
	p.until("document.querySelector('dialog')?.open")
	p.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('#done')?.remove()"))
	p.press("dialog button[type=submit]")
	p.until("document.querySelector('#done')?.innerText.includes(" + quoted(change) + ") && document.documentElement.dataset.ready")
}

// TestSpacesInForms submits filters with a space, which browsers send as a plus without
// the script, and one with a plus.
func TestSpacesInForms(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Config{YAML: fmt.Sprintf(settable, "")})
	p := open(t)
	for _, path := range []string{"runtime", "audit", "config"} {
		p.ready(base(d) + "/ui/" + path)
		p.do(chromedp.SendKeys(`input[name="filter"]`, "a b+c"+kb.Enter))
		p.until("location.search === '?filter=a%20b%2Bc' && document.querySelector('input[name=\"filter\"]')?.defaultValue === 'a b+c'")
	}
}

// TestRuntimeTasks adds a value, overrides a value of a lower layer and removes the
// override. A value of a layer below cannot be deleted.
func TestRuntimeTasks(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Config{YAML: fmt.Sprintf(settable, "")})
	p := open(t)
	p.ready(base(d) + "/ui/runtime")
	p.do(chromedp.SendKeys(`input[name="key"]`, "added.key"+kb.Enter))
	p.until("document.querySelector('#value') && document.documentElement.dataset.ready")
	p.do(chromedp.SendKeys("#value", "5"+kb.Enter))
	p.confirm("added.key (none) → 5")

	p.ready(base(d) + "/ui/runtime?key=disk.key")
	if text := p.text(); !strings.Contains(text, "It can be overridden, not deleted") || eval[bool](p, `document.querySelector('form:has(input[type="hidden"][name="disk.key"])') !== null`) {
		t.Errorf("the page offers to delete a value of a layer below: %s", text)
	}
	p.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('#value').select()"))
	p.do(chromedp.SendKeys("#value", "99"+kb.Enter))
	p.confirm("disk.key 10 → 99")
	if got := eval[string](p, "[...document.querySelectorAll('tr.changed th')].map((e) => e.innerText).join() + ' ' + getComputedStyle(document.querySelector('tr.changed')).animationName + ' ' + document.getElementById('say').textContent"); !strings.HasPrefix(got, "disk.key changed Done: ") || !strings.Contains(got, "10 → 99") {
		t.Errorf("the changed row and what is read out: %q", got)
	}
	p.medium(1280, 1, motion, "reduce")
	if got := eval[string](p, "getComputedStyle(document.querySelector('tr.changed')).animationName"); got != "none" {
		t.Errorf("with less motion the row has the animation %q", got)
	}
	p.ready(base(d) + "/ui/runtime?key=disk.key")
	p.until("document.activeElement.id === 'value' && document.activeElement.closest('#values')")
	p.key("5" + kb.Escape)
	p.until("!document.querySelector('#value') && !location.search.includes('key=') && document.documentElement.dataset.ready")
	const row = `[...document.querySelectorAll('#values tbody tr')].find((r) => r.querySelector('th').innerText === 'disk.key').innerText`
	p.ready(base(d) + "/ui/runtime")
	if got := strings.Fields(eval[string](p, row)); strings.Join(got[:4], " ") != "disk.key 99 10 99" {
		t.Errorf("the row of the value is %q", got)
	}
	p.ready(base(d) + "/ui/runtime?key=disk.key")
	p.press(`form:has(input[type="hidden"][name="disk.key"]) button`)
	p.confirm("disk.key 99 → 10")

	// A try changes nothing, and the field stays.
	p.ready(base(d) + "/ui/runtime?key=disk.key")
	p.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('#value').select()"))
	p.do(chromedp.SendKeys("#value", "77"))
	p.press(`input[name="dry_run"]`)
	p.press(`form:has(#value) button[type="submit"]`)
	p.confirm("Nothing was changed")
	if got := d.Get("/runtime"); strings.Contains(got, "77") {
		t.Errorf("a try changed the value: %s", got)
	}
}

// TestLoggingTasks changes the level of one logger, of two in one request, of all, and
// restores them.
func TestLoggingTasks(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Config{YAML: fmt.Sprintf(settable, "")})
	levels := func(want string) {
		t.Helper()
		if got := d.Post("/logging"); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("the levels lack %q: %s", want, got)
		}
	}
	p := open(t)
	p.ready(base(d) + "/ui/logging")
	const single = `select[name="admin"]`
	p.do(chromedp.Evaluate[chromedp.Void](`{ const s = document.querySelector('` + single + `'); s.value = 'error'; s.dispatchEvent(new Event('change', {bubbles: true})); }`))
	p.confirm("admin info → error")
	levels(`admin: error`)
	for _, name := range []string{"main", "config"} {
		p.press(`input[name="pick"][value="` + name + `"]`)
	}
	p.do(chromedp.SetValue(`select[name="to"]`, "debug"))
	p.press(`#several button`)
	p.until("document.querySelector('input[name=paths]') && document.documentElement.dataset.ready")
	if got := eval[string](p, "document.querySelector('input[name=paths]').value"); got != "config:debug,main:debug" && got != "main:debug,config:debug" {
		t.Errorf("the request is for %q", got)
	}
	p.press(`form:has(input[name=paths]) button`)
	p.confirm("main info → debug")
	levels(`(?s)config: debug.*main: debug`)
	p.do(chromedp.SetValue(`select[name="level"]`, "trace"))
	p.press(`form[action="../logging"]:has(select[name="level"]) button`)
	p.confirm("trace")
	levels(`main: trace`)
	for _, back := range []string{"main: debug", "main: info", "admin: info"} {
		p.press(`section:has(> .head #restore) form button`)
		p.confirm("/audit/undo")
		levels(back)
	}
	if eval[bool](p, "document.querySelector('#restore') !== null") {
		t.Error("after everything was restored the page offers to restore more")
	}

	// One field above the list makes its changes temporary.
	p.do(chromedp.Evaluate[chromedp.Void](`{ const s = document.querySelector('form[data-live] select[name="ttl"]'); s.value = '1h'; s.dispatchEvent(new Event('input', {bubbles: true})); }`))
	p.until(`document.querySelector('form:has(` + single + `) input[name="ttl"]')?.value === '1h'`)
	p.do(chromedp.Evaluate[chromedp.Void](`{ const s = document.querySelector('` + single + `'); s.value = 'off'; s.dispatchEvent(new Event('change', {bubbles: true})); }`))
	p.until("document.querySelector('dialog')?.innerText.includes('for an hour')")
	p.confirm("admin info → off")
	if got := eval[string](p, "document.querySelector('#loggers tr').closest('table').innerText"); !strings.Contains(got, "left, then info") || !strings.Contains(eval[string](p, "location.search"), "ttl=1h") {
		t.Errorf("the level is not temporary, or the page forgets for how long: %s", got)
	}
}

// TestOneKeyIsNotEnough presses Enter on the button of every form that changes the
// server, on every page, and then Escape, or Enter again: nothing may happen, and the
// focus returns to the button.
func TestOneKeyIsNotEnough(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Config{YAML: fmt.Sprintf(settable, "")})
	d.Post("/runtime_modify?disk.key=11")
	p := open(t)
	seen := map[string]bool{}
	before := d.Get("/audit?format=json")
	for _, path := range append([]string{"/", "/ui/runtime?key=disk.key"}, livePages...) {
		p.ready(base(d) + path)
		for i := range int(eval[float64](p, "(window.posts = [...document.querySelectorAll('form[method=post]')]).length")) {
			form := fmt.Sprintf("posts[%d]", i)
			key := eval[string](p, form+".getAttribute('action') + ' ' + [..."+form+".elements].map((e) => e.name).filter((n) => ['enable', 'level', 'paths', 'id'].includes(n)).join()")
			button := form + ".querySelector('button:not([hidden])')"
			if seen[key] || !eval[bool](p, button+" !== null") {
				continue
			}
			seen[key] = true
			for _, then := range []string{kb.Escape, kb.Enter} {
				p.do(chromedp.Evaluate[chromedp.Void](button + ".focus()"))
				p.key(kb.Enter)
				p.until("document.querySelector('dialog')?.open")
				if !eval[bool](p, "['Cancel', ''].includes(document.activeElement.textContent) && document.querySelector('dialog').contains(document.activeElement)") {
					t.Errorf("%s, %s: the focus is not on the way out", path, key)
				}
				p.key(then)
				if then == kb.Enter && eval[bool](p, "document.querySelector('dialog') !== null") {
					p.key(kb.Escape) // a word is wanted
				}
				p.until("!document.querySelector('dialog') && document.activeElement === " + button)
			}
		}
	}
	if after := d.Get("/audit?format=json"); after != before || len(seen) < 20 {
		t.Errorf("%d forms; the audit log before:\n%s\nafter:\n%s", len(seen), before, after)
	}
}

// TestReadOnlyPages expects no control that changes something where nothing can be
// changed, and a refusal of every request.
func TestReadOnlyPages(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Config{YAML: fmt.Sprintf(settable, ", mode: read_only")})
	p := open(t)
	for _, path := range append([]string{"/", "/ui/runtime?key=disk.key"}, livePages...) {
		p.ready(base(d) + path)
		if got := eval[[]string](p, "[...document.querySelectorAll('form[method=post], [formmethod], button.mutation, button.destructive, [href*=\"heap_dump\"][data-effect]')].map((e) => e.outerHTML.slice(0, 120))"); len(got) > 0 {
			t.Errorf("%s has %q", path, got)
		}
		if strings.HasPrefix(path, "/ui/") && !eval[bool](p, "document.querySelector('header').innerText.includes('read only')") {
			t.Errorf("%s does not name the mode", path)
		}
	}
	n := 0
	for _, m := range regexp.MustCompile(`(?m)^  (/\S+) \(POST\): `).FindAllStringSubmatch(d.Get("/help"), -1) {
		n++
		resp, err := http.Post(base(d)+m[1], "", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 403 {
			t.Errorf("POST %s has status %d", m[1], resp.StatusCode)
		}
	}
	if n < 10 {
		t.Errorf("/help lists %d changes", n)
	}
}

// TestShortcutsAndTheme: shortcuts go to pages, but not from fields, with modifiers,
// during composition or once they are off; the theme stays, and is there before the
// body is.
func TestShortcutsAndTheme(t *testing.T) {
	t.Parallel()
	d := start(t)
	p := open(t)
	p.ready(base(d) + "/ui/clusters")
	stays := func(what string) {
		t.Helper()
		if got := eval[string](p, "location.pathname"); got != "/ui/clusters" {
			t.Fatalf("%s: at %s", what, got)
		}
	}
	p.do(chromedp.Focus(`input[name="filter"]`))
	p.key("gl?n")
	stays("typed into a field")
	if got := eval[string](p, "document.activeElement.value + (document.querySelector('dialog') ? ' dialog' : '')"); got != "gl?n" {
		t.Errorf("the field has %q", got)
	}
	p.key(kb.Escape)
	p.do(chromedp.Evaluate[chromedp.Void](`for (const extra of [{ctrlKey: true}, {metaKey: true}, {altKey: true}, {isComposing: true}])
		for (const key of ['g', 'l']) document.body.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, ...extra}))`))
	stays("with modifiers and during composition")
	p.key("?")
	p.until("document.querySelector('dialog#help')?.open")
	p.press("dialog#help input[type=checkbox]")
	p.key(kb.Escape)
	p.until("!document.querySelector('dialog')")
	p.key("gl")
	p.ready(base(d) + "/ui/clusters")
	p.key("gl?")
	stays("switched off")
	if eval[bool](p, "document.querySelector('dialog') !== null") {
		t.Error("a shortcut opens the help although they are off")
	}
	p.press("#help-button")
	p.press("dialog#help input[type=checkbox]")
	p.key(kb.Escape)
	p.until("!document.querySelector('dialog')")
	for letter, path := range map[string]string{"m": "/", "v": "/ui/", "l": "/ui/listeners", "i": "/ui/ingest", "r": "/ui/runtime", "o": "/ui/logging", "d": "/ui/config", "t": "/ui/certs", "u": "/ui/circuits", "e": "/ui/explorer", "a": "/ui/audit", "p": "/ui/server", "s": "/ui/stats", "h": "/ui/histograms"} {
		p.ready(base(d) + "/ui/clusters")
		p.key("g" + letter)
		p.until("location.pathname === " + quoted(path) + " && document.documentElement.dataset.ready")
	}

	p.medium(1280, 1, scheme, "light")
	_, err := chromedp.Call(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `new MutationObserver((_, o) => { if (document.body) { window.first = getComputedStyle(document.documentElement).colorScheme; o.disconnect(); } }).observe(document, {childList: true, subtree: true})`})
	p.must("the observer", err)
	p.ready(base(d) + "/ui/server")
	light := eval[string](p, "getComputedStyle(document.body).backgroundColor")
	p.press(`input[name="theme"][value="dark"]`)
	dark := eval[string](p, "getComputedStyle(document.body).backgroundColor")
	p.ready(base(d) + "/ui/logging")
	if got := eval[string](p, "`${window.first} ${getComputedStyle(document.body).backgroundColor} ${document.querySelector('input[name=theme]:checked').value}`"); got != "dark "+dark+" dark" || light == dark {
		t.Errorf("after a reload the theme is %q, was %q and before %q", got, dark, light)
	}
	p.press(`input[name="theme"][value="auto"]`)
	if got := eval[string](p, "getComputedStyle(document.body).backgroundColor"); got != light {
		t.Errorf("the automatic theme is %q instead of %q", got, light)
	}
}
