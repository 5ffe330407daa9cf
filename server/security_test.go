package server_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/internal/certtest"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/certs"
	"github.com/statsd-admin/statsd-admin/server/logctl"
)

// fromYAML returns the settings of a bootstrap text, in which $DIR stands for dir.
func fromYAML(t *testing.T, dir, text string) server.Config {
	t.Helper()
	c, err := bootstrap.Parse("a.yaml", []byte(strings.ReplaceAll(text, "$DIR", dir)), bootstrap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := c.Server(bootstrap.Startup{})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// writeFile atomically writes a file with owner-only permissions.
func writeFile(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func digest(token string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(token))) }

// status sends a request with a token, unless empty, and returns the status of the
// response.
func status(t *testing.T, c *http.Client, method, url, token string) int {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

// TestTokensFileInBusyDirectory checks that a token file is reloaded despite constant
// other changes in its directory.
func TestTokensFileInBusyDirectory(t *testing.T) {
	dir := t.TempDir()
	const first, second = "token-in-the-first-file-", "token-in-the-second-file"
	file := filepath.Join(dir, "tokens")
	writeFile(t, file, []byte("read:"+digest(first)+":first\n"))
	r := start(t, fromYAML(t, dir, `
admin:
  address: {socket_address: {address: 127.0.0.1, port_value: 0}}
  auth: {tokens_file: $DIR/tokens}
`))
	enough := make(chan struct{})
	var noise sync.WaitGroup
	defer noise.Wait()
	defer close(enough)
	noise.Go(func() {
		for {
			select {
			case <-enough:
				return
			case <-time.After(10 * time.Millisecond):
				_ = os.WriteFile(filepath.Join(dir, "log"), []byte("line\n"), 0o600) // any content will do
			}
		}
	})
	writeFile(t, file, []byte("read:"+digest(second)+":second\n"))
	waittest.Until(t, "the new file is read", func() bool { return status(t, http.DefaultClient, "GET", r.url+"/help", second) == 200 })
}

// TestTokensFile starts with tokens from a file and from the configuration, and
// replaces the file.
func TestTokensFile(t *testing.T) {
	dir := t.TempDir()
	const own, first, second = "token-in-the-configuration", "token-in-the-first-file-", "token-in-the-second-file"
	file := filepath.Join(dir, "tokens")
	writeFile(t, file, []byte("read:"+digest(first)+":first\n"))
	cfg := fromYAML(t, dir, `
admin:
  address: {socket_address: {address: 127.0.0.1, port_value: 0}}
  auth:
    tokens_file: $DIR/tokens
    tokens: [{name: own, role: operate, sha256: `+digest(own)+`}]
    open_paths: [/ready]
`)
	r := start(t, cfg)
	ask := func(path, token string) int { return status(t, http.DefaultClient, "GET", r.url+path, token) }
	for _, tt := range []struct {
		path, token string
		want        int
	}{{"/help", "", 401}, {"/ready", "", 200}, {"/help", first, 200}, {"/help", own, 200}, {"/help", second, 401}} {
		if got := ask(tt.path, tt.token); got != tt.want {
			t.Errorf("%s with %q: status %d, want %d", tt.path, tt.token, got, tt.want)
		}
	}
	if got := status(t, http.DefaultClient, "POST", r.url+"/reset_counters", own); got != 200 {
		t.Errorf("the role operate: status %d", got)
	}
	if got := r.Admin().Audit(1)[0].Principal; got != (admin.Principal{Name: "own", Role: admin.RoleOperate}) {
		t.Errorf("the audit log names %+v", got)
	}
	// An invalid file changes nothing; a valid one takes effect without a signal.
	writeFile(t, file, []byte("nonsense"))
	r.Reload()
	if got := ask("/help", first); got != 200 {
		t.Errorf("after a wrong file: status %d", got)
	}
	writeFile(t, file, []byte("read:"+digest(second)+":second\n"))
	waittest.Until(t, "the new file is read", func() bool { return ask("/help", second) == 200 })
	if got := ask("/help", first); got != 401 && got != 429 {
		t.Errorf("a token that was taken out of the file: status %d", got)
	}
	if got := ask("/help", own); got != 200 {
		t.Errorf("the token of the configuration: status %d", got)
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := server.New(cfg); err == nil || !strings.Contains(err.Error(), "mode 0640") {
		t.Errorf("a file that others can read: %v", err)
	}
}

// TestErrorsInSecretFilesHaveAPosition puts garbage into the files that a
// configuration names. The error has the position of the name.
// TestLastReloadWins: when SIGHUP and the watch of the file reload at once, the content
// that was read later is in use. Otherwise a revoked token could stay valid.
func TestLastReloadWins(t *testing.T) {
	dir := t.TempDir()
	put := func(i int) (token string) {
		token = fmt.Sprintf("token %d of this server", i)
		writeFile(t, dir+"/tokens", fmt.Appendf(nil, "read:%s:n\n", digest(token)))
		return token
	}
	put(0)
	loggers, err := logctl.New(logctl.Config{Output: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Config{AdminTokens: dir + "/tokens", Loggers: loggers})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		put(2*i + 1)
		var early sync.WaitGroup
		early.Go(s.Reload)
		token := put(2*i + 2)
		s.Reload()
		early.Wait()
		r := httptest.NewRequest("GET", "http://localhost/server_info", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		s.Admin().ServeHTTP(w, r)
		if w.Code != 200 {
			t.Fatalf("round %d: status %d with the new token", i, w.Code)
		}
	}
}

func TestErrorsInSecretFilesHaveAPosition(t *testing.T) {
	dir := t.TempDir()
	pair(t, dir, 1, time.Now().Add(time.Hour))
	writeFile(t, filepath.Join(dir, "wrong"), []byte("hush\n"))
	const addr = "address: {socket_address: {address: 127.0.0.1, port_value: 0}}"
	for text, want := range map[string]string{
		"admin: {" + addr + ",\n auth: {tokens_file: $DIR/wrong}}":                                                                 "a.yaml:2:22: admin.auth.tokens_file: admin: tokens: line 1 ",
		"admin: {" + addr + ",\n tls: {certificate_chain: $DIR/wrong, private_key: $DIR/key.pem}}":                                 "a.yaml:2:27: admin.tls.certificate_chain: certs: ",
		"admin: {" + addr + ",\n tls: {certificate_chain: $DIR/cert.pem, private_key: $DIR/key.pem, client_ca: $DIR/wrong}}":       "admin.tls.client_ca: certs: ",
		"statsd:\n listeners: [{address: 'tcp://127.0.0.1:0', tls: {certificate_chain: $DIR/wrong, private_key: $DIR/key.pem}}]\n": "a.yaml:2:70: statsd.listeners[0].tls.certificate_chain: certs: ",
	} {
		_, err := server.New(fromYAML(t, dir, text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// pair writes a self-signed certificate and its key.
func pair(t *testing.T, dir string, serial int64, until time.Time) *x509.Certificate {
	t.Helper()
	p := certtest.Issue(t, &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "admin"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"admin.test"}, IsCA: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, nil)
	p.Write(t, filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	return p.Leaf
}

// TestAdminOverTLS serves the port with certificates from files, lists them, and
// replaces them.
func TestAdminOverTLS(t *testing.T) {
	dir := t.TempDir()
	first := pair(t, dir, 0xa1, time.Now().Add(10*24*time.Hour+time.Hour))
	cfg := fromYAML(t, dir, `
admin:
  address: {socket_address: {address: 127.0.0.1, port_value: 0}}
  tls:
    certificate_chain: $DIR/cert.pem
    private_key: $DIR/key.pem
    tls_minimum_protocol_version: TLSv1_3
  access_log:
  - name: f
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog
      path: $DIR/access.json
      log_format: {json_format: {path: "%REQ(:PATH)%", scheme: "%REQ(:SCHEME)%", code: "%RESPONSE_CODE%"}}
`)
	r := start(t, cfg)
	addr := r.Admin().Addr().String()
	pool := x509.NewCertPool()
	pool.AddCert(first)
	open, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: pool})
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	answers := bufio.NewReader(open)
	ready := func() int { // over the open connection
		if _, err := io.WriteString(open, "GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode
	}
	if got := ready(); got != 200 {
		t.Errorf("status %d", got)
	}
	if _, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: pool, MaxVersion: tls.VersionTLS12}); err == nil {
		t.Error("TLS 1.2 is spoken below the minimum version")
	}
	resp, err := http.Get(r.url + "/ready")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 400 {
		t.Errorf("plain HTTP: status %d, want 400", resp.StatusCode)
	}
	var shown struct {
		Certificates []struct {
			Chain []struct {
				Path  string `json:"path"`
				Days  string `json:"days_until_expiration"`
				Names []map[string]string
				SANs  []map[string]string `json:"subject_alt_names"`
			} `json:"cert_chain"`
		}
	}
	if err := json.Unmarshal([]byte(r.get(t, "/certs")), &shown); err != nil {
		t.Fatal(err)
	}
	if n := len(r.Certificates().List()); n != len(shown.Certificates) {
		t.Errorf("%d certificates are registered, %d shown", n, len(shown.Certificates))
	}
	chain := shown.Certificates[0].Chain[0]
	if chain.Path != filepath.Join(dir, "cert.pem") || chain.Days != "10" || fmt.Sprint(chain.SANs) != "[map[dns:admin.test] map[ip_address:127.0.0.1]]" {
		t.Errorf("/certs shows %+v", chain)
	}
	r.Flusher().FlushForAdmin()
	serial := func() int64 {
		c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	pair(t, dir, 0xa2, time.Now().Add(time.Hour))
	waittest.Until(t, "the new certificate is shown", func() bool { return serial() == 0xa2 && strings.Contains(r.get(t, "/certs"), `"a2"`) })
	if got := ready(); got != 200 {
		t.Errorf("the open connection: status %d", got)
	}
	writeFile(t, filepath.Join(dir, "cert.pem"), []byte("nonsense"))
	r.Reload()
	if got := serial(); got != 0xa2 {
		t.Errorf("after a wrong file the certificate is %x", got)
	}
	if err := r.ReopenLogs(); err != nil {
		t.Fatal(err)
	}
	logged, err := os.ReadFile(filepath.Join(dir, "access.json"))
	if err != nil || !bytes.Contains(logged, []byte(`{"code":200,"path":"/ready","scheme":"https"}`+"\n")) {
		t.Errorf("the access log has %s, %v", logged, err)
	}
}

// TestEachFileIsFollowed replaces one file at a time.
func TestEachFileIsFollowed(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	read := func(dir string) []byte {
		text, err := os.ReadFile(filepath.Join(dir, "cert.pem"))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	pair(t, dir, 0xa1, time.Now().Add(time.Hour))
	own := read(dir)
	writeFile(t, filepath.Join(dir, "ca.pem"), own)
	r := start(t, fromYAML(t, dir, `
admin:
  address: {socket_address: {address: 127.0.0.1, port_value: 0}}
  tls: {certificate_chain: $DIR/cert.pem, private_key: $DIR/key.pem, client_ca: $DIR/ca.pem}
`))
	pair(t, elsewhere, 0xb2, time.Now().Add(time.Hour))
	writeFile(t, filepath.Join(dir, "ca.pem"), read(elsewhere))
	waittest.Until(t, "the new authority is shown", func() bool { return strings.Contains(r.get(t, "/certs"), `"b2"`) })
	pair(t, elsewhere, 0xc3, time.Now().Add(time.Hour))
	writeFile(t, filepath.Join(dir, "cert.pem"), append(own, read(elsewhere)...))
	waittest.Until(t, "the longer chain is shown", func() bool { return strings.Contains(r.get(t, "/certs"), `"c3"`) })
}

// TestExpiryIsAGauge flushes with a certificate loaded.
func TestExpiryIsAGauge(t *testing.T) {
	dir := t.TempDir()
	pair(t, dir, 1, time.Now().Add(10*24*time.Hour+time.Hour))
	cfg := fromYAML(t, dir, "stats_flush_on_admin: true\nadmin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}, "+
		"tls: {certificate_chain: $DIR/cert.pem, private_key: $DIR/key.pem}}")
	r := start(t, cfg)
	if got := r.get(t, "/stats?filter=until_first"); got != "server.days_until_first_cert_expiring: 10\nserver.seconds_until_first_ocsp_response_expiring: 0\n" {
		t.Errorf("%q", got)
	}
}

// TestRotatedAccessLog renames the files while the server handles requests. Each
// request is logged exactly once.
func TestRotatedAccessLog(t *testing.T) {
	dir := t.TempDir()
	cfg := fromYAML(t, dir, `
header_prefix: x-edge
admin:
  address: {socket_address: {address: 127.0.0.1, port_value: 0}}
  access_log_path: $DIR/text.log
  access_log:
  - name: f
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog
      path: $DIR/json.log
      typed_json_format: {path: "%REQ(:PATH)%", code: "%RESPONSE_CODE%", who: "%PRINCIPAL%", from: "%DOWNSTREAM_REMOTE_ADDRESS%"}
`)
	r := start(t, cfg)
	const rotations, each = 5, 20
	for rotation := range rotations {
		for i := range each {
			status(t, http.DefaultClient, "GET", fmt.Sprintf("%s/ready?n=%d", r.url, rotation*each+i), "")
		}
		for _, name := range []string{"text.log", "json.log"} {
			if err := os.Rename(filepath.Join(dir, name), filepath.Join(dir, fmt.Sprintf("%s.%d", name, rotation))); err != nil {
				t.Fatal(err)
			}
		}
		if got := status(t, http.DefaultClient, "POST", r.url+"/reopen_logs", ""); got != 200 {
			t.Fatalf("status %d", got)
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"text.log", "json.log"} {
		all := ""
		files, err := filepath.Glob(filepath.Join(dir, name+"*"))
		if err != nil || len(files) != rotations+1 {
			t.Fatalf("%v, %v", files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all += string(text)
		}
		for n := range rotations * each {
			form := fmt.Sprintf(`"GET /ready?n=%d HTTP/1.1" 200 `, n)
			if name == "json.log" {
				form = fmt.Sprintf(`"path":"/ready?n=%d","who":null}`, n)
			}
			if got := strings.Count(all, form); got != 1 {
				t.Errorf("%s has %s %d times", name, form, got)
			}
		}
	}
}

// TestGlobalLimitOfConnections checks that the admin port accepts no connections past
// the limit unless it ignores the limit.
func TestGlobalLimitOfConnections(t *testing.T) {
	for _, ignore := range []bool{false, true} {
		cfg := server.Config{Admin: anyPort(), IgnoreGlobalLimit: ignore}
		r := start(t, cfg)
		if reply := r.post(t, "/runtime_modify?overload.global_downstream_max_connections=2"); reply.Status != 200 {
			t.Fatalf("status %d", reply.Status)
		}
		var conns []net.Conn
		answered := 0
		for range 5 {
			c, err := net.Dial("tcp", r.Admin().Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			conns = append(conns, c)
			if _, err := io.WriteString(c, "GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				continue
			}
			_ = c.SetReadDeadline(time.Now().Add(30 * time.Second)) // the read tells
			if n, _ := c.Read(make([]byte, 12)); n > 0 {
				answered++
			}
		}
		want, overflow := 2, "listener.admin.downstream_global_cx_overflow: 3\n"
		if ignore {
			want, overflow = 5, "listener.admin.downstream_global_cx_overflow: 0\n"
		}
		if got := r.get(t, "/stats?filter=global_cx"); answered != want || got != overflow {
			t.Errorf("ignore %t: %d of %d connections are served, %q", ignore, answered, len(conns), got)
		}
	}
}

// TestWrongFilesStopTheStart checks that no port is opened without its protection.
func TestWrongFilesStopTheStart(t *testing.T) {
	for _, cfg := range []server.Config{
		{Admin: anyPort(), AdminTLS: &certs.Files{Chain: "/nowhere/c", Key: "/nowhere/k"}},
		{Admin: anyPort(), AdminTokens: "/nowhere/tokens"},
	} {
		cfg.Loggers = quiet(t)
		if _, err := server.New(cfg); err == nil || !strings.Contains(err.Error(), "/nowhere/") {
			t.Errorf("%v", err)
		}
	}
}
