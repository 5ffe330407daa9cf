package browser

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

// pages lists all HTML pages.
var pages = []string{"/", "/stats?format=html", "/stats?format=html&usedonly&filter=%3Cscript%3Ecanary()%3C/script%3E"}

// TestPolicyHolds: no page violates its own policy, and injected scripts do not run.
func TestPolicyHolds(t *testing.T) {
	t.Parallel()
	d := start(t)
	for _, path := range pages {
		p := open(t)
		p.visit(base(d) + path)
		p.clean()
		p.provoke(".")
		for planted, code := range map[string]string{
			"script":    `const s = document.createElement("script"); s.append("canary()"); document.body.append(s)`,
			"attribute": `document.body.setAttribute("onclick", "canary()"); document.body.click()`,
			"html":      `document.body.innerHTML = "<img src=x onerror=canary()>"`,
			"timer":     `setTimeout("canary()", 0)`,
			"link":      `const a = document.createElement("a"); a.href = "javascript:canary()"; document.body.append(a); a.click()`,
			"elsewhere": `const i = new Image(); i.src = "http://` + foreign + `:1/"; document.body.append(i)`,
			"style":     `const e = document.createElement("style"); e.append("body { display: none }"); document.body.append(e)`,
		} {
			// A script in the page injects it, because evaluations of the test bypass
			// the policy.
			got := eval[string](p, `new Promise((resolve) => {
				window.called = 0;
				window.canary = () => { window.called++; };
				const done = (why) => setTimeout(() => resolve(window.called + " " + why), 0);
				document.addEventListener("securitypolicyviolation", (e) => done(e.effectiveDirective), {once: true});
				try { `+code+` } catch (e) { done("thrown " + e.name); }
			})`)
			if !strings.HasPrefix(got, "0 ") {
				t.Errorf("%s: planted %s: %s", path, planted, got)
			}
		}
		if eval[string](p, "getComputedStyle(document.body).display") == "none" {
			t.Errorf("%s: a planted style works", path)
		}
	}
}

// payloads are names that would have an effect if a page did not escape them.
func payloads() []string {
	list := []string{
		`<script>canary()</script>`, `"><img src=x onerror=canary()>`, `'><svg onload=canary()>`, `</pre><script>canary()</script>`,
		`</title><script>canary()</script>`, `javascript:canary()`, `" autofocus onfocus=canary() x="`, `<iframe srcdoc="<script>parent.canary()</script>">`,
		`{{constructor.constructor('canary()')()}}`, `${canary()}`, `<style>*{background:url(http://evil.test:1/)}</style>`, `<base href="http://evil.test:1/">`,
		`<meta http-equiv="refresh" content="0;url=http://evil.test:1/">`, `<form action="http://evil.test:1/"><button>`, `&lt;script&gt;canary()`, `<!--`, `-->`, `<![CDATA[`,
		"\u202eevil\u202c", "a\u2028b", "<scr\x00ipt>canary()</script>", "%3Cscript%3Ecanary()%3C/script%3E", `<math><mi xlink:href="javascript:canary()">`,
	}
	for i := range 250 {
		list = append(list, fmt.Sprintf(`<img/src="x%d"onerror=canary(%d)>`, i, i), fmt.Sprintf(`x%d" onmouseover="canary(%d)`, i, i))
	}
	return list
}

// plant sends hostile names and tags as StatsD lines.
func plant(t *testing.T, d *daemon.Daemon) {
	t.Helper()
	c, err := net.Dial("tcp", d.Address("tcp"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var lines strings.Builder
	for i, payload := range payloads() {
		name := strings.NewReplacer(":", "", "|", "", "\n", "").Replace(payload)
		fmt.Fprintf(&lines, "planted.%d.%s:1|c\nplanted.tag.%d:1|c|#k:%s\n", i, name, i, strings.NewReplacer("|", "", "\n", "", ",", "").Replace(payload))
	}
	lines.WriteString("planted.last:1|c\n")
	if _, err := c.Write([]byte(lines.String())); err != nil {
		t.Fatal(err)
	}
	d.Wait("all lines", func(s daemon.Stats) bool { return s["planted.last"] == "1" })
}

// TestNamesAreText sends hostile names and tags as StatsD lines and opens all pages.
// No script runs, no request is made, and the page has no unexpected elements.
func TestNamesAreText(t *testing.T) {
	t.Parallel()
	d := start(t)
	p := open(t)
	p.visit(base(d) + "/stats?format=html")
	elements := eval[float64](p, "document.querySelectorAll('*').length")
	plant(t, d)
	for _, path := range pages {
		p := open(t)
		p.visit(base(d) + path)
		if path == pages[1] {
			text := p.text()
			if got := strings.Count(text, "planted."); got < 900 {
				t.Errorf("%d planted names are shown", got)
			}
			if !strings.Contains(text, "<script>canary()</script>") {
				t.Error("the name is not shown as it is")
			}
			if got := eval[float64](p, "document.querySelectorAll('*').length"); got != elements {
				t.Errorf("the page has %v elements, without the names %v", got, elements)
			}
			p.picture("stats")
		}
	}
	p.ready(base(d) + "/ui/stats?filter=^planted[.][0-9]&rows=1000")
	shown := eval[[]string](p, "[...document.querySelectorAll('#stats tbody a:not(.pin)')].map((a) => a.textContent)")
	var stats struct{ Stats []struct{ Name string } }
	if err := json.Unmarshal([]byte(d.Get("/stats?format=json&filter=^planted[.][0-9]")), &stats); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, s := range stats.Stats {
		want = append(want, s.Name)
	}
	slices.Sort(shown)
	slices.Sort(want)
	if len(want) < 500 || !slices.Equal(shown, want) {
		t.Errorf("of %d names the page of the stats shows %d: %.2000q\nwant %.2000q", len(want), len(shown), shown, want)
	}
	d.Post("/runtime_modify?" + url.QueryEscape(`<script>canary()</script>`) + "=" + url.QueryEscape(`<img src=x onerror=canary()>`))
	// Plain text and JSON are not rendered as pages either.
	for _, path := range []string{"/stats", "/stats?format=json", "/stats/metrics", "/ingest", "/ingest?format=json", "/runtime", "/clusters",
		"/clusters?format=json", "/listeners", "/config_dump", "/config_dump?resource=<script>canary()</script>", "/certs", "/server_info", "/nothing?<script>canary()</script>"} {
		p := open(t)
		p.visit(base(d) + path)
		if got := eval[float64](p, "document.querySelectorAll('script, img, iframe, svg, form').length"); got != 0 {
			t.Errorf("%s: %v elements", path, got)
		}
		p.provoke("status 40")
	}
}

// TestEventStream reads the circuit event stream in a page, like a dashboard.
func TestEventStream(t *testing.T) {
	t.Parallel()
	d := start(t)
	p := open(t)
	p.visit(base(d) + "/")
	raw := eval[string](p, `new Promise((resolve) => {
		const got = [], s = new EventSource("/circuit_event_stream");
		s.onmessage = (e) => {
			got.push(JSON.parse(e.data));
			if (got.length === 6) { s.close(); resolve(JSON.stringify(got)); }
		};
		s.onerror = (e) => { s.close(); resolve("error in state " + s.readyState); };
	})`)
	var events []struct {
		Type, Name string
		Window     float64 `json:"propertyValue_metricsRollingStatisticalWindowInMilliseconds"`
		Reporting  float64 `json:"reportingHosts"`
	}
	if err := json.Unmarshal([]byte(raw), &events); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	for i, e := range events {
		want := []string{"HystrixCommand", "HystrixThreadPool"}[i%2]
		if e.Type != want || e.Name != "backend" || e.Window != 200 || e.Reporting != 1 {
			t.Errorf("event %d is %+v", i, e)
		}
	}
}
