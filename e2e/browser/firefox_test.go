package browser

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
	"github.com/statsd-admin/statsd-admin/e2e/need"
)

// scratch returns a new directory. Children of a killed process may write to it while it
// is removed.
func scratch(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "firefox")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// TestFirefox opens pages in Firefox. The requests show that it has loaded the style
// sheet and run the scripts, and with them the policy permits all that they do: the page
// asks for the state of the server, and reads the streams.
func TestFirefox(t *testing.T) {
	t.Parallel()
	program := need.Program(t, "firefox-esr")
	d := start(t)
	to, err := url.Parse(base(d))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.FlushInterval = -1
	var mu sync.Mutex
	asked := map[string]bool{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]] = true
		mu.Unlock()
		defer func() { _ = recover() }() // the proxy panics when the client is gone
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	for _, page := range []struct {
		path string
		want []string
	}{
		{"/", []string{"admin.css", "admin.js", "theme.js"}},
		{"/ui/stats", []string{"admin.css", "admin.js", "watch.js", "server_info", "stream"}},
		{"/ui/clusters", []string{"admin.css", "admin.js", "watch.js", "server_info"}},
		{"/ui/circuits", []string{"circuits.js", "circuit_event_stream"}},
	} {
		mu.Lock()
		clear(asked)
		mu.Unlock()
		ctx, cancel := context.WithCancel(t.Context())
		firefox := exec.CommandContext(ctx, program, "--headless", "--no-remote", "--profile", scratch(t), s.URL+page.path)
		firefox.Env = append(firefox.Environ(), "HOME="+scratch(t), "MOZ_HEADLESS=1", "MOZ_DISABLE_CONTENT_SANDBOX=1")
		if err := firefox.Start(); err != nil {
			cancel()
			t.Fatal(err)
		}
		daemon.Until(t, "the requests of "+page.path, func() bool {
			mu.Lock()
			defer mu.Unlock()
			for _, want := range page.want {
				if !asked[want] {
					return false
				}
			}
			return true
		})
		cancel()
		_ = firefox.Wait() // it was killed
	}
}
