package admin

import (
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/store"
)

func TestAssetsAreServed(t *testing.T) {
	s := start(t, Config{})
	path := s.assets.Path("admin.css")
	raw := string(s.assets.Find(path).Raw)
	for _, page := range []string{"/", "/stats?format=html"} {
		if a := get(t, s, page); !strings.Contains(a.body, "href='"+path[1:]+"'") {
			t.Errorf("%s does not link %s", page, path)
		}
	}
	for _, encoding := range []string{"", "gzip", "zstd"} {
		a := get(t, s, path, "Accept-Encoding: "+encoding)
		if a.status != 200 || unpack(t, a) != raw || a.header.Get("content-encoding") != encoding ||
			a.header.Get("content-type") != "text/css; charset=UTF-8" || a.header.Get("vary") != "accept-encoding" ||
			a.header.Get("cache-control") != "public, max-age=31536000, immutable" || a.header.Get("x-content-type-options") != "nosniff" {
			t.Errorf("%q: %d %v", encoding, a.status, a.header)
		}
	}
	for _, other := range []string{"/ui/", "/ui/assets/", "/ui/assets/admin.css", path + "?x/..", path + "/", "/ui/../ui/assets", strings.ToUpper(path), "/." + path,
		"/" + path, "/ui/." + path[3:], "/ui/x/.." + path[3:], "/%75i" + path[3:], path + "%00", path + ";x"} {
		want := 404
		if strings.HasPrefix(other, path+"?") {
			want = 200
		}
		if a := get(t, s, other); a.status != want {
			t.Errorf("%s: %d, want %d", other, a.status, want)
		}
	}
	if r := newServer(t, Config{AllowPaths: match.List{match.Exact("/ready")}}).Request("GET", path, nil); r.Status != 403 {
		t.Errorf("with a list of other paths: %d, want 403", r.Status)
	}
}

// TestNamesAreTextInPages puts markup into every external text that a page shows.
func TestNamesAreTextInPages(t *testing.T) {
	const evil = `<script>alert(1)</script><img src=x onerror='a'>"'&`
	st := store.New(store.Options{})
	st.Scope("x").Counter(evil).Inc()
	st.Scope("x").Text("readout").Set(evil)
	s := newServer(t, Config{Store: st})
	s.Handle(Endpoint{Path: "/mine", Help: evil, Params: []Param{{Name: evil, Help: evil, Kind: ParamChoice, Choices: []string{evil}}},
		Serve: func(w *Response, _ *Request) error { return nil }})
	for _, page := range []string{"/", "/stats?format=html", "/stats?format=html&filter=" + strings.ReplaceAll(`[<]script[>]"'`, `"`, "%22"), "/stats?format=html&type="} {
		r := s.Request("GET", page, nil)
		body := string(r.Body)
		scripts := []string{"<script src='" + s.assets.Path("theme.js")[1:] + "'></script>"} // its own, which are linked
		if page == "/" {
			scripts = append(scripts, "<script type='module' src='"+s.assets.Path("admin.js")[1:]+"'></script>")
		}
		for _, own := range scripts {
			if !strings.Contains(body, own) {
				t.Errorf("%s lacks %s", page, own)
			}
			body = strings.Replace(body, own, "", 1)
		}
		if r.Status != 200 || strings.Contains(body, "<script") || strings.Contains(body, "<img") || strings.Contains(body, `type='text' name='filter' value='[<]`) {
			t.Errorf("%s: %d\n%s", page, r.Status, body)
		}
		if strings.Count(body, "&lt;script&gt;") == 0 && !strings.Contains(page, "filter") {
			t.Errorf("%s does not show the names", page)
		}
	}
}

// TestPagesShowPermittedControlsOnly checks that pages omit controls that would be
// refused.
func TestPagesShowPermittedControlsOnly(t *testing.T) {
	if page := string(newServer(t, Config{Mode: ModeReadOnly}).Request("GET", "/", nil).Body); strings.Contains(page, "method='post'") || !strings.Contains(page, "action='stats'") {
		t.Error("the page of a server that is read only has controls that change something, or lacks others")
	}
	s := newServer(t, Config{Auth: &Auth{Tokens: testTokens(t)}})
	for role, want := range map[Role][2]bool{RoleRead: {false, false}, RoleOperate: {true, false}, RoleAdmin: {true, true}} {
		page := string(s.Request("GET", "/", nil, bearer(secret(role))).Body)
		for i, command := range []string{"reset_counters", "quitquitquit"} {
			if got := strings.Contains(page, "action='"+command+"'"); got != want[i] {
				t.Errorf("%v: %s is shown: %t", role, command, got)
			}
		}
	}
}
