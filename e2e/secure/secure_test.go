package secure

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
	"github.com/statsd-admin/statsd-admin/e2e/need"
	"github.com/statsd-admin/statsd-admin/internal/certtest"
)

// curl returns the status and body of an answer, "000" if there is none.
func curl(t *testing.T, args ...string) (status, body string) {
	t.Helper()
	args = append([]string{"-s", "-w", "\n%{http_code}", "--max-time", "30"}, args...)
	out, _ := exec.Command(need.Program(t, "curl"), args...).Output() // the status tells
	at := strings.LastIndexByte(string(out), '\n')
	return string(out[at+1:]), string(out[:max(at, 0)])
}

// sh runs a script in dir.
func sh(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.Command("sh", "-euc", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// newToken adds a token to a file with the documented commands.
func newToken(t *testing.T, dir, role string) string {
	t.Helper()
	return sh(t, dir, `umask 077
token=$(head -c 24 /dev/urandom | base64)
printf '`+role+`:%s:by-hand\n' "$(printf %s "$token" | sha256sum | cut -d' ' -f1)" >>tokens
echo "$token"`)
}

func TestTokens(t *testing.T) {
	dir := t.TempDir()
	metrics := newToken(t, dir, "metrics")
	d := daemon.Start(t, daemon.Config{Dir: dir, YAML: `
admin:
  address: {socket_address: {address: 127.0.0.1, port_value: 0}}
  access_log_path: $DIR/access.log
  auth: {tokens_file: $DIR/tokens, open_paths: [/ready]}
`})
	at := "http://" + d.Admin
	ask := func(token, path string, more ...string) string {
		status, _ := curl(t, append(more, "-H", "Authorization: Bearer "+token, at+path)...)
		return status
	}
	operate := newToken(t, dir, "operate") // which the daemon finds by itself
	d.Until("the new token is known", func() bool { return ask(operate, "/help") == "200" })
	for _, tt := range []struct{ got, want string }{
		{ask(metrics, "/stats/metrics"), "200"}, {ask(metrics, "/help"), "403"}, {ask(operate, "/reset_counters", "-X", "POST"), "200"},
		{ask(operate, "/quitquitquit", "-X", "POST"), "403"}, {ask(metrics+"x", "/stats"), "401"},
	} {
		if tt.got != tt.want {
			t.Errorf("status %s, want %s", tt.got, tt.want)
		}
	}
	if status, _ := curl(t, "-u", "anybody:"+operate, at+"/help"); status != "200" {
		t.Errorf("as a password: status %s", status)
	}
	if status, _ := curl(t, at+"/stats"); status != "401" {
		t.Errorf("without a token: status %s", status)
	}
	// Revoked, with a signal.
	sh(t, dir, "sed -i /^operate/d tokens")
	d.Signal(syscall.SIGHUP)
	d.Until("the token is taken back", func() bool { return ask(operate, "/help") == "401" })
	for _, file := range []string{"access.log"} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || strings.Contains(string(text)+d.Output(), metrics) || strings.Contains(string(text)+d.Output(), operate) {
			t.Errorf("a log shows a token, or cannot be read: %v", err)
		}
	}
	// A file that others can read prevents the start.
	sh(t, dir, "chmod 644 tokens")
	bad := daemon.Start(t, daemon.Config{Dir: dir, Bare: true, Args: []string{"--config-yaml",
		"admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}, auth: {tokens_file: $DIR/tokens}}"}})
	if status := bad.Exit(); status != 1 || !strings.Contains(bad.Output(), "chmod 600") {
		t.Errorf("status %d: %s", status, bad.Output())
	}
}

// issue writes a certificate and its key, signed by ca if it is not nil.
func issue(t *testing.T, dir, name string, template *x509.Certificate, ca *certtest.Pair) *certtest.Pair {
	t.Helper()
	template.SerialNumber, template.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	p := certtest.Issue(t, template, ca)
	p.Write(t, filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key"))
	return p
}

func TestCertificates(t *testing.T) {
	dir := t.TempDir()
	uri := func(s string) []*url.URL { u, _ := url.Parse(s); return []*url.URL{u} }
	ca := issue(t, dir, "ca", &x509.Certificate{IsCA: true, KeyUsage: x509.KeyUsageCertSign}, nil)
	both := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	issue(t, dir, "server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: both}, ca)
	issue(t, dir, "ops", &x509.Certificate{URIs: uri("spiffe://test/ops"), ExtKeyUsage: both}, ca)
	issue(t, dir, "other", &x509.Certificate{URIs: uri("spiffe://test/other"), ExtKeyUsage: both}, ca)
	// Its own port requires certificates, so the health listener reports when the
	// daemon is ready.
	config := fmt.Sprintf(`
admin:
  address: {socket_address: {address: 127.0.0.1, port_value: 0}}
  tls: {certificate_chain: %[1]s/server.pem, private_key: %[1]s/server.key, client_ca: %[1]s/ca.pem}
  auth: {client_certificates: [{name: "uri:spiffe://test/ops", role: operate}]}
health_listeners: [{address: {pipe: {path: %[1]s/h.sock}}}]
`, dir)
	d := daemon.Start(t, daemon.Config{Dir: dir, Bare: true, Args: []string{"--config-yaml", config, "--admin-address-path", "$DIR/address"}})
	d.Until("the daemon to be ready", func() bool {
		status, _ := curl(t, "--unix-socket", filepath.Join(dir, "h.sock"), "http://localhost/healthz")
		return status == "200"
	})
	address, err := os.ReadFile(filepath.Join(dir, "address"))
	if err != nil {
		t.Fatal(err)
	}
	as := func(name string, more ...string) (string, string) {
		args := append(more, "--cacert", filepath.Join(dir, "ca.pem"))
		if name != "" {
			args = append(args, "--cert", filepath.Join(dir, name+".pem"), "--key", filepath.Join(dir, name+".key"))
		}
		return curl(t, args...)
	}
	at := "https://" + string(address)
	if status, body := as("ops", at+"/certs"); status != "200" || !strings.Contains(body, "/server.pem") || !strings.Contains(body, "/ca.pem") {
		t.Errorf("status %s, %s", status, body)
	}
	for want, args := range map[string][]string{"401": {"other", at + "/help"}, "000": {"", at + "/help"}, "403": {"ops", "-X", "POST", at + "/quitquitquit"}} {
		if status, _ := as(args[0], args[1:]...); status != want {
			t.Errorf("%v: status %s, want %s", args, status, want)
		}
	}
	if status, body := curl(t, "http://"+string(address)+"/ready"); status != "400" || body != "this port speaks TLS: use https\n" {
		t.Errorf("without TLS: status %s, %q", status, body)
	}
	if status, _ := as("ops", "-X", "POST", at+"/healthcheck/fail"); status != "200" {
		t.Errorf("status %s", status)
	}
	if status, body := curl(t, "--unix-socket", filepath.Join(dir, "h.sock"), "http://localhost/"); status != "503" || body != "DRAINING\n" {
		t.Errorf("health: status %s, %q", status, body)
	}
	// A new certificate is loaded at run time.
	before, _ := os.ReadFile(filepath.Join(dir, "server.pem"))
	issue(t, dir, "server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"second.test"}, ExtKeyUsage: both}, ca)
	if after, _ := os.ReadFile(filepath.Join(dir, "server.pem")); string(after) == string(before) {
		t.Fatal("the certificate is the same")
	}
	d.Until("the new certificate is shown", func() bool {
		status, body := as("ops", at+"/certs")
		return status == "200" && strings.Contains(body, "second.test")
	})
	d.Signal(syscall.SIGTERM)
	if status := d.Exit(); status != 0 {
		t.Errorf("status %d", status)
	}
}

func TestUnixPeers(t *testing.T) {
	dir := t.TempDir()
	d := daemon.Start(t, daemon.Config{Dir: dir, Bare: true, Args: []string{"--config-yaml", fmt.Sprintf(`
admin:
  address: {pipe: {path: $DIR/a.sock, mode: 0o666}}
  auth: {unix_peers: [{uid: %d, role: read}]}
`, os.Getuid())}})
	socket := filepath.Join(dir, "a.sock")
	ask := func(args ...string) string {
		status, _ := curl(t, append([]string{"--unix-socket", socket}, args...)...)
		return status
	}
	d.Until("the daemon to be ready", func() bool { return ask("http://localhost/ready") == "200" })
	if got := ask("http://localhost/help"); got != "200" {
		t.Errorf("status %s", got)
	}
	if got := ask("-X", "POST", "http://localhost/reset_counters"); got != "403" {
		t.Errorf("a role that is too small: status %s", got)
	}
	if os.Getuid() != 0 {
		return
	}
	sh(t, dir, "chmod 755 . ..")
	cmd := exec.Command(need.Program(t, "curl"), "-s", "-o", os.DevNull, "-w", "%{http_code}", "--unix-socket", socket, "http://localhost/help")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.Output(); err != nil || string(out) != "401" {
		t.Errorf("another user: status %s, %v", out, err)
	}
}
