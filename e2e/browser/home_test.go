package browser

import (
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

// command is an endpoint on the home page.
type command struct {
	Path, Method string
	Params       []string
}

// commands reads the table of the home page.
const commands = `[...document.querySelectorAll('tr.command')].map((row) => {
  const link = row.querySelector('a'), form = row.querySelector('form');
  const params = form ? [...form.elements].filter((e) => e.name).map((e) => e.name) : [];
  return {Path: '/' + (link ?? form).getAttribute(link ? 'href' : 'action'), Method: form ? form.getAttribute('method').toUpperCase() : 'GET', Params: params};
})`

// TestHomePageShowsAllEndpoints compares the page with /help.
func TestHomePageShowsAllEndpoints(t *testing.T) {
	t.Parallel()
	d := start(t)
	p := open(t)
	p.visit(base(d) + "/")
	p.until("document.documentElement.dataset.ready")
	p.picture("home")
	help := regexp.MustCompile(`(?m)^  (/\S*?)( \(POST\))?: `)
	param := regexp.MustCompile(`^      ([^:]+): `)
	want := map[string]*command{}
	var last *command
	for line := range strings.Lines(d.Get("/help")) {
		if m := help.FindStringSubmatch(line); m != nil {
			last = &command{Path: m[1], Method: "GET"}
			if m[2] != "" {
				last.Method = "POST"
			}
			want[m[1]] = last
		} else if m := param.FindStringSubmatch(line); m != nil {
			last.Params = append(last.Params, m[1])
		}
	}
	delete(want, "/")
	if len(want) < 30 {
		t.Errorf("/help lists %d commands", len(want))
	}
	for _, c := range eval[[]command](p, commands) {
		w := want[c.Path]
		if w == nil || c.Method != w.Method || strings.Join(c.Params, " ") != strings.Join(w.Params, " ") {
			t.Errorf("the page has %+v, /help %+v", c, w)
		}
		delete(want, c.Path)
	}
	for path := range want {
		t.Errorf("the page lacks %s", path)
	}
	if title := eval[string](p, "document.title"); title != "Proxy Admin" {
		t.Errorf("the title is %q", title)
	}
}

// digits are what differs between two answers to one request.
var digits = regexp.MustCompile(`[0-9]+`)

// TestLinksWork follows each link and sends each query of the page. Without scripts the
// empty fields are sent, and change nothing.
func TestLinksWork(t *testing.T) {
	t.Parallel()
	d := start(t)
	p := open(t)
	p.provoke(`^status 400 of .*/(stats/(explain|histogram|history)|ingest/explain)\?`) // they need a name
	p.visit(base(d) + "/")
	list := eval[[]command](p, commands)
	for _, c := range list {
		if c.Method != "GET" || c.Path == "/circuit_event_stream" || c.Path == "/stats/stream" || c.Path == "/heap_dump" {
			continue // it has no end, or is a download
		}
		p.visit(base(d) + "/")
		p.until("document.documentElement.dataset.ready")
		selector := `a[href="` + c.Path[1:] + `"]`
		if len(c.Params) > 0 {
			selector = `form[action="` + c.Path[1:] + `"] button`
		}
		p.press(selector)
		p.until("location.pathname === " + quoted(c.Path) + " && document.readyState === 'complete'")
		// Empty fields are not sent.
		if search := eval[string](p, "location.search"); strings.Contains(search, "=&") || strings.HasSuffix(search, "=") {
			t.Errorf("%s is asked with %q", c.Path, search)
		}
	}
	_, err := chromedp.Call(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	p.must("switching scripts off", err)
	answer := func(target string) string {
		resp, err := http.Get(base(d) + target)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.Status + "\n" + digits.ReplaceAllString(string(body), "N")
	}
	empty := 0
	for _, c := range list {
		if c.Method != "GET" || len(c.Params) == 0 || c.Path == "/stats/stream" || c.Path == "/heap_dump" {
			continue
		}
		p.visit(base(d) + "/")
		p.press(`form[action="` + c.Path[1:] + `"] button`)
		p.until("location.pathname === " + quoted(c.Path) + " && document.readyState === 'complete'")
		search := eval[string](p, "location.search")
		if strings.Contains(search+"&", "=&") {
			empty++
		}
		d.Until(c.Path+search+" to answer as without fields", func() bool { return answer(c.Path+search) == answer(c.Path) })
	}
	if empty < 5 {
		t.Errorf("only %d forms were sent with empty fields", empty)
	}
}

// hits sends StatsD lines and waits until they are counted.
func hits(t *testing.T, d *daemon.Daemon, n string) {
	t.Helper()
	c, err := net.Dial("tcp", d.Address("tcp"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("hits:" + n + "|c\n")); err != nil {
		t.Fatal(err)
	}
	d.Wait("hits: "+n, func(s daemon.Stats) bool { return s["hits"] == n })
}

// TestMutationsAskFirst: a button asks for confirmation, one key press more changes
// nothing, and the request is a POST.
func TestMutationsAskFirst(t *testing.T) {
	t.Parallel()
	d := start(t)
	hits(t, d, "7")
	p := open(t)
	home := func() {
		t.Helper()
		p.visit(base(d) + "/")
		p.until("document.documentElement.dataset.ready")
	}
	const button = `form[action="reset_counters"] button`
	home()
	for _, key := range []string{kb.Enter, " ", kb.Escape} {
		p.press(button)
		p.until("document.querySelector('dialog')?.open && document.activeElement.textContent === 'Cancel'")
		if key == kb.Enter {
			p.picture("confirm")
		}
		p.key(key)
		p.until("!document.querySelector('dialog') && document.activeElement === document.querySelector(" + quoted(button) + ")")
	}
	if got := number(d, "hits"); got != 7 || eval[string](p, "location.pathname") != "/" {
		t.Errorf("without consent hits is %v", got)
	}
	p.press(button)
	p.press("dialog button[type=submit]")
	p.until("location.pathname === '/reset_counters' && document.body.innerText.trim() === 'OK'")
	if got := number(d, "hits"); got != 0 {
		t.Errorf("after the reset hits is %v", got)
	}

	// Fields reach the server; empty ones are omitted.
	home()
	p.do(chromedp.SetValue(`select[name="level"][form="form-logging"]`, "error"))
	p.press(`form[action="logging"] button`)
	p.press("dialog button[type=submit]")
	p.until("location.pathname === '/logging' && document.body.innerText.includes('error')")
	if text := p.text(); strings.Contains(text, ": info") {
		t.Errorf("the levels are %s", text)
	}

	home()
	p.press(`form[action="healthcheck/fail"] button`)
	p.press("dialog button[type=submit]")
	p.until("location.pathname === '/healthcheck/fail' && document.body.innerText.trim() === 'OK'")
	resp, err := http.Get(base(d) + "/ready")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 503 {
		t.Errorf("/ready has status %d", resp.StatusCode)
	}
}

// TestDestructiveMutationsWantAWord: the user must type the word of the command, or
// the id of the node.
func TestDestructiveMutationsWantAWord(t *testing.T) {
	t.Parallel()
	d := start(t)
	p := open(t)
	home := func(command string) {
		t.Helper()
		p.visit(base(d) + "/")
		p.until("document.documentElement.dataset.ready")
		p.press(`form[action="` + command + `"] button`)
		p.until("document.activeElement.id === 'confirm-word'")
	}
	home("quitquitquit")
	p.picture("confirm-word")
	for _, word := range []string{"", "yes", "quitquitqui"} {
		p.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#confirm-word").select()`))
		p.key(kb.Backspace + word)
		p.key(kb.Enter)
		if !eval[bool](p, "document.querySelector('dialog').open && document.querySelector('dialog button[type=submit]').disabled") {
			t.Errorf("the word %q is good enough", word)
		}
	}
	p.key(kb.Escape)
	p.until("!document.querySelector('dialog')")
	if d.Ended() || d.Get("/ready") != "LIVE\n" {
		t.Error("the daemon was ended without consent")
	}

	home("drain_listeners")
	p.do(chromedp.SendKeys("#confirm-word", "node-17"))
	p.press("dialog button[type=submit]")
	p.until("location.pathname === '/drain_listeners' && document.body.innerText.trim() === 'OK'")
	if got := number(d, "listener_manager.listener_stopped"); got != 2 {
		t.Errorf("%v listeners were stopped", got)
	}

	home("quitquitquit")
	p.do(chromedp.SendKeys("#confirm-word", "quitquitquit"))
	p.key(kb.Enter)
	if status := d.Exit(); status != 0 {
		t.Errorf("the daemon ended with status %d", status)
	}
}

// TestPagesWithoutScripts opens all pages in a browser that runs no script: each form has
// a button that sends it, and no button needs a script. A change works.
func TestPagesWithoutScripts(t *testing.T) {
	t.Parallel()
	d := start(t)
	hits(t, d, "3")
	p := open(t)
	_, err := chromedp.Call(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	p.must("switching scripts off", err)
	for _, path := range everyPage() {
		p.visit(base(d) + path)
		for _, flaw := range eval[[]string](p, `[...document.forms].filter((f) => !f.closest('[hidden]') && ![...f.elements].some((e) => e.type === 'submit' && (e.checkVisibility() || e.closest('details:not([open])'))))
			.concat([...document.querySelectorAll('button[type="button"], .scripted')].filter((e) => e.checkVisibility())).map((e) => e.outerHTML.slice(0, 150))`) {
			t.Errorf("%s does nothing without scripts: %s", path, flaw)
		}
	}
	p.visit(base(d) + "/")
	p.press(`form[action="reset_counters"] button`)
	d.Wait("the reset", func(s daemon.Stats) bool { return s["hits"] == "0" })
}
