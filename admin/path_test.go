package admin

import (
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/match"
)

// pathRows are paths that other servers would normalize to a registered path.
func pathRows() []string {
	var rows []string
	for _, path := range []string{"/config_dump", "/quitquitquit", "/certs", "/runtime", "/logging", "/server_info", "/stats", "/help", "/memory"} {
		name := path[1:]
		rows = append(rows, path, path+"/", path+"//", "/"+path, "//"+name+"/", "/./"+name, "/../"+name, "/x/.."+path, "/x/../"+name+"/.",
			path+"/.", path+"/..", path+"/x", path+"%2f", path+"%00", path+"%20", path+"+", path+";x", path+"#x", path+"%3f", path+"%23",
			"/%2e%2e"+path, "/%2e"+path, "/%2f"+name, "/"+"%"+"63"+name[1:], strings.ToUpper(path), path[:len(path)-1], path+"x", path+".",
			"/ready/.."+path, "/ready/../"+name, "/ready%2f..%2f"+name, "/ready/%2e%2e/"+name, "/ready;"+path, "/ready%3f/../"+name,
			"/ready#/../"+name, "/stats/metrics/../.."+path, "/stats/metrics/%2e%2e/%2e%2e"+path, "/stats/metrics%2f..%2f..%2f"+name,
			"/stats/metrics/..;"+path, "/stats/metrics\\..\\.."+path, "/ready\\.."+path, "/\\"+name)
	}
	return append(rows, "*", "/ready/", "/READY", "//ready", "/ready%20", "/rea%64y", "/ready.")
}

func TestAllowedPathsCannotBeWalkedOutOf(t *testing.T) {
	s := start(t, Config{AllowPaths: match.List{match.Exact("/ready"), match.Prefix("/stats/metrics")}, Sources: newWorld().sources()})
	rows := pathRows()
	if len(rows) < 300 {
		t.Errorf("%d rows, want 300", len(rows))
	}
	for _, target := range rows {
		method := "GET"
		a := parseAnswers(t, talk(t, s, request(method+" "+target+" HTTP/1.1", "Connection: close")))
		want := 403
		if strings.HasPrefix(target, "/stats/metrics") {
			want = 404 // let through, and unknown
		}
		if len(a) != 1 || a[0].status != want && a[0].status != 400 {
			t.Errorf("GET %s: %+v, want status %d", target, a, want)
		}
	}
	for target, want := range map[string]int{"/ready": 200, "/ready?x": 403, "/stats/metrics": 200, "/stats/metrics?usedonly": 200, "/stats/metricsx": 404} {
		if a := get(t, s, target); a.status != want {
			t.Errorf("GET %s: %+v, want status %d", target, a, want)
		}
	}
	if a := parseAnswers(t, talk(t, s, request("GET http://localhost/help HTTP/1.1", "Connection: close"))); a[0].status != 403 || a[0].body != "request to path /help not allowed\n" {
		t.Errorf("absolute form: %+v", a)
	}
}

func TestOddPathsAreUnknown(t *testing.T) {
	s := start(t, Config{Sources: newWorld().sources()})
	known := s.table.Load().byPath
	for _, target := range pathRows() {
		path, _, _ := strings.Cut(target, "?")
		a := parseAnswers(t, talk(t, s, request("GET "+target+" HTTP/1.1", "Connection: close")))
		if len(a) != 1 || known[path] == nil && a[0].status != 404 && a[0].status != 400 {
			t.Errorf("GET %s: %+v", target, a)
		}
	}
}

func TestSplitTarget(t *testing.T) {
	tests := []struct {
		in, authority, rest string
		ok                  bool
	}{
		{"/", "", "/", true}, {"/a?b", "", "/a?b", true}, {"*", "", "*", true}, {"//host/x", "", "//host/x", true},
		{"http://h/a?b", "h", "/a?b", true}, {"HTTPS://h:1/a", "h:1", "/a", true}, {"http://h", "h", "/", true},
		{"http://h?a", "h", "/?a", true}, {"http:///a", "", "/a", false}, {"http://", "", "/", false}, {"ftp://h/a", "", "", false},
		{"h:80", "", "", false}, {"a", "", "", false}, {"", "", "", false}, {"**", "", "", false}, {"?a", "", "", false},
	}
	for _, tt := range tests {
		authority, rest, ok := splitTarget(tt.in)
		if ok != tt.ok || ok && (authority != tt.authority || rest != tt.rest) {
			t.Errorf("splitTarget(%q) = %q, %q, %t", tt.in, authority, rest, ok)
		}
	}
}

// FuzzPath checks that only the exact path finds an endpoint.
func FuzzPath(f *testing.F) {
	for _, target := range pathRows() {
		f.Add(target)
	}
	f.Add("/ready?x")
	f.Add("/help?")
	s := newServer(f, Config{})
	known := s.table.Load().byPath
	f.Fuzz(func(t *testing.T, target string) {
		path, _, _ := strings.Cut(target, "?")
		if e := known[path]; e != nil && (e.Heavy || e.Mutates) {
			return
		}
		status := s.Request("GET", target, nil).Status
		switch {
		case status == 400, status == 414:
		case known[path] == nil && status != 404:
			t.Errorf("GET %q: status %d", target, status)
		case known[path] != nil && status != 200:
			t.Errorf("GET %q: status %d", target, status)
		}
	})
}
