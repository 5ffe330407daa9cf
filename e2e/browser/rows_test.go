package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

// TestCopyFromRows copies the name, the exact value and the exposition of a stat, by
// pointer and by keyboard.
func TestCopyFromRows(t *testing.T) {
	t.Parallel()
	d := start(t)
	const name = "shop.checkout.requests_of_usual_length"
	lines(t, d, name+":1234567|c")
	d.Wait("the line", func(s daemon.Stats) bool { return s[name] == "1234567" })
	p := open(t)
	p.medium(1280, 1)
	p.ready(base(d) + "/ui/stats?filter=^" + name + "$")
	p.until("document.documentElement.dataset.rows")
	p.do(chromedp.Evaluate[chromedp.Void](`Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (x) => { window.copied = x; }}})`))
	want := []string{name, "1234567", d.Get("/stats/prometheus?filter=^" + name + "$")}
	if !strings.Contains(want[2], "1234567") {
		t.Fatalf("the exposition is %q", want[2])
	}
	copied := func(how string, i int) {
		t.Helper()
		p.until("window.copied !== undefined")
		if got := eval[string](p, "window.copied"); got != want[i] {
			t.Errorf("%s copied %q, want %q", how, got, want[i])
		}
		p.do(chromedp.Evaluate[chromedp.Void]("window.copied = undefined"))
	}
	x, y := 0.0, 0.0
	_, err := fmt.Sscan(eval[string](p, "{ const r = document.querySelector('#stats tbody td').getBoundingClientRect(); `${r.x + 5} ${r.y + 5}` }"), &x, &y)
	p.must("the place of the row", err)
	p.do(chromedp.MouseEvent("mouseMoved", x, y))
	p.until("document.querySelector('#stats .copies')")
	const covered = `(() => { const name = document.querySelector('#stats tbody a:not(.pin)'), r = document.createRange(); r.selectNodeContents(name); return r.getBoundingClientRect().right > document.querySelector('.copies').getBoundingClientRect().left; })()`
	if eval[bool](p, covered) {
		t.Error("what can be copied covers the name")
	}
	_, err = fmt.Sscan(eval[string](p, "{ const r = document.querySelector('#stats .copies').getBoundingClientRect(); `${r.x + r.width / 2} ${r.y + r.height / 2}` }"), &x, &y)
	p.must("the place of the buttons", err)
	p.do(chromedp.MouseEvent("mouseMoved", x, y))
	p.picture("copies")
	for i := range want {
		p.press(fmt.Sprintf("#stats .copies button:nth-child(%d)", i+1))
		copied("the pointer", i)
	}
	p.do(chromedp.Evaluate[chromedp.Void]("document.activeElement.blur(); document.querySelector('#stats tbody a:not(.pin)').focus()"))
	for i := range want {
		p.key(kb.Tab)
		p.key(kb.Enter)
		copied("the keyboard", i)
	}
}

// TestFilterHistory offers the last 20 filters again, the latest first, each once.
func TestFilterHistory(t *testing.T) {
	t.Parallel()
	d := start(t)
	p := open(t)
	p.ready(base(d) + "/ui/stats")
	p.until("document.documentElement.dataset.rows")
	enter := func(filter string) {
		p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`{ const f = document.querySelector('input[name="filter"]'); f.value = %s; f.dispatchEvent(new Event('change', {bubbles: true})); }`, quoted(filter))))
	}
	for i := range 25 {
		enter(fmt.Sprintf("f%d", i))
	}
	enter("f20")
	p.ready(base(d) + "/ui/stats")
	p.until("document.documentElement.dataset.rows")
	if got := eval[string](p, "[...document.querySelectorAll('#filters option')].map((o) => o.value).join(' ')"); got != "f20 f24 f23 f22 f21 f19 f18 f17 f16 f15 f14 f13 f12 f11 f10 f9 f8 f7 f6 f5" {
		t.Errorf("the offered filters are %s", got)
	}
}

// TestSkeleton: where no row is shown, an answer that takes long is announced by
// placeholders; rows that are shown stay.
func TestSkeleton(t *testing.T) {
	t.Parallel()
	d := start(t)
	hits(t, d, "1")
	to, err := url.Parse(base(d))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proceed := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ui/stats" && r.URL.Query().Get("filter") == "hits" && !r.URL.Query().Has("tsv") {
			select {
			case <-proceed:
			case <-r.Context().Done():
			}
		}
		defer func() { _ = recover() }() // the proxy panics when the client is gone
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { slow.CloseClientConnections(); slow.Close() })
	p := open(t)
	const state = "`${document.querySelector('#results').ariaBusy} ${document.querySelectorAll('#results .skeleton > div').length} ${document.querySelectorAll('#stats tbody tr').length}`"
	filter := func(text string) {
		p.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`{ const f = document.querySelector('input[name="filter"]'); f.value = %s; f.dispatchEvent(new Event('input', {bubbles: true})); }`, quoted(text))))
	}
	p.ready(slow.URL + "/ui/stats?filter=^absent$")
	filter("hits")
	p.until(state + " === 'true 5 0'")
	proceed <- struct{}{}
	p.until(state + ".startsWith('null 0 ') && document.querySelector('#stats tbody tr')")
	p.ready(slow.URL + "/ui/stats?filter=^hits$")
	p.do(chromedp.Evaluate[chromedp.Void]("window.later = () => { window.due = false; setTimeout(() => { window.due = true; }, 400); }; document.addEventListener('input', later)"))
	filter("hits")
	p.until("window.due")
	if got := eval[string](p, state); got != "true 0 1" {
		t.Errorf("while the answer is awaited, the rows are %s, want true 0 1", got)
	}
	proceed <- struct{}{}
	p.until(state + ".startsWith('null 0 ')")
}
