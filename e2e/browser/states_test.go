package browser

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
	"github.com/statsd-admin/statsd-admin/internal/golden"
)

// faults is a proxy in front of a daemon that answers as the daemon until it gets a
// fault.
type faults struct {
	*httptest.Server
	// fault is a string: "", "hang", "drop", "nostream", or a status with its reason. With
	// "info " in front it concerns /server_info alone.
	fault atomic.Value
	// stream and deltas answer instead of the circuit event stream and the stream of
	// changes.
	stream, deltas http.HandlerFunc

	late  atomic.Bool  // the clock of the server is an hour behind
	open  atomic.Int32 // streams of changes
	asked atomic.Value // string: the query of the last one
}

// password is accepted while credentials are needed.
const password = "a-fresh-token"

func newFaults(t *testing.T, d *daemon.Daemon) *faults {
	t.Helper()
	to, err := url.Parse(base(d))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.FlushInterval = -1
	proxy.ErrorLog = log.New(io.Discard, "", 0) // pages that are left cancel requests
	f := &faults{}
	proxy.ModifyResponse = func(r *http.Response) error {
		if f.late.Load() {
			r.Header.Set("date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
		}
		return nil
	}
	f.fault.Store("")
	f.asked.Store("")
	ended := make(chan struct{})
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.stream != nil && r.URL.Path == "/circuit_event_stream" {
			f.stream(w, r)
			return
		}
		fault, info := strings.CutPrefix(f.fault.Load().(string), "info ")
		if info && r.URL.Path != "/server_info" {
			fault = ""
		}
		if _, given, _ := r.BasicAuth(); given == password && strings.HasPrefix(fault, "401") {
			fault = ""
			r.Header.Del("authorization")
		}
		if r.URL.Path == "/stats/stream" {
			f.asked.Store(r.URL.RawQuery)
			f.open.Add(1)
			defer f.open.Add(-1)
			if f.deltas != nil {
				f.deltas(w, r)
				return
			}
			if fault == "nostream" {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
		}
		switch fault {
		case "", "nostream":
			defer func() { _ = recover() }() // the proxy panics when the client is gone
			proxy.ServeHTTP(w, r)
		case "hang":
			select {
			case <-ended:
			case <-r.Context().Done():
			}
		case "drop":
			if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
				c.Close()
			}
		default:
			var status int
			var reason string
			_, _ = fmt.Sscanf(fault, "%d", &status) // the tests give one
			_, reason, _ = strings.Cut(fault, " ")
			w.Header().Set("retry-after", "7")
			if status == http.StatusUnauthorized && r.Header.Get("x-sign-in") != "" { // as the server does
				w.Header().Set("www-authenticate", `Basic realm="test"`)
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, reason+"\n")
		}
	}))
	t.Cleanup(func() { close(ended); f.CloseClientConnections(); f.Close() })
	return f
}

// set sets the fault and cuts the connections.
func (f *faults) set(fault string) {
	f.fault.Store(fault)
	f.CloseClientConnections()
}

// shown is the markup of the bars of the page, with every number as N.
const shown = `[...document.querySelectorAll('#watch, #draining, #state')].map((e) => {
  const copy = e.cloneNode(true);
  if (copy.id !== 'state' && copy.hidden) copy.replaceChildren();
  return copy.outerHTML.replace(/\s+hidden=""/, ' hidden').replace(/\b\d+ s\b/g, 'N s');
}).join('\n') + '\nstale: ' + document.getElementById('main').classList.contains('stale')`

// TestStates puts a proxy with faults between the page and the daemon, and compares
// the bar of every state with a golden file. The values stay, the page recovers by
// itself or at a press of the button, and moves again.
func TestStates(t *testing.T) {
	t.Parallel()
	d := start(t)
	hits(t, d, "1234")
	f := newFaults(t, d)
	p := open(t)
	p.provoke("status (40|503)")
	p.ready(f.URL + "/ui/stats?filter=^hits$")
	const value = `document.querySelector('[data-stat="hits"]').textContent`
	p.until(value + " === '1,234'")
	var out bytes.Buffer
	note := func(what, condition string) { // which may not last
		t.Helper()
		p.until("(" + condition + ") && (window.noted = " + shown + ")")
		fmt.Fprintf(&out, "%s\n%s\n\n", what, eval[string](p, "window.noted"))
		p.named(what)
	}
	legible := func(what string) {
		t.Helper()
		for _, theme := range []string{"light", "dark"} {
			p.medium(1280, 1, scheme, theme, motion, "reduce")
			for _, flaw := range eval[[]string](p, "checks.contrast()") {
				t.Errorf("%s, %s: %s", what, theme, flaw)
			}
		}
	}
	p.do(chromedp.Evaluate[chromedp.Void](checks))
	const fine = "document.querySelector('#watch').hidden && !document.querySelector('#main').classList.contains('stale')"
	note("live", fine)
	for _, x := range []struct{ fault, problem string }{
		{"hang", "stale"}, {"drop", "lost"}, {"nostream", "cut"}, {"401 credentials are needed", "login"}, {"403 this needs the role read, yours is metrics", "refused"}, {"503 too many large answers are being made", "busy"},
	} {
		f.set(x.fault)
		p.do(chromedp.Evaluate[chromedp.Void]("window.dispatchEvent(new Event('online'))"))
		note(x.fault, "document.querySelector('#watch').dataset.problem === "+quoted(x.problem)+" && !document.querySelector('#watch').hidden")
		legible(x.fault)
		if got := eval[string](p, value); got != "1,234" {
			t.Errorf("%s: the page shows %s", x.fault, got)
		}
		if x.problem == "login" {
			p.do(chromedp.SendKeys("#watch input", password+kb.Enter))
		} else {
			f.set("")
			p.click("#watch button") // which may be hidden by now
		}
		p.until(fine)
	}
	note("recovered", fine)
	d.Until("the page to move again", func() bool {
		send(t, d, func(lines *strings.Builder) { lines.WriteString("hits:1|c\n") })
		return eval[string](p, value) != "1,234"
	})

	for _, late := range []bool{true, false} {
		f.late.Store(late)
		p.do(chromedp.Evaluate[chromedp.Void]("window.dispatchEvent(new Event('online'))"))
		p.until(fmt.Sprintf("document.querySelector('#skew').hidden !== %t", late))
		if got := eval[string](p, "document.querySelector('#skew').innerText"); late && !strings.Contains(got, "differ by 3,60") && !strings.Contains(got, "differ by 3,59") {
			t.Errorf("with a clock that is an hour late the page says %q", got)
		}
	}

	// A change of the state shows without a reload.
	d.Post("/healthcheck/fail")
	note("draining", "document.querySelector('#state').textContent.trim() === 'DRAINING' && "+fine)
	if resp, err := http.Get(base(d) + "/ready"); err != nil || resp.StatusCode != 503 {
		t.Errorf("/ready while draining: %v, %v", resp, err)
	} else {
		resp.Body.Close()
	}
	d.Post("/healthcheck/ok")
	p.until("document.querySelector('#state').textContent.trim() === 'LIVE' && document.querySelector('#draining').hidden")
	d.Post("/healthcheck/fail")
	p.ready(base(d) + "/ui/listeners")
	if text := p.text(); !strings.Contains(text, "DRAINING") || !strings.Contains(text, "The server is draining") {
		t.Errorf("the page of the listeners does not say that they drain: %.300s", text)
	}
	d.Post("/drain_listeners")
	p.ready(base(d) + "/ui/listeners")
	if got := eval[[]string](p, "[...document.querySelectorAll('#listeners .word')].map((e) => e.innerText.trim())"); strings.Join(got, " ") != "drained drained" {
		t.Errorf("after the drain the listeners are %q", got)
	}
	p.named("drained")
	golden.Check(t, "states", out.Bytes())
}

// TestBusyFromTheStart expects a page whose first question is answered with 503 to say so
// and to ask again, and a page of a client that may not ask to ask no more.
func TestBusyFromTheStart(t *testing.T) {
	t.Parallel()
	f := newFaults(t, start(t))
	p := open(t)
	p.provoke("status (403|503)")
	f.set("info 503 too many large answers are being made")
	p.ready(f.URL + "/ui/audit")
	p.until("document.querySelector('#watch').dataset.problem === 'busy' && !document.querySelector('#watch').hidden")
	f.set("")
	p.click("#watch button") // which may be hidden by now
	p.until("document.querySelector('#watch').hidden")
	f.set("info 403 this needs the role read, yours is metrics")
	p.ready(f.URL + "/ui/audit")
	asked := "performance.getEntriesByType('resource').filter((e) => e.name.endsWith('/server_info')).length"
	p.until(asked + " === 1")
	p.do(chromedp.Evaluate[chromedp.Void]("window.dispatchEvent(new Event('focus')); fetch('../ready')", chromedp.EvalAwaitPromise))
	if !eval[bool](p, "document.querySelector('#watch').hidden && "+asked+" === 1") {
		t.Error("a client that may not ask asks again, or sees a problem")
	}
}

// markup is the markup of an element with every number as N.
func (p *tab) markup(selector string) string {
	p.t.Helper()
	return eval[string](p, "document.querySelector("+quoted(selector)+").outerHTML.replace(/[\\d,.]*\\d/g, 'N')")
}

// TestStatesOfRows compares what a page says about its rows with a golden file: more match
// than it shows, the filter was stopped, rows are awaited where there are some and none, a
// feature is off.
func TestStatesOfRows(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Config{YAML: `
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
stats_flush_interval: 0.2s
stats_config: {history_bytes: 0}
statsd:
  listeners: [{name: tcp, address: "tcp://127.0.0.1:0"}]
`})
	send(t, d, func(lines *strings.Builder) {
		for i := range 150 {
			fmt.Fprintf(lines, "rows.%s.%03d:1|c\n", strings.Repeat("a", 60), i)
		}
		lines.WriteString("rows.ms:3|ms\nrows.last:1|c\n")
	})
	d.Wait("the stats", func(s daemon.Stats) bool { return s["rows.last"] == "1" && strings.Contains(s["rows.ms"], "P0") })
	f := newFaults(t, d)
	p := open(t)
	p.provoke("status 400")
	var out bytes.Buffer
	note := func(what, selector string) {
		t.Helper()
		p.until("document.querySelector(" + quoted(selector) + ")")
		fmt.Fprintf(&out, "%s\n%s\n\n", what, p.markup(selector))
		p.named(what)
	}
	filter := func(pattern string) {
		p.do(chromedp.Evaluate[chromedp.Void](`{ const f = document.querySelector('input[name="filter"]'); f.value = ` + quoted(pattern) + `; f.dispatchEvent(new Event('input', {bubbles: true})); }`))
	}
	p.ready(f.URL + "/ui/stats?re=ecma&type=counter&filter=^rows")
	note("truncated", "#truncated")
	filter("^rows[.](a+)+$")
	note("filter stopped", "#filter-error")
	if n := eval[int](p, "document.querySelectorAll('#stats tbody tr').length"); n != 100 {
		t.Errorf("when the filter was stopped the page keeps %d rows, want 100", n)
	}
	filter("^absent$")
	p.until("document.querySelector('#results .empty')")
	f.set("hang")
	filter("^rows")
	note("rows are awaited", "#results .skeleton")
	if !eval[bool](p, "document.querySelector('#results[aria-busy=true]') !== null") {
		t.Error("the part that waits for rows does not say so")
	}
	f.set("")
	for _, path := range []string{"/ui/stat?name=rows.last", "/ui/histograms?name=rows.ms&view=time", "/ui/histograms?name=rows.ms&compare=1", "/ui/server"} {
		p.ready(f.URL + path)
		note(path, "#missing")
	}
	p.ready(f.URL + "/ui/circuits")
	note("/ui/circuits", "#no-stream")
	golden.Check(t, "rows", out.Bytes())
}
