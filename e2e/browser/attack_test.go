package browser

import (
	"fmt"
	"html"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

// attacks are pages that send a request to %s on load.
var attacks = map[string]string{
	"form-text": `<form method="post" enctype="text/plain" action="%s"><input name="a" value="b"></form><script>document.forms[0].submit()</script>`,
	"form":      `<form method="post" action="%s"><input name="level" value="trace"></form><script>document.forms[0].submit()</script>`,
	"fetch":     `<script>fetch("%s", {method: "POST", mode: "no-cors", body: "a=b"}).finally(() => { document.title = "sent"; })</script>`,
	"frame":     `<iframe sandbox="allow-scripts allow-forms" srcdoc='<form method="post" action="%s"></form><script>document.forms[0].submit()</script>'></iframe>`,
	"no-referrer": `<meta name="referrer" content="no-referrer"><form method="post" action="%s"></form>` +
		`<script>document.forms[0].submit()</script>`,
	"beacon": `<script>navigator.sendBeacon("%s", "a=b"); document.title = "sent"</script>`,
}

// targets are the endpoints under attack.
var targets = []string{"/quitquitquit", "/runtime_modify?stolen=1", "/logging?level=trace", "/reset_counters", "/drain_listeners", "/healthcheck/fail"}

// attacker serves the attacks on a separate port.
func attacker(t *testing.T, d *daemon.Daemon, admin string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		body, ok := attacks[strings.TrimPrefix(r.URL.Path, "/")]
		if !ok {
			body = "nothing"
		} else {
			body = fmt.Sprintf(body, html.EscapeString(admin+r.URL.Query().Get("target")))
		}
		fmt.Fprintf(w, "<!DOCTYPE html><title>attack</title><body>%s</body>", body)
	}))
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// state is the state that the attacks could have changed.
func state(d *daemon.Daemon) string {
	return d.Get("/ready") + d.Get("/runtime") + d.Post("/logging") +
		fmt.Sprint(number(d, "listener_manager.listener_stopped"), number(d, "hits"), d.Ended())
}

// TestForeignPages opens the attacks on another site, and on another port of the same
// host.
func TestForeignPages(t *testing.T) {
	t.Parallel()
	d := start(t)
	hits(t, d, "5")
	port := attacker(t, d, base(d))
	before := state(d)
	p := open(t)
	p.provoke(".")
	for name := range attacks {
		for _, target := range targets {
			for _, host := range []string{foreign, "127.0.0.1"} {
				refused := number(d, "admin.csrf_rejected")
				p.visit("http://" + host + ":" + port + "/" + name + "?target=" + url.QueryEscape(target))
				d.Wait("the refusal of "+name+" from "+host, func(s daemon.Stats) bool { return s.Number("admin.csrf_rejected") > refused })
			}
		}
	}
	if after := state(d); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	// The same page served by the daemon is trusted.
	p.visit(base(d) + "/")
	if status := eval[float64](p, `fetch("/reset_counters", {method: "POST"}).then((r) => r.status)`); status != 200 {
		t.Errorf("a request of the own page has status %v", status)
	}
	if got := number(d, "hits"); got != 0 {
		t.Errorf("hits is %v", got)
	}
}

// TestRebinding opens the daemon under a foreign name.
func TestRebinding(t *testing.T) {
	t.Parallel()
	d := start(t)
	hits(t, d, "5")
	before := state(d)
	_, port, _ := net.SplitHostPort(d.Admin)
	p := open(t)
	p.provoke(".")
	p.visit("http://" + foreign + ":" + port + "/")
	if text := p.text(); !strings.Contains(text, "this host name is not served") {
		t.Errorf("the page shows %q", text)
	}
	for _, request := range []string{`fetch("/stats")`, `fetch("/reset_counters", {method: "POST"})`, `fetch("/config_dump")`} {
		if status := eval[float64](p, request+".then((r) => r.status)"); status != 403 {
			t.Errorf("%s: status %v", request, status)
		}
	}
	if got := eval[string](p, `new Promise((resolve) => {
		const s = new EventSource("/circuit_event_stream");
		s.onmessage = () => { s.close(); resolve("message"); };
		s.onerror = () => { s.close(); resolve("error"); };
	})`); got != "error" {
		t.Errorf("the event stream brings a %s", got)
	}
	if got := number(d, "admin.host_rejected"); got < 5 {
		t.Errorf("%v requests were refused for their host", got)
	}
	if after := state(d); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	p.visit("http://localhost:" + port + "/ready")
	if text := p.text(); strings.TrimSpace(text) != "LIVE" {
		t.Errorf("under its own name the page shows %q", text)
	}
}

// TestNoFrames loads the home page in a frame of another page, which must stay empty,
// and tries to read answers across origins.
func TestNoFrames(t *testing.T) {
	t.Parallel()
	d := start(t)
	port := attacker(t, d, base(d))
	p := open(t)
	p.provoke(".")
	p.visit("http://" + foreign + ":" + port + "/")
	p.do(chromedp.Evaluate[chromedp.Void](`{
		const f = document.createElement("iframe");
		f.src = ` + quoted(base(d)+"/") + `;
		document.body.append(f);
	}`))
	d.Until("the frame to be refused", func() bool {
		return strings.Contains(strings.Join(p.complaints(), "\n"), "frame")
	})
	tree, err := chromedp.Call(p, page.GetFrameTree, cdp.Empty{})
	p.must("frames", err)
	for _, f := range tree.FrameTree.ChildFrames {
		if strings.HasPrefix(f.Frame.URL, base(d)) {
			t.Errorf("a frame shows %s", f.Frame.URL)
		}
	}
	for _, path := range []string{"/stats", "/circuit_event_stream", "/help"} {
		got := eval[string](p, `fetch(`+quoted(base(d)+path)+`).then(() => "read", () => "blocked")`)
		if got != "blocked" {
			t.Errorf("a foreign page reads %s", path)
		}
	}
}
