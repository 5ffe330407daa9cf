package admin

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/statsd-admin/statsd-admin/store"
)

// hostile returns texts that try to become markup in some context.
func hostile() []string {
	return []string{
		`<script>alert(1)</script>`, `<img src=x onerror='a'>"'&`, `' onfocus='alert(1)' autofocus x='`, `" onfocus="alert(1)`,
		"`onload=alert(1)`", `</title><script>x</script>`, `</textarea><script>x</script>`, `</pre><svg onload=x>`, `</option></select><b>`,
		`javascript:alert(1)`, `data:text/html,<script>`, `&lt;script&gt;`, `&#60;script&#62;`, `<!--`, `-->`, `<![CDATA[`, `]]>`,
		"a\x00b<\x00script>", "\xff<script>\xc0\xbc", "\u2028<b>", "＜script＞", "x\ny\tz\rw", `\u003cscript\u003e`, `{{.}}`, `${x}`, `<style>@import 'x'</style>`,
		`<base href=//evil.test>`, `<meta http-equiv=refresh content=0>`, `<form action=//evil.test>`, strings.Repeat("<", 2000),
	}
}

// shape returns the elements and attribute names of a page, without texts.
func shape(t *testing.T, page []byte) string {
	t.Helper()
	var out strings.Builder
	for z := html.NewTokenizer(bytes.NewReader(page)); ; {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			return out.String()
		case html.CommentToken:
			t.Errorf("the page has a comment: %s", z.Raw())
		case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken:
			token := z.Token()
			fmt.Fprintf(&out, "%v %s", kind, token.Data)
			for _, a := range token.Attr {
				out.WriteString(" " + a.Key)
			}
			out.WriteByte('\n')
		}
	}
}

// TestHostileTextKeepsTheShapeOfPages expects each page to have the same elements
// and attributes whatever the texts in it are.
func TestHostileTextKeepsTheShapeOfPages(t *testing.T) {
	pages := func(text string) []string {
		st := store.New(store.Options{})
		st.Scope("x").Counter(text).Inc()
		st.Scope("x").Text("readout").Set(text)
		s := newServer(t, Config{Store: st, Sources: Sources{
			State: func() string { return text },
			Info:  func() ServerInfo { return ServerInfo{Version: text, Node: &Node{ID: text, Cluster: text}} },
		}})
		for i, kind := range []ParamKind{ParamText, ParamFlag, ParamChoice, ParamLines} {
			err := s.Handle(Endpoint{Path: fmt.Sprint("/mine", i), Help: text, Group: text, Destructive: true, Mutates: true,
				Params: []Param{{Name: text, Help: text, Kind: kind, Choices: []string{text}}},
				Serve:  func(w *Response, _ *Request) error { return nil }})
			if err != nil {
				t.Fatal(err)
			}
		}
		escaped := strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
		var out []string
		for _, target := range []string{"/", "/stats?format=html&filter=nothing&type=" + escaped, "/stats?format=html&hidden=" + escaped,
			"/stats?format=html&filter=" + escaped + "%28"} {
			r := s.Request("GET", target, nil)
			if r.Status != 200 && r.Status != 400 || r.Get("content-type") != typeHTML {
				t.Fatalf("%s: %d %s", target, r.Status, r.Get("content-type"))
			}
			out = append(out, shape(t, r.Body))
		}
		return append(out, shape(t, s.Request("GET", "/stats?format=html", nil).Body))
	}
	want := pages("plain")
	for _, text := range hostile() {
		for i, got := range pages(text) {
			if got != want[i] {
				t.Errorf("page %d: %q changes the markup", i, text)
			}
		}
	}
}

func TestStatsFormKeepsItsInput(t *testing.T) {
	r := newServer(t, Config{}).Request("GET", "/stats?format=html&usedonly&filter=a(%3C", nil)
	body := string(r.Body)
	if r.Status != 400 || !strings.Contains(body, "value='a(&lt;'") || !strings.Contains(body, "name='usedonly' checked") || !strings.Contains(body, "Invalid re2 regex") {
		t.Errorf("%d %s", r.Status, body)
	}
}

func TestFavicon(t *testing.T) {
	s := newServer(t, Config{})
	if r := s.Request("GET", "/favicon.ico", nil); r.Status != 200 || r.Get("content-type") != "image/svg+xml" || !bytes.Contains(r.Body, []byte("<svg")) {
		t.Errorf("%d %v", r.Status, r.Header)
	}
	if strings.Contains(string(s.Request("GET", "/help", nil).Body), "favicon") {
		t.Error("/help lists the icon")
	}
}

// TestHomePageGroups expects the groups in their order, with sorted paths, and
// groups of the program after the built-in ones.
func TestHomePageGroups(t *testing.T) {
	s := newServer(t, Config{Sources: newWorld().sources()})
	for path, group := range map[string]string{"/zz": "Sessions", "/aa": ""} {
		if err := s.Handle(Endpoint{Path: path, Group: group, Serve: func(*Response, *Request) error { return nil }}); err != nil {
			t.Fatal(err)
		}
	}
	body := string(s.Request("GET", "/", nil).Body)
	at := 0
	for _, want := range []string{">State and life cycle</th>", ">drain_listeners<", ">server_info<", ">Stats</th>", ">stats<", ">stats/metrics<", ">StatsD</th>", ">ingest<",
		">Clusters and listeners</th>", ">Configuration</th>", ">runtime_modify<", "data-pair='key'", "data-pair='value'", ">Logging</th>", ">Diagnostics</th>", ">memory<", ">Sessions</th>", ">zz<", ">Other</th>", ">aa<"} {
		i := strings.Index(body[at:], want)
		if i < 0 {
			t.Fatalf("the page lacks %q behind byte %d", want, at)
		}
		at += i
	}
}
