package admin

import (
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/store"
)

// originRows are header fields of a POST to 127.0.0.1:9901 unless they say
// otherwise.
var originRows = []struct {
	name    string
	host    string
	fields  []string
	allowed bool
}{
	// What browsers send.
	{"own-form-loopback", "", []string{"Origin: http://127.0.0.1:9901", "Sec-Fetch-Site: same-origin"}, true},
	{"foreign-form-loopback", "", []string{"Origin: http://evil.test:9901", "Sec-Fetch-Site: cross-site"}, false},
	{"other-port-same-site", "", []string{"Origin: http://127.0.0.1:8080", "Sec-Fetch-Site: same-site"}, false},
	{"sandboxed-iframe", "", []string{"Origin: null", "Sec-Fetch-Site: cross-site"}, false},
	{"fetch-no-cors", "", []string{"Origin: http://evil.test:9901", "Sec-Fetch-Site: cross-site"}, false},
	{"foreign-form-plain-http", "admin.lan:9901", []string{"Origin: http://evil.test:9901"}, false},
	{"own-form-plain-http", "admin.lan:9901", []string{"Origin: http://admin.lan:9901"}, true},
	{"address-typed", "", []string{"Sec-Fetch-Site: none"}, true},
	{"not-a-browser", "", nil, true},
	{"null-without-site", "", []string{"Origin: null"}, false},

	// Sec-Fetch-Site.
	{"site-cross", "", []string{"Sec-Fetch-Site: cross-site"}, false},
	{"site-same", "", []string{"Sec-Fetch-Site: same-site"}, false},
	{"site-unknown", "", []string{"Sec-Fetch-Site: friendly"}, false},
	{"site-empty", "", []string{"Sec-Fetch-Site: "}, false},
	{"site-upper-case", "", []string{"Sec-Fetch-Site: Same-Origin"}, false},
	{"site-list", "", []string{"Sec-Fetch-Site: same-origin, cross-site"}, false},
	{"site-twice", "", []string{"Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: same-origin"}, false},
	{"site-twice-differs", "", []string{"Sec-Fetch-Site: same-origin", "sec-fetch-site: cross-site"}, false},
	{"site-name-lower-case", "", []string{"sec-fetch-site: cross-site"}, false},
	{"site-name-upper-case", "", []string{"SEC-FETCH-SITE: cross-site"}, false},
	{"site-own-beats-origin", "", []string{"Origin: http://evil.test", "Sec-Fetch-Site: same-origin"}, true},
	{"site-foreign-beats-origin", "", []string{"Origin: http://127.0.0.1:9901", "Sec-Fetch-Site: cross-site"}, false},

	// Origin.
	{"origin-own", "", []string{"Origin: http://127.0.0.1:9901"}, true},
	{"origin-own-https", "", []string{"Origin: https://127.0.0.1:9901"}, true},
	{"origin-own-upper-case", "localhost:9901", []string{"Origin: HTTP://LOCALHOST:9901"}, true},
	{"origin-host-upper-case", "LOCALHOST:9901", []string{"Origin: http://localhost:9901"}, true},
	{"origin-other-port", "", []string{"Origin: http://127.0.0.1:9902"}, false},
	{"origin-no-port", "", []string{"Origin: http://127.0.0.1"}, false},
	{"origin-default-port", "localhost", []string{"Origin: http://localhost:80"}, true},
	{"origin-default-port-in-host", "localhost:80", []string{"Origin: http://localhost"}, true},
	{"origin-default-port-https", "localhost", []string{"Origin: https://localhost:443"}, true},
	{"origin-https-behind-http-port", "localhost:80", []string{"Origin: https://localhost"}, false},
	{"origin-ipv6", "[::1]:9901", []string{"Origin: http://[::1]:9901"}, true},
	{"origin-ipv6-other", "[::1]:9901", []string{"Origin: http://[::2]:9901"}, false},
	{"origin-ipv6-no-brackets", "[::1]:9901", []string{"Origin: http://::1:9901"}, false},
	{"origin-userinfo", "", []string{"Origin: http://user@127.0.0.1:9901"}, false},
	{"origin-userinfo-trick", "", []string{"Origin: http://127.0.0.1:9901@evil.test"}, false},
	{"origin-trailing-dot", "localhost:9901", []string{"Origin: http://localhost.:9901"}, false},
	{"origin-trailing-slash", "", []string{"Origin: http://127.0.0.1:9901/"}, false},
	{"origin-with-path", "", []string{"Origin: http://127.0.0.1:9901/x"}, false},
	{"origin-query", "", []string{"Origin: http://127.0.0.1:9901?x"}, false},
	{"origin-joined", "", []string{"Origin: http://127.0.0.1:9901, http://evil.test"}, false},
	{"origin-joined-by-space", "", []string{"Origin: http://127.0.0.1:9901 http://evil.test"}, false},
	{"origin-twice", "", []string{"Origin: http://127.0.0.1:9901", "Origin: http://127.0.0.1:9901"}, false},
	{"origin-twice-with-site", "", []string{"Origin: http://a.test", "Origin: http://b.test", "Sec-Fetch-Site: same-origin"}, false},
	{"origin-empty", "", []string{"Origin: "}, false},
	{"origin-no-scheme", "", []string{"Origin: 127.0.0.1:9901"}, false},
	{"origin-slashes-only", "", []string{"Origin: //127.0.0.1:9901"}, false},
	{"origin-other-scheme", "", []string{"Origin: file://127.0.0.1:9901"}, false},
	{"origin-extension", "", []string{"Origin: chrome-extension://abcdef"}, false},
	{"origin-null-upper-case", "", []string{"Origin: NULL"}, false},
	{"origin-suffix", "localhost:9901", []string{"Origin: http://localhost:9901.evil.test"}, false},
	{"origin-prefix", "localhost:9901", []string{"Origin: http://evillocalhost:9901"}, false},
	{"origin-long-port", "", []string{"Origin: http://127.0.0.1:099010"}, false},

	// Allowed origins.
	{"allowed", "", []string{"Origin: https://dash.example.com"}, true},
	{"allowed-with-site", "", []string{"Origin: https://dash.example.com", "Sec-Fetch-Site: cross-site"}, true},
	{"allowed-upper-case", "", []string{"Origin: HTTPS://Dash.example.com"}, true},
	{"allowed-port", "", []string{"Origin: http://dash.example.com:3000"}, true},
	{"allowed-other-scheme", "", []string{"Origin: http://dash.example.com"}, false},
	{"allowed-other-port", "", []string{"Origin: https://dash.example.com:8443"}, false},
	{"allowed-below", "", []string{"Origin: https://x.dash.example.com"}, false},
}

// postTo returns a whole POST request.
func postTo(path, host string, fields []string) string {
	if host == "" {
		host = "127.0.0.1:9901"
	}
	raw := "POST " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\nContent-Length: 0\r\n"
	for _, f := range fields {
		raw += f + "\r\n"
	}
	return raw + "\r\n"
}

func TestOrigins(t *testing.T) {
	world := newWorld()
	s := start(t, Config{Now: later(), Sources: world.sources(), AllowedHosts: []string{"admin.lan"},
		AllowedOrigins: []string{"https://dash.example.com", "http://dash.example.com:3000/"}})
	var paths []string
	for _, e := range s.Endpoints() {
		if e.Mutates {
			paths = append(paths, e.Path)
		}
	}
	for _, row := range originRows {
		t.Run(row.name, func(t *testing.T) {
			before, rejected := world.String(), s.metrics.csrf.Value()
			for _, path := range paths {
				answers := parseAnswers(t, talk(t, s, postTo(path+"?enable=y&a=b", row.host, row.fields)))
				if len(answers) != 1 {
					t.Fatalf("%s: %d answers", path, len(answers))
				}
				refused := answers[0].status == 403
				if refused == row.allowed {
					t.Errorf("%s: status %d, allowed: %t", path, answers[0].status, row.allowed)
				}
				if refused && !strings.Contains(answers[0].body, "allowed_origins") {
					t.Errorf("%s: body %q does not name the setting", path, answers[0].body)
				}
			}
			if row.allowed {
				return
			}
			if after := world.String(); after != before {
				t.Errorf("refused requests changed\n%s\nto\n%s", before, after)
			}
			if got := s.metrics.csrf.Value() - rejected; got != uint64(len(paths)) {
				t.Errorf("admin.csrf_rejected rose by %d, want %d", got, len(paths))
			}
			if e := s.Audit(1)[0]; e.Status != 403 || e.Reason == "" || e.Path != paths[len(paths)-1] {
				t.Errorf("audit entry %+v", e)
			}
		})
	}
}

// TestRefusalsDoNotFillTheAuditLog: all mutations that are refused, be it for the
// page, the mode or the role that they come from, are answered and counted, but
// only the first of a second are in the audit log and the log, so that they push
// nothing else out.
func TestRefusalsDoNotFillTheAuditLog(t *testing.T) {
	for _, row := range []struct {
		reason string
		cfg    Config
		first  []Field // of a mutation that is allowed
		others []Field
		count  func(*selfMetrics) *store.Counter
	}{
		{"foreign origin", Config{}, nil, []Field{{"Origin", "http://evil.test"}}, func(f *selfMetrics) *store.Counter { return f.csrf }},
		{"read only", Config{Mode: ModeReadOnly}, nil, nil, func(f *selfMetrics) *store.Counter { return f.classes[3] }},
		{"role", Config{Auth: &Auth{Tokens: testTokens(t)}}, []Field{bearer(secret(RoleAdmin))},
			[]Field{bearer(secret(RoleRead))}, func(f *selfMetrics) *store.Counter { return f.denied }},
	} {
		t.Run(row.reason, func(t *testing.T) {
			now, log := testTime(), new(logBuffer)
			row.cfg.Now, row.cfg.Logger, row.cfg.Limits.AuditEntries = func() time.Time { return now }, log.logger(), 50
			s := newServer(t, row.cfg)
			allowed := 0
			if row.cfg.Mode != ModeReadOnly {
				s.Request("POST", "/reset_counters", nil, row.first...)
				allowed = 1
			}
			counter := row.count(s.metrics)
			before := counter.Value()
			const many = 100
			for round := range 2 {
				for range many {
					if got := s.Request("POST", "/quitquitquit", nil, row.others...).Status; got != 403 {
						t.Fatalf("status %d, want 403", got)
					}
				}
				entries := s.Audit(1000)
				if want := allowed + (round+1)*failuresPerSec; len(entries) != want || strings.Count(log.String(), "msg=audit") != want {
					t.Errorf("%d audit entries and %d lines, want %d", len(entries), strings.Count(log.String(), "msg=audit"), want)
				}
				if e := entries[0]; e.Path != "/quitquitquit" || e.Status != 403 || e.Reason != row.reason {
					t.Errorf("the last entry is %+v", e)
				}
				if e := entries[len(entries)-1]; allowed == 1 && (e.Path != "/reset_counters" || e.Status != 200) {
					t.Errorf("the first entry is %+v", e)
				}
				if got := counter.Value() - before; got != uint64((round+1)*many) {
					t.Errorf("%d were counted, want %d", got, (round+1)*many)
				}
				now = now.Add(time.Second)
			}
			r := &Request{method: "POST", host: "localhost", fields: row.others, from: netip.MustParseAddr("10.0.0.9")}
			r.setTarget("/quitquitquit")
			for range failuresPerSec {
				s.refusals.note(netip.Addr{}, now)
			}
			w := s.response(memory{reply: new(Reply)}, r)
			if err := s.answer(w, r, false); err != nil || len(s.Audit(1000)) != allowed+2*failuresPerSec+1 {
				t.Errorf("another address has no entry of its own: %v, %d entries", err, len(s.Audit(1000)))
			}
		})
	}
}

func TestOtherMethods(t *testing.T) {
	s := start(t, Config{})
	for method, want := range map[string]int{"GET": 200, "HEAD": 200, "POST": 403, "PUT": 403, "DELETE": 403, "PATCH": 403, "OPTIONS": 403} {
		raw := request(method+" /ready HTTP/1.1", "Origin: http://evil.test", "Sec-Fetch-Site: cross-site", "Connection: close")
		if a := parseAnswers(t, talk(t, s, raw), method); len(a) != 1 || a[0].status != want {
			t.Errorf("%s: %+v, want status %d", method, a, want)
		}
	}
}

// TestLikeTheStandardLibrary compares the decision on random headers with
// that of net/http. Where they differ on purpose, ours is stricter, but for the
// default port and the case of the host.
func TestLikeTheStandardLibrary(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(list []string) string { return list[rng.IntN(len(list))] }
	hosts := []string{"localhost:9901", "127.0.0.1:9901", "[::1]:9901", "admin.lan:9901"}
	sites := []string{"-", "-", "same-origin", "none", "same-site", "cross-site", "x"}
	origins := []string{"-", "null", "https://dash.example.com", "http://evil.test", "x", "http://localhost:1"}
	for _, h := range hosts {
		origins = append(origins, "http://"+h, "https://"+h)
	}
	ours := newOriginCheck([]string{"https://dash.example.com"})
	theirs := http.NewCrossOriginProtection()
	if err := theirs.AddTrustedOrigin("https://dash.example.com"); err != nil {
		t.Fatal(err)
	}
	for range 100_000 {
		host, site, origin := pick(hosts), pick(sites), pick(origins)
		r := &Request{host: host}
		std, err := http.NewRequest("POST", "http://"+host+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Sec-Fetch-Site": site, "Origin": origin} {
			if value != "-" {
				r.fields = append(r.fields, Field{name, value})
				std.Header.Set(name, value)
			}
		}
		if got, want := ours.refuses(r) == "", theirs.Check(std) == nil; got != want {
			t.Fatalf("host %s, site %s, origin %s: allowed %t, net/http says %t", host, site, origin, got, want)
		}
	}
}

func TestReadOrigins(t *testing.T) {
	s := start(t, Config{ReadOrigins: []string{"https://dash.example.com"}})
	tests := []struct {
		origin, path, want string
	}{
		{"https://dash.example.com", "/ready", "https://dash.example.com"},
		{"https://evil.test", "/ready", ""},
		{"null", "/ready", ""},
		{"https://dash.example.com", "/quitquitquit", ""},
	}
	for _, tt := range tests {
		a := get(t, s, tt.path, "Origin: "+tt.origin)
		if got := a.header.Get("access-control-allow-origin"); got != tt.want {
			t.Errorf("%s from %s: access-control-allow-origin %q, want %q", tt.path, tt.origin, got, tt.want)
		}
	}
	both := newServer(t, Config{AllowedOrigins: []string{"https://dash.example.com"}, ReadOrigins: []string{"https://dash.example.com"}})
	for path, want := range map[string]string{"/reset_counters": "", "/ready": "https://dash.example.com"} {
		r := both.Request("POST", path, nil, Field{"Origin", "https://dash.example.com"})
		if got := r.Get("access-control-allow-origin"); r.Status != 200 || got != want {
			t.Errorf("POST %s: status %d, access-control-allow-origin %q, want %q", path, r.Status, got, want)
		}
	}
	a := get(t, s, "/help", "Origin: https://dash.example.com", "Accept-Encoding: gzip")
	if a.header.Get("content-encoding") != "gzip" || strings.Join(a.header.Values("vary"), ", ") != "origin, accept-encoding" {
		t.Errorf("content-encoding %q, vary %q", a.header.Get("content-encoding"), a.header.Values("vary"))
	}
	if a := get(t, s, "/ready"); len(a.header.Values("access-control-allow-origin")) > 0 {
		t.Error("an answer without a request for it allows an origin")
	}
	if n := len(originRows); n < 50 {
		t.Errorf("%d rows of origins, want 50", n)
	}
}
