package admin

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/descriptors"
	"github.com/statsd-admin/statsd-admin/internal/golden"
)

// secret returns the token of a role in tests.
func secret(role Role) string { return "canary-token-of-role-" + role.String() }

func bearer(token string) Field { return Field{"Authorization", "Bearer " + token} }

func basic(user, password string) Field {
	return Field{"authorization", "basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))}
}

// roles are all possible roles.
func roles() []Role { return []Role{RoleMetrics, RoleRead, RoleOperate, RoleAdmin} }

func testTokens(t testing.TB) *Tokens {
	t.Helper()
	var list []Token
	for _, role := range roles() {
		token, err := NewToken("t-"+role.String(), role, secret(role))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, token)
	}
	return NewTokens(list...)
}

// later returns a clock that advances by a second on each call.
func later() func() time.Time {
	var n atomic.Int64
	return func() time.Time { return testTime().Add(time.Duration(n.Add(1)) * time.Second) }
}

// impatient makes a server answer invalid credentials without delay.
func impatient(s *Server) *Server {
	s.auth.delay = 0
	return s
}

// caller is a kind of credentials.
type caller struct {
	name   string
	client *http.Client
	base   string
	fields []Field
}

// callers returns servers and clients for all kinds of credentials.
func callers(t *testing.T, world *world) []caller {
	ca := newAuthority(t)
	var certs []CertificateRole
	for _, role := range roles() {
		certs = append(certs, CertificateRole{"uri:spiffe://test/" + role.String(), role})
	}
	auth := Auth{Tokens: testTokens(t), ClientCertificates: certs}
	port := impatient(start(t, Config{Sources: world.sources(), Auth: &auth, TLS: ca.settings(tls.VerifyClientCertIfGiven), Now: later()}))
	base := "https://" + port.Addr().String()
	nobody := ca.client()
	out := []caller{
		{"none", nobody, base, nil},
		{"wrong", nobody, base, []Field{bearer(secret(RoleAdmin) + "x")}},
		{"cert", ca.client(ca.named("spiffe://test/nobody")), base, nil},
	}
	for _, role := range roles() {
		out = append(out,
			caller{"bearer", nobody, base, []Field{bearer(secret(role))}},
			caller{"basic", nobody, base, []Field{basic("any", secret(role))}},
			caller{"cert", ca.client(ca.named("spiffe://test/" + role.String())), base, nil},
			caller{"unix", unixClient(t, world, role), "http://localhost", nil},
		)
	}
	return out
}

// unixClient returns a client of a server that assigns a role to the current user.
func unixClient(t *testing.T, world *world, role Role) *http.Client {
	path := filepath.Join(t.TempDir(), "s")
	peer := PeerRole{ID: uint32(os.Getuid()), Role: role}
	if role == RoleRead {
		peer = PeerRole{Group: true, ID: uint32(os.Getgid()), Role: role}
	}
	others := []PeerRole{{ID: 4_000_000_000, Role: RoleNone}, {Group: true, ID: 4_000_000_000, Role: RoleAdmin}}
	impatient(start(t, Config{Address: "unix:" + path, Sources: world.sources(), Auth: &Auth{UnixPeers: append(others, peer)}, Now: later()}))
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// TestMatrix requests every path with every kind of credentials over real
// connections.
func TestMatrix(t *testing.T) {
	world := newWorld()
	all := callers(t, world)
	rows := newServer(t, Config{Sources: world.sources(), DebugEndpoints: true}).Endpoints()
	out := "Status by credential. Columns: no credentials, a wrong token, a certificate without a role,\n" +
		"then for the roles metrics, read, operate and admin: bearer, basic, certificate, unix socket.\n\n"
	cells := 0
	for _, e := range rows {
		if strings.HasPrefix(e.Path, "/debug/") {
			continue // tested on its own: profiles take their time
		}
		method, query := "GET", ""
		if e.Mutates {
			method = "POST"
		}
		if q := map[string]string{"/runtime_modify": "?a=b", "/ingest/explain": "?line=a", "/ingest/forget": "?name=a", "/stats/explain": "?name=server.admin_exposed", "/stats/histogram": "?filter=a",
			"/cpuprofiler": "?enable=n", "/heapprofiler": "?enable=n"}[e.Path]; q != "" {
			query = q
		}
		out += fmt.Sprintf("%-4s %-29s", method, e.Path)
		for i, c := range all {
			if i >= 3 && (i-3)%4 == 0 {
				out += " "
			}
			before := effects(world)
			status, body := ask(t, c.client, method, c.base+e.Path+query, c.fields...)
			out += fmt.Sprintf(" %d", status)
			cells++
			for deadline := time.Now().Add(30 * time.Second); e.Path == "/quitquitquit" && status == 200 && world.String() == before; {
				if time.Now().After(deadline) {
					t.Fatalf("%s as %s: no effect", e.Path, c.name)
				}
				time.Sleep(time.Millisecond) // it begins once the answer was sent
			}
			if (status == 401 || status == 403) && effects(world) != before {
				t.Errorf("%s as %s: refused, and yet it has an effect", e.Path, c.name)
			}
			if strings.Contains(body, "canary-token") {
				t.Errorf("%s as %s: the answer shows a token", e.Path, c.name)
			}
		}
		out += "\n"
	}
	golden.Check(t, "roles", []byte(out))
	if cells < 600 {
		t.Errorf("%d cells are too few to be all", cells)
	}
}

// effects returns all changes made by requests except the shutdown, which starts some
// time after the response.
func effects(w *world) string {
	return strings.ReplaceAll(strings.ReplaceAll(w.String(), "quit", ""), " ", "")
}

// TestCredentials sends credentials that look almost right.
func TestCredentials(t *testing.T) {
	short, err := NewToken("short", RoleAdmin, strings.Repeat("x", 22))
	if err != nil {
		t.Fatal(err)
	}
	short.Digest = sha256.Sum256([]byte("short"))
	tokens := testTokens(t)
	tokens.Set(append(*tokens.list.Load(), short))
	s := impatient(newServer(t, Config{Auth: &Auth{Tokens: tokens}, Now: later()}))
	right := secret(RoleRead)
	for _, tt := range []struct {
		want   int
		fields []Field
	}{
		{200, []Field{bearer(right)}},
		{200, []Field{{"AUTHORIZATION", "bearer " + right}}},
		{200, []Field{{"Authorization", "BEARER   " + right + " "}}},
		{200, []Field{basic("", right)}},
		{200, []Field{basic("a@b", right)}},
		{401, []Field{basic(right, "")}},
		{401, []Field{basic("user:x", right)}},
		{401, []Field{{"Authorization", right}}},
		{401, []Field{{"Authorization", "Digest " + right}}},
		{401, []Field{{"Authorization", "Basic " + right}}},
		{401, []Field{{"Authorization", ""}}},
		{401, []Field{{"Authorization", "Bearer"}}},
		{401, []Field{bearer(right[:len(right)-1])}},
		{401, []Field{bearer(right + "\x00")}},
		{401, []Field{bearer(strings.ToUpper(right))}},
		{401, []Field{bearer("short")}},
		{401, []Field{bearer(right), bearer(right)}},
		{401, []Field{bearer("x"), bearer(right)}},
		{401, []Field{{"Proxy-Authorization", "Bearer " + right}}},
		{401, []Field{{"Cookie", "token=" + right}}},
	} {
		// In an in-process call the sender is the program unless it sends
		// credentials, so the cases without credentials use a socket below.
		if !slices.ContainsFunc(tt.fields, func(f Field) bool { return strings.EqualFold(f.Name, "authorization") }) {
			continue
		}
		if got := s.Request("GET", "/help", nil, tt.fields...).Status; got != tt.want {
			t.Errorf("%q: status %d, want %d", tt.fields, got, tt.want)
		}
	}
	port := impatient(start(t, Config{Auth: &Auth{Tokens: tokens, OpenPaths: []string{"/ready", "/live"}}, Now: later()}))
	for raw, want := range map[string]int{
		request("GET /help HTTP/1.1", "Proxy-Authorization: Bearer "+right):                     401,
		request("GET /help HTTP/1.1", "Cookie: token="+right):                                   401,
		request("GET /help?access_token=" + right + " HTTP/1.1"):                                401,
		request("GET /nothing HTTP/1.1"):                                                        401,
		request("GET /ready HTTP/1.1"):                                                          200,
		request("POST /live HTTP/1.1", "Content-Length: 0"):                                     200,
		request("GET /ready? HTTP/1.1", "Authorization: Bearer wrong"):                          200,
		request("GET /ready/ HTTP/1.1"):                                                         401,
		request("GET //ready HTTP/1.1"):                                                         401,
		request("GET /ready/../help HTTP/1.1"):                                                  401,
		request("GET /stats HTTP/1.1"):                                                          401,
		request("POST /quitquitquit HTTP/1.1", "Authorization: Bearer "+right):                  403,
		request("GET /nothing HTTP/1.1", "Authorization: Bearer "+right):                        404,
		request("GET /nothing HTTP/1.1", "Authorization: Bearer "+secret(RoleMetrics)):          403,
		"GET http://x:" + right + "@localhost/help HTTP/1.1\r\nHost: localhost\r\n\r\n":         403,
		request("GET /help HTTP/1.1", "Authorization: Bearer "+right, "Authorization: Basic x"): 401,
	} {
		a := parseAnswers(t, talk(t, port, strings.Replace(raw, "\r\n", "\r\nConnection: close\r\n", 1)))
		if len(a) != 1 || a[0].status != want {
			t.Errorf("%q: %+v, want status %d", raw, a, want)
		}
		if got := a[0].header.Values("Www-Authenticate"); (len(got) == 2) != (want == 401) {
			t.Errorf("%q: %q", raw, got)
		}
	}
	// A page has a form of its own, so that the browser need not ask.
	for raw, want := range map[string]int{
		request("GET /stats HTTP/1.1", "Sec-Fetch-Dest: empty"):                 1,
		request("GET /stats HTTP/1.1", "Sec-Fetch-Dest: empty", "X-Sign-In: 1"): 2,
		request("GET /stats HTTP/1.1", "Sec-Fetch-Dest: document"):              2,
	} {
		a := parseAnswers(t, talk(t, port, strings.Replace(raw, "\r\n", "\r\nConnection: close\r\n", 1)))
		if len(a) != 1 || len(a[0].header.Values("Www-Authenticate")) != want {
			t.Errorf("%q: %+v, want %d challenges", raw, a, want)
		}
	}
}

// TestSecretsStaySecret puts tokens into everything that a log or a response could
// show.
func TestSecretsStaySecret(t *testing.T) {
	log := new(logBuffer)
	shown := new(logBuffer)
	world := newWorld()
	s := impatient(start(t, Config{
		Auth: &Auth{Tokens: testTokens(t)}, Sources: world.sources(), Logger: log.logger(), Now: later(),
		AccessLog: func(a Access) {
			fmt.Fprintf(shown, "%+v", a.Principal)
			for _, name := range []string{"authorization", "Authorization", "proxy-authorization", "Proxy-Authorization", "cookie", "COOKIE", "x-api-key", "X-Api-Key", "user-agent"} {
				fmt.Fprintf(shown, " %q", a.RequestHeader(name))
			}
			fmt.Fprintln(shown)
		},
	}))
	s.Handle(Endpoint{Path: "/panics", Serve: func(_ *Response, r *Request) error { panic(r.Header("authorization") + r.Header("x-kept")) }})
	s.Handle(Endpoint{Path: "/fields", Serve: func(w *Response, r *Request) error {
		_, err := fmt.Fprint(w, r.fields, r.Principal())
		return err
	}})
	token := secret(RoleAdmin)
	var all strings.Builder
	for _, raw := range []string{
		request("POST /logging?level=info HTTP/1.1", "Authorization: Bearer "+token),
		request("POST /logging?level=info HTTP/1.1", "Authorization: Bearer "+secret(RoleRead)),
		request("POST /logging HTTP/1.1", "Authorization: Bearer wrong-"+token),
		request("GET /panics HTTP/1.1", "Authorization: Bearer "+token, "X-Kept: canary-token"),
		request("GET /help HTTP/1.1", "Authorization: Bearer "+token, "Proxy-Authorization: "+token, "Cookie: "+token, "X-Api-Key: "+token, "User-Agent: kept"),
		request("GET /fields HTTP/1.1", "Authorization: Bearer "+token),
		request("GET /server_info HTTP/1.1", "Authorization: Bearer "+token),
		request("GET /help HTTP/1.1", "Authorization: Bearer "+token, "Transfer-Encoding: chunked") + "0\r\n\r\n",
		request("GET /help HTTP/1.1", "Authorization: Bearer "+token, "X: "+strings.Repeat("x", 9000)),
		request("GET  HTTP/9", "Authorization: Bearer "+token),
	} {
		all.WriteString(talk(t, s, strings.Replace(raw, "\r\n", "\r\nConnection: close\r\n", 1)))
	}
	for _, e := range s.Audit(100) {
		fmt.Fprintf(&all, "%+v\n", e)
	}
	for what, text := range map[string]string{"the log": log.String(), "the access log": shown.String(), "the answers and the audit log": all.String()} {
		if strings.Contains(text, "canary-token") {
			t.Errorf("%s shows a token:\n%s", what, text)
		}
	}
	if !strings.Contains(all.String(), "{t-admin admin}") || !strings.Contains(shown.String(), `{Name:t-admin Role:admin} "" "" "" "" "" "" "" "" "kept"`) {
		t.Errorf("nothing tells who it was:\n%s\n%s", all.String(), shown.String())
	}
	entries := s.Audit(10)
	want := []AuditEntry{
		{Method: "POST", Path: "/logging", Status: 401, Reason: "not authenticated"},
		{Method: "POST", Path: "/logging", Status: 403, Reason: "role", Principal: Principal{"t-read", RoleRead}},
		{Method: "POST", Path: "/logging", Status: 200, Principal: Principal{"t-admin", RoleAdmin}},
	}
	if len(entries) != len(want) {
		t.Fatalf("%d audit entries, want %d", len(entries), len(want))
	}
	for i, e := range entries {
		w := want[i]
		if e.Method != w.Method || e.Path != w.Path || e.Status != w.Status || e.Reason != w.Reason || e.Principal != w.Principal {
			t.Errorf("audit entry %+v, want %+v", e, w)
		}
	}
	for _, line := range []string{"principal=t-admin role=admin", "principal=t-read role=read"} {
		if !strings.Contains(log.String(), line) {
			t.Errorf("the log lacks %q", line)
		}
	}
}

// TestFailuresAreLimited checks that within one second only the first requests with
// invalid credentials get a 401.
func TestFailuresAreLimited(t *testing.T) {
	now := testTime()
	s := impatient(newServer(t, Config{Auth: &Auth{Tokens: testTokens(t)}, Now: func() time.Time { return now }}))
	count := func() (statuses map[int]int) {
		statuses = map[int]int{}
		for range 50 {
			statuses[s.Request("GET", "/help", nil, bearer("wrong")).Status]++
		}
		return statuses
	}
	for range 2 {
		if got := count(); got[401] != failuresPerSec || got[429] != 50-failuresPerSec {
			t.Errorf("%v", got)
		}
		if got := s.Request("GET", "/help", nil, bearer(secret(RoleRead))).Status; got != 200 {
			t.Errorf("the right token has status %d", got)
		}
		now = now.Add(time.Second)
	}
	if got := s.metrics.unauthenticated.Value(); got != 100 {
		t.Errorf("admin.auth_rejected is %d, want 100", got)
	}
}

// TestReloadRace replaces tokens in use: at any moment either the old or the new ones
// are valid, and a token in both always is.
func TestReloadRace(t *testing.T) {
	tokens := testTokens(t)
	old := *tokens.list.Load()
	s := impatient(newServer(t, Config{Auth: &Auth{Tokens: tokens}, Now: later()}))
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 300 {
				if got := s.Request("GET", "/help", nil, bearer(secret(RoleAdmin))).Status; got != 200 {
					t.Errorf("a token that stays has status %d", got)
				}
				if got := s.Request("GET", "/help", nil, bearer(secret(RoleRead))).Status; got != 200 && got != 401 && got != 429 {
					t.Errorf("a token that comes and goes has status %d", got)
				}
			}
			stop.Store(true)
		})
	}
	for i := 0; !stop.Load(); i++ {
		tokens.Set(old[3-i%2*3:])
	}
	wg.Wait()
	tokens.Set(nil)
	if got := s.Request("GET", "/help", nil, bearer(secret(RoleAdmin))).Status; got != 401 {
		t.Errorf("a token that was taken back has status %d", got)
	}
}

func TestParseTokens(t *testing.T) {
	digest := strings.Repeat("0aF1", 16)
	list, err := ParseTokens([]byte("# made by hand\n\nread:" + digest + ":prometheus: the one in Bonn\r\n  admin:" + digest + ":\n"))
	if err != nil || len(list) != 2 || list[0].Name != "prometheus: the one in Bonn" || list[0].Role != RoleRead || list[1].Role != RoleAdmin ||
		hex.EncodeToString(list[1].Digest[:]) != strings.ToLower(digest) {
		t.Errorf("%+v, %v", list, err)
	}
	for text, want := range map[string]string{
		"read:" + digest:                "line 1 is not role:sha256:name",
		"\nroot:" + digest + ":x":       "line 2: the role is not one of metrics, read, operate, admin",
		"none:" + digest + ":x":         "line 1: the role is not one of",
		"read:" + digest[1:] + ":x":     "line 1: the digest is not 64 hexadecimal digits",
		"read:" + digest + "00:x":       "line 1: the digest is not 64 hexadecimal digits",
		"read:g" + digest[1:] + ":x":    "line 1: the digest is not 64 hexadecimal digits",
		"canary-secret-in-clear":        "line 1 is not role:sha256:name",
		"canary-secret:" + digest + ":": "line 1: the role",
	} {
		if _, err := ParseTokens([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestParseTokensReportsAllLines has more errors than are reported.
func TestParseTokensReportsAllLines(t *testing.T) {
	_, err := ParseTokens([]byte("read\n# \nroot:x:y\n"))
	const want = "admin: tokens: line 1 is not role:sha256:name; admin: tokens: line 3: the role is not one of metrics, read, operate, admin"
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	_, err = ParseTokens([]byte(strings.Repeat("x\n", 1000)))
	if list, ok := err.(interface{ Unwrap() []error }); !ok || len(list.Unwrap()) != maxTokenErrors {
		t.Errorf("%v", err)
	}
}

func TestReadTokens(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tokens")
	text := "metrics:" + strings.Repeat("ab", 32) + ":p\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		mode os.FileMode
		ok   bool
	}{{0o600, true}, {0o400, true}, {0o640, false}, {0o604, false}, {0o620, false}, {0o602, false}, {0o666, false}} {
		if err := os.Chmod(path, tt.mode); err != nil {
			t.Fatal(err)
		}
		if list, err := ReadTokens(path); (err == nil) != tt.ok || tt.ok && len(list) != 1 {
			t.Errorf("mode %o: %v, %v", tt.mode, list, err)
		} else if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("%04o", tt.mode)) {
			t.Errorf("mode %o: %v", tt.mode, err)
		}
	}
	for _, bad := range []string{dir, filepath.Join(dir, "none")} {
		if _, err := ReadTokens(bad); err == nil {
			t.Errorf("%s can be read", bad)
		}
	}
	wrong := filepath.Join(dir, "wrong")
	if err := os.WriteFile(wrong, []byte(text+"metrics:0:canary\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTokens(wrong); err == nil || !strings.Contains(err.Error(), "line 2") || !strings.Contains(err.Error(), wrong) || strings.Contains(err.Error(), "canary") {
		t.Errorf("a wrong line: %v", err)
	}
	big := filepath.Join(dir, "big")
	if err := os.WriteFile(big, make([]byte, maxTokensBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTokens(big); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a file that is too large: %v", err)
	}
	descriptors.Check(t, "tokens", func() { _, _ = ReadTokens(wrong) })
}

func TestWrongAuthIsRefused(t *testing.T) {
	for want, auth := range map[string]*Auth{
		`certificate name "ops.test"`: {ClientCertificates: []CertificateRole{{"ops.test", RoleRead}}},
		`certificate name "dns:"`:     {ClientCertificates: []CertificateRole{{"dns:", RoleRead}}},
		`open path "/quitquitquit"`:   {OpenPaths: []string{"/quitquitquit"}},
		`open path "/help"`:           {OpenPaths: []string{"/ready", "/help"}},
		`open path "/none"`:           {OpenPaths: []string{"/none"}},
	} {
		if _, err := New(Config{Auth: auth}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", auth, err)
		}
	}
	if _, err := NewToken("x", RoleRead, strings.Repeat("x", 21)); err == nil {
		t.Error("a token of 21 bytes is accepted")
	}
	for _, name := range []string{"", "none", "root", "Admin"} {
		if _, err := ParseRole(name); err == nil {
			t.Errorf("%q is a role", name)
		}
	}
}

// FuzzParseTokens checks that accepted tokens have a role and survive a round trip.
func FuzzParseTokens(f *testing.F) {
	f.Add([]byte("read:" + strings.Repeat("0f", 32) + ":name\n#\n\nadmin:x:"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := ParseTokens(text)
		if err != nil {
			return
		}
		var again strings.Builder
		for _, token := range list {
			fmt.Fprintf(&again, "%s:%x:%s\n", token.Role, token.Digest, token.Name)
		}
		second, err := ParseTokens([]byte(again.String()))
		if err != nil || !slices.Equal(list, second) {
			t.Errorf("%q: %v, then %v, %v", text, list, second, err)
		}
	})
}
