package admin

import "testing"

// TestFormsOfLivePagesReturnToThem expects a redirect for browsers that send a form
// of a live page of this server, and the plain response for everything else.
func TestFormsOfLivePagesReturnToThem(t *testing.T) {
	s := newServer(t, Config{Sources: newWorld().sources()})
	const browser = "text/html,application/xhtml+xml"
	for _, tt := range []struct{ name, path, referer, accept, want string }{
		{"page", "/reset_counters", "http://localhost/ui/stats", browser, "ui/stats?done="},
		{"deeper path", "/healthcheck/fail", "http://localhost/ui/", browser, "../ui/?done="},
		{"under a prefix", "/reset_counters", "http://localhost/admin/ui/runtime?key=a%20b&done=7", browser, "ui/runtime?key=a%20b&done="},
		{"strange query", "/reset_counters", "http://localhost/ui/stats?a=<b>&c=1", browser, "ui/stats?c=1&done="},
		{"program", "/reset_counters", "http://localhost/ui/stats", "*/*", ""},
		{"home page", "/reset_counters", "http://localhost/", browser, ""},
		{"other host", "/reset_counters", "http://evil.test/ui/stats", browser, ""},
		{"other page", "/reset_counters", "http://localhost/ui/../x", browser, ""},
		{"host in the path", "/reset_counters", "http://localhost/ui//evil.test", browser, ""},
		{"no referer", "/reset_counters", "", browser, ""},
		{"refused", "/reset_counters?nonsense=1", "http://localhost/ui/stats", browser, ""},
		{"not done", "/logging?level=nonsense", "http://localhost/ui/logging", browser, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := s.Request("POST", tt.path, nil, Field{"referer", tt.referer}, Field{"accept", tt.accept})
			got := r.Get("location")
			if tt.want == "" {
				if got != "" || r.Status == 303 {
					t.Errorf("%d to %q", r.Status, got)
				}
				return
			}
			if len(got) < len(tt.want) || got[:len(tt.want)] != tt.want || r.Status != 303 || string(r.Body) != "OK\n" {
				t.Errorf("%d to %q, body %q, want %q", r.Status, got, r.Body, tt.want)
			}
		})
	}
}
