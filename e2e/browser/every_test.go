package browser

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
	"github.com/statsd-admin/statsd-admin/e2e/need"
	"github.com/statsd-admin/statsd-admin/internal/golden"
)

//go:embed testdata/checks.js
var checks string

// everyPage lists all pages, each once with short tables.
func everyPage() []string {
	list := []string{"/", "/stats?format=html&filter=^server"}
	for _, path := range livePages {
		switch path {
		case "/ui/stats":
			path += "?rows=100"
		case "/ui/clusters":
			path += "?rows=25&open=backend%0A" + url.QueryEscape(crowdNames[0]) + "0"
		}
		list = append(list, path)
	}
	return list
}

// medium sets the size of the window in CSS pixels and its media features, given as
// name and value in turn.
func (p *tab) medium(width int64, scale float64, features ...string) {
	p.t.Helper()
	_, err := chromedp.Call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 900, DeviceScaleFactor: scale})
	p.must("the size", err)
	var list []*emulation.MediaFeature
	for i := 0; i < len(features); i += 2 {
		list = append(list, &emulation.MediaFeature{Name: features[i], Value: features[i+1]})
	}
	_, err = chromedp.Call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: list})
	p.must("the media features", err)
}

const scheme, forced, motion = "prefers-color-scheme", "forced-colors", "prefers-reduced-motion"

// The names of the crowd: right to left, with combining marks, and as long as names
// from the network can be, with and without a place to break.
var crowdNames = []string{
	"قياس.الطلبات.الواردة", "מדד.בקשות.נכנסות", "e\u0301\u0323\u0308.z\u0351\u036b\u0343\u036a\u0302\u036b\u033d",
	strings.Repeat("x", 1024), strings.Repeat("wide.name_with_a_long_segment_here", 30) + "_end", `"><img src=x onerror=canary()>`, `</title><script>canary()</script>`,
}

// crowd starts a daemon whose every list has names that break layouts or try to
// become markup.
func crowd(t *testing.T) *daemon.Daemon {
	t.Helper()
	chain, private := certificate(t, []string{"edge.example.net", "a.example.net", strings.Repeat("long-label.", 20) + "net", "x.example.net", `<script>canary()</script>.net`})
	const typed = "type.googleapis.com/envoy."
	layer := object{}
	var clusters []any
	for i, name := range crowdNames {
		layer[name] = name
		hosts := []any{}
		for port := range 2 + 3*i {
			hosts = append(hosts, object{"health_status": []string{"HEALTHY", "UNHEALTHY", "DEGRADED"}[port%3], "endpoint": object{"hostname": name,
				"address": object{"socket_address": object{"address": "127.0.0.1", "port_value": 9 + port}}}})
		}
		c := object{"name": fmt.Sprint(name[:min(len(name), 1000)], i), "type": "STATIC", "load_assignment": object{"cluster_name": name, "endpoints": []any{object{
			"locality": object{"region": name, "zone": name}, "lb_endpoints": hosts}}}}
		if i == 0 {
			c["transport_socket"] = object{"name": "tls", "typed_config": object{"@type": typed + "extensions.transport_sockets.tls.v3.UpstreamTlsContext",
				"sni": "x", "common_tls_context": object{"tls_certificates": []any{object{
					"certificate_chain": object{"inline_string": chain}, "private_key": object{"inline_string": private}}}}}}
		}
		clusters = append(clusters, c)
	}
	clusters = append(clusters, object{"name": "backend", "type": "STATIC", "load_assignment": object{"cluster_name": "backend", "endpoints": []any{object{
		"lb_endpoints": []any{object{"endpoint": object{"address": object{"socket_address": object{"address": "127.0.0.1", "port_value": 9}}}}}}}}})
	text, err := json.Marshal(object{
		"node":                 object{"id": "node-17", "cluster": crowdNames[0], "metadata": layer},
		"admin":                object{"address": object{"socket_address": object{"address": "127.0.0.1", "port_value": 0}}, "profile_path": "$DIR/profile"},
		"stats_flush_interval": "0.2s",
		"stats_sinks": []any{object{"name": "proxy.stat_sinks.hystrix",
			"typed_config": object{"@type": typed + "config.metrics.v3.HystrixSink", "num_buckets": 5}}},
		"layered_runtime":  object{"layers": []any{object{"name": strings.Repeat("layer", 30), "static_layer": layer}, object{"name": "admin", "admin_layer": object{}}}},
		"static_resources": object{"clusters": clusters},
		"statsd":           object{"listeners": []any{object{"name": "udp", "address": "udp://127.0.0.1:0"}, object{"name": "tcp", "address": "tcp://127.0.0.1:0"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	d := daemon.Start(t, daemon.Config{YAML: string(text)})
	plant(t, d)
	send(t, d, func(lines *strings.Builder) {
		for i, name := range crowdNames {
			fmt.Fprintf(lines, "%s:1|c\n%s.ms:%d|ms\ncrowd.tag:1|c|#name:%s\nbroken %s\n", name, name[:min(len(name), 1021)], i+1, name[:min(len(name), 500)], name)
		}
		lines.WriteString("crowd.last:1|c\n")
	})
	stats := d.Wait("the crowd", func(s daemon.Stats) bool { return s["crowd.last"] == "1" })
	for _, name := range crowdNames {
		if stats[name] != "1" {
			t.Errorf("%q is not the name of a stat", name)
		}
	}
	d.Post("/runtime_modify?planted=" + url.QueryEscape(`<img src=x onerror=canary()>`) + "&ttl=1h")
	d.Post("/logging?main=debug")
	return d
}

// send sends lines to the TCP listener.
func send(t *testing.T, d *daemon.Daemon, write func(lines *strings.Builder)) {
	t.Helper()
	c, err := net.Dial("tcp", d.Address("tcp"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var lines strings.Builder
	write(&lines)
	if _, err := c.Write([]byte(lines.String())); err != nil {
		t.Fatal(err)
	}
}

// axe returns the violations that axe finds with impact serious or critical.
const axe = `axe.run(document, {resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}).then((r) =>
  r.violations.filter((v) => v.impact === 'serious' || v.impact === 'critical').map((v) => v.id + ': ' + v.nodes.map((n) => n.html.slice(0, 150) + ' ' + n.failureSummary).slice(0, 3).join(' | ')))`

// TestEveryPage opens every page with names on it that break layouts or try to become
// markup, and expects: no script of a name runs, nothing foreign is fetched, no policy is
// violated; axe and the checks of testdata/checks.js find nothing, in light, dark and
// forced colors, at all widths and at 400 % zoom; every control has a name and the
// headings are in order; nothing moves for readers who want less motion.
func TestEveryPage(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("../npm/node_modules/axe-core/axe.min.js")
	if err != nil {
		need.Missing(t, "axe-core is not installed: "+err.Error())
	}
	d := crowd(t)
	p := openFor(t, 10*time.Minute) // axe takes long
	titles := map[string]string{}
	for _, path := range everyPage() {
		flaws := func(what string, found []string) {
			t.Helper()
			for _, flaw := range found {
				t.Errorf("%s, %s: %s", path, what, flaw)
			}
		}
		p.medium(1280, 1, scheme, "light", motion, "reduce")
		p.visit(base(d) + path)
		if !strings.HasPrefix(path, "/stats") {
			p.until("document.documentElement.dataset.ready")
		}
		p.do(chromedp.Evaluate[chromedp.Void](string(script) + checks))
		title := eval[string](p, "document.title")
		page, _, _ := strings.Cut(path, "?")
		if other := titles[title]; title == "" || other != "" && other != page {
			t.Errorf("%s and %s have the title %q", path, other, title)
		}
		titles[title] = page
		flaws("accessibility tree", p.tree(strings.HasPrefix(path, "/ui/")))
		if n := eval[float64](p, "document.getAnimations().length"); n != 0 {
			t.Errorf("%s: %v animations in spite of reduced motion", path, n)
		}
		if got := eval[float64](p, "document.querySelectorAll('img, iframe, base, body style, [style], [onerror], [onfocus]').length"); got != 0 {
			t.Errorf("%s: %v planted elements", path, got)
		}
		for _, theme := range []string{"light", "dark"} {
			p.medium(1280, 1, scheme, theme, motion, "reduce")
			flaws(theme, eval[[]string](p, axe+".then((found) => [...found, ...checks.contrast(), ...checks.focus(60)])"))
			p.medium(1280, 1, scheme, theme, forced, "active", motion, "reduce")
			flaws(theme+" in forced colors", eval[[]string](p, axe+".then((found) => [...found, ...checks.contrast(), ...checks.focus(60)])"))
		}
		for _, width := range []int64{2560, 1280, 1024, 768, 390} {
			p.medium(width, 1, scheme, "light")
			flaws(fmt.Sprint(width), eval[[]string](p, "[...checks.reflow(), ...checks.small()]"))
		}
		p.medium(320, 4, scheme, "light") // 1280 at 400 %
		flaws("400 %", eval[[]string](p, "[...checks.reflow(), ...checks.small(), ...checks.spacing()]"))
	}
	p.do(chromedp.Navigate("about:blank"))
	p.assets(d)
}

// controls are the roles that must have a name.
var controls = []string{"button", "link", "textbox", "searchbox", "combobox", "listbox", "checkbox", "radio", "slider", "table", "img", "image", "region", "dialog", "DisclosureTriangle"}

// tree returns the errors in the accessibility tree of the page: controls without a
// name, headings out of order, and for pages with a shell, landmarks that are missing
// or occur twice. While a modal dialog is open, it is all that can be reached.
func (p *tab) tree(shell bool) (found []string) {
	p.t.Helper()
	tree, err := chromedp.Call(p, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	p.must("the accessibility tree", err)
	text := func(v *accessibility.Value) (s string) {
		if v != nil {
			_ = json.Unmarshal(v.Value, &s) // not a text: no name
		}
		return s
	}
	roles := map[string]int{}
	modal := eval[bool](p, "document.querySelector('dialog:modal') !== null")
	last := 0
	if modal {
		last = 1 // the page's own
	}
	for _, n := range tree.Nodes {
		if n.Ignored {
			continue
		}
		role, name := text(n.Role), text(n.Name)
		roles[role]++
		if slices.Contains(controls, role) && strings.TrimSpace(name) == "" {
			found = append(found, fmt.Sprintf("a %s has no name", role))
		}
		if role == "heading" {
			level := 0
			for _, property := range n.Properties {
				if property.Name == "level" {
					_ = json.Unmarshal(property.Value.Value, &level) // stays 0
				}
			}
			if level > last+1 || level == 0 || name == "" {
				found = append(found, fmt.Sprintf("the heading %q has level %d after %d", name, level, last))
			}
			last = level
		}
	}
	want := map[string]int{"main": 1}
	if modal {
		want = map[string]int{"dialog": 1, "main": 0, "navigation": 0}
	} else if shell {
		want = map[string]int{"main": 1, "banner": 1, "navigation": 1, "contentinfo": 1}
	}
	for role, n := range want {
		if roles[role] != n {
			found = append(found, fmt.Sprintf("%d landmarks of role %s", roles[role], role))
		}
	}
	return found
}

// named expects the accessibility tree of a state of a page to be without errors.
func (p *tab) named(state string) {
	p.t.Helper()
	for _, flaw := range p.tree(true) {
		p.t.Errorf("%s, accessibility tree: %s", state, flaw)
	}
}

// assets expects all requested assets to carry the hash of their content in the path,
// and to be kept forever.
func (p *tab) assets(d *daemon.Daemon) {
	p.t.Helper()
	seen := map[string]bool{}
	named := regexp.MustCompile(`^/ui/assets/([0-9a-f]{16})/[a-z]+\.(css|js|svg)$`)
	for _, r := range p.requests {
		u, err := url.Parse(r)
		if err != nil || !strings.Contains(u.Path, "assets") || seen[u.Path] {
			continue
		}
		seen[u.Path] = true
		m := named.FindStringSubmatch(u.Path)
		if m == nil {
			p.t.Errorf("an asset at %s", u.Path)
			continue
		}
		resp, err := http.Get(base(d) + u.Path)
		if err != nil {
			p.t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		sum := sha256.Sum256(body)
		if got := resp.Header.Get("cache-control"); err != nil || hex.EncodeToString(sum[:8]) != m[1] || got != "public, max-age=31536000, immutable" {
			p.t.Errorf("%s: %v, cache-control %q", u.Path, err, got)
		}
	}
	if len(seen) < 4 {
		p.t.Errorf("only %d assets were requested", len(seen))
	}
}

// TestHeaders compares the header fields of every page with a golden file.
func TestHeaders(t *testing.T) {
	t.Parallel()
	d := start(t)
	var out bytes.Buffer
	groups := map[string][]string{}
	var order []string
	for _, path := range append(everyPage(), "/ui", "/ui/stat?name=absent", "/ui/stats?filter=(", "/ui/clusters?cluster=absent", "/ui/stats?tsv=stats", "/favicon.ico") {
		client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		resp, err := client.Get(base(d) + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		var fields []string
		for name, values := range resp.Header {
			if name != "Date" && name != "Content-Length" {
				fields = append(fields, "  "+strings.ToLower(name)+": "+strings.Join(values, ", ")+"\n")
			}
		}
		slices.Sort(fields)
		key := fmt.Sprintf("  %s\n%s", resp.Status, strings.Join(fields, ""))
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], path)
	}
	for _, key := range order {
		fmt.Fprintf(&out, "%s\n%s\n", strings.Join(groups[key], "\n"), key)
	}
	golden.Check(t, "headers", out.Bytes())
}
