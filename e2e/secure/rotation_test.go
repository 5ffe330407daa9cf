package secure

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

// TestRotationUnderLoad replaces the certificate and its key under a thousand
// requests a second, half of them on new connections. All are answered, and each new
// certificate is used.
func TestRotationUnderLoad(t *testing.T) {
	const (
		rate      = 1000     // a second
		requests  = 3 * rate // at least
		rotations = 10
		workers   = 32
	)
	dir := t.TempDir()
	ca := issue(t, dir, "ca", &x509.Certificate{IsCA: true, KeyUsage: x509.KeyUsageCertSign}, nil)
	rotate := func(n int) {
		issue(t, dir, "server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{fmt.Sprintf("n%d.test", n)},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, ca)
	}
	rotate(0)
	d := daemon.Start(t, daemon.Config{Dir: dir, Bare: true, Args: []string{"--admin-address-path", "$DIR/address", "--config-yaml", fmt.Sprintf(`
admin:
  address: {socket_address: {address: 127.0.0.1, port_value: 0}}
  tls: {certificate_chain: %[1]s/server.pem, private_key: %[1]s/server.key}
`, dir)}})
	at := ""
	pool := x509.NewCertPool()
	pool.AddCert(ca.Leaf)
	client := func(keep bool) *http.Client {
		return &http.Client{Timeout: daemon.Patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: !keep}}
	}
	var seen sync.Map // names in the certificates of new connections
	ask := func(c *http.Client) error {
		resp, err := c.Get(at + "/ready")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		seen.Store(resp.TLS.PeerCertificates[0].DNSNames[0], true)
		if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 {
			return fmt.Errorf("status %d, %q, %v", resp.StatusCode, body, err)
		}
		return nil
	}
	first := client(false)
	d.Until("the daemon to be ready", func() bool {
		address, err := os.ReadFile(filepath.Join(dir, "address"))
		at = "https://" + string(address)
		return err == nil && len(address) > 0 && ask(first) == nil
	})
	var next, failed atomic.Int64
	var stop atomic.Bool
	var all sync.WaitGroup
	defer all.Wait() // also if the test ends early
	defer stop.Store(true)
	start := time.Now()
	for w := range workers {
		all.Go(func() {
			c := client(w%2 == 0)
			for !stop.Load() {
				n := next.Add(1)
				time.Sleep(time.Until(start.Add(time.Duration(n) * time.Second / rate)))
				if err := ask(c); err != nil && failed.Add(1) < 5 {
					t.Errorf("request %d: %v", n, err)
				}
			}
		})
	}
	for n := range rotations {
		rotate(n + 1)
		d.Until("the new certificate is shown", func() bool { _, ok := seen.Load(fmt.Sprintf("n%d.test", n+1)); return ok })
	}
	for next.Load() < requests {
		time.Sleep(10 * time.Millisecond)
	}
	stop.Store(true)
	all.Wait()
	t.Logf("%d requests, %.0f a second, %d certificates, %d failures", next.Load(), float64(next.Load())/time.Since(start).Seconds(), rotations, failed.Load())
	if failed.Load() > 0 {
		t.Errorf("%d requests failed", failed.Load())
	}
}
