package pages

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/statsd-admin/statsd-admin/admin"
)

// TestMountedPagesAnswerAsOnThePort gets every page and asset from the server's own
// port and below a prefix of a program's mux. The responses are the same, byte for
// byte, but for the address in commands to copy and its size: links are relative.
func TestMountedPagesAnswerAsOnThePort(t *testing.T) {
	srv := world(t, "plain", func(c *admin.Config) { c.Address = "127.0.0.1:0" })
	if err := srv.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- srv.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	mux := http.NewServeMux()
	mux.Handle("/ops/admin/", http.StripPrefix("/ops/admin", srv))
	program := httptest.NewServer(mux)
	defer program.Close()

	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	varying := regexp.MustCompile(`(data-value='[0-9]+'>)?[0-9.,]+(\x{202f}|</span> <small>)(µs|ms|[KM]iB)`) // durations and sizes
	get := func(base, path string) (*http.Response, []byte) {
		req, err := http.NewRequest("GET", base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "localhost"
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, varying.ReplaceAll(body, nil)
	}
	paths := []string{"/", "/ui", "/help"}
	for _, target := range targets {
		paths = append(paths, Prefix+strings.ReplaceAll(target, "%s", "plain"))
	}
	seen := map[string]bool{}
	for len(paths) > 0 {
		path := paths[0]
		paths = paths[1:]
		if seen[path] {
			continue
		}
		seen[path] = true
		want, body := get("http://"+srv.Addr().String(), path)
		got, mounted := get(program.URL+"/ops/admin", path)
		prefixed := []byte("http://localhost/ops/admin/")
		if bytes.Contains(bytes.ReplaceAll(mounted, prefixed, nil), []byte("http://localhost/")) {
			t.Errorf("%s: a command lacks the prefix", path)
		}
		mounted = bytes.ReplaceAll(mounted, prefixed, []byte("http://localhost/"))
		if got.StatusCode != want.StatusCode {
			t.Errorf("%s: status %d, want %d", path, got.StatusCode, want.StatusCode)
		}
		for _, name := range []string{"Content-Type", "Content-Security-Policy", "Cache-Control", "Etag", "Location", "X-Content-Type-Options", "Cross-Origin-Resource-Policy", "Server"} {
			if got.Header.Get(name) != want.Header.Get(name) {
				t.Errorf("%s: %s %q, want %q", path, name, got.Header.Get(name), want.Header.Get(name))
			}
		}
		ownStats := bytes.Contains(body, []byte("data-stat='http.admin.")) || bytes.Contains(body, []byte("data-stat='listener.admin."))
		if !ownStats && !bytes.Equal(mounted, body) { // the second request counts the first
			i := 0
			for i < min(len(mounted), len(body)) && mounted[i] == body[i] {
				i++
			}
			t.Errorf("%s: the bodies differ: %.100q, want %.100q", path, mounted[i:], body[i:])
		}
		if strings.HasPrefix(got.Header.Get("Location"), "/") {
			t.Errorf("%s leads out of the prefix: %s", path, got.Header.Get("Location"))
		}
		if strings.HasPrefix(got.Header.Get("Content-Type"), "text/html") {
			for _, asset := range checkRelative(t, path, mounted) {
				paths = append(paths, Prefix+asset)
			}
		}
	}
	if len(seen) < len(targets)+5 {
		t.Errorf("only %d addresses: the pages name no assets", len(seen))
	}
}

// checkRelative expects that no address on a page begins with a slash. It returns the
// assets that a live page names.
func checkRelative(t *testing.T, path string, body []byte) (assets []string) {
	t.Helper()
	for z := html.NewTokenizer(bytes.NewReader(body)); z.Next() != html.ErrorToken; {
		token := z.Token()
		for _, a := range token.Attr {
			switch a.Key {
			case "href", "src", "action", "formaction", "data-events", "data-stream", "data-stream-filter":
				if strings.HasPrefix(a.Val, "/") {
					t.Errorf("%s: %s=%q leads out of a prefix", path, a.Key, a.Val)
				}
				if (token.Data == "link" || token.Data == "script") && strings.HasPrefix(path, Prefix) {
					assets = append(assets, a.Val)
				}
			}
		}
	}
	return assets
}
