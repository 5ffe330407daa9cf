package life

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
	"github.com/statsd-admin/statsd-admin/internal/certtest"
)

// follow starts the daemon of an epoch. All of a line share a directory for
// their sockets, and have one each for the address of the admin port.
func follow(t *testing.T, dir, yaml string, epoch int, args ...string) *daemon.Daemon {
	t.Helper()
	return daemon.Start(t, daemon.Config{YAML: yaml, Args: append([]string{
		"--socket-path", filepath.Join(dir, "hot"), "--restart-epoch", strconv.Itoa(epoch),
	}, args...)})
}

// ended waits for a daemon that ends by itself in good order.
func ended(t *testing.T, d *daemon.Daemon) {
	t.Helper()
	if status := d.Exit(); status != 0 {
		t.Errorf("status %d:\n%s", status, d.Output())
	}
}

// checker asks a health listener again and again, over new connections or over
// one for as long as the server keeps it.
type checker struct {
	network, address string
	keep             bool
	passed, dialed   atomic.Int64
}

// run asks until stop is closed. The first answer that is missing or bad is the
// error.
func (c *checker) run(stop <-chan struct{}) error {
	var conn net.Conn
	var r *bufio.Reader
	defer func() {
		if conn != nil {
			conn.Close()
		}
	}()
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		if conn == nil {
			var err error
			if conn, err = net.Dial(c.network, c.address); err != nil {
				return err
			}
			c.dialed.Add(1)
			if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				return err
			}
			r = bufio.NewReader(conn)
		}
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			return err
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 200 || string(body) != "LIVE\n" {
			return fmt.Errorf("status %d, %q, %v", resp.StatusCode, body, err)
		}
		c.passed.Add(1)
		if resp.Close || !c.keep {
			conn.Close()
			conn = nil
		}
	}
}

// TestHealthListenersOfALine checks the health of daemons that follow each other
// all the time: each check is answered, and all say that the server is live.
func TestHealthListenersOfALine(t *testing.T) {
	dir := t.TempDir()
	abstract := "@" + filepath.Join(dir, "abstract")
	yaml := fmt.Sprintf(`
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
stats_flush_interval: 0.1s
health_listeners:
- {name: tcp, address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
- {name: file, address: {pipe: {path: %s/health}}}
- {name: abstract, address: {pipe: {path: '%s'}}}
`, dir, abstract)
	old := follow(t, dir, yaml, 0)
	tcp := old.Address("tcp")
	var checkers []*checker
	for _, keep := range []bool{false, true} {
		checkers = append(checkers, &checker{network: "tcp", address: tcp, keep: keep},
			&checker{network: "unix", address: filepath.Join(dir, "health"), keep: keep},
			&checker{network: "unix", address: abstract, keep: keep})
	}
	stop := make(chan struct{})
	var checks sync.WaitGroup
	for _, c := range checkers {
		checks.Go(func() {
			if err := c.run(stop); err != nil {
				t.Errorf("a check of %s (over one connection: %t) after %d that passed: %v", c.address, c.keep, c.passed.Load(), err)
			}
		})
	}
	// What the checkers got so far passes again with each of them.
	busy := func() {
		t.Helper()
		for _, c := range checkers {
			n := c.passed.Load()
			old.Until("checks of "+c.address, func() bool { return t.Failed() || c.passed.Load() > n+100 })
		}
	}
	busy()
	for epoch := 1; epoch <= 3; epoch++ {
		// The daemon before serves on for a while, for an instant, or until the
		// next but one comes.
		shutdown := []string{"1", "0", "900"}[epoch-1]
		next := follow(t, dir, yaml, epoch, "--parent-shutdown-time-s", shutdown)
		if got := next.Address("tcp"); got != tcp {
			t.Errorf("epoch %d checks on %s, not on %s", epoch, got, tcp)
		}
		busy()
		if epoch == 3 {
			old.Signal(syscall.SIGTERM)
		}
		ended(t, old)
		old = next
		busy()
	}
	close(stop)
	checks.Wait()
	for _, c := range checkers {
		// A checker whose connection was closed can reach the same daemon once
		// more, if that daemon is about to accept.
		if n := c.dialed.Load(); c.keep && n > 8 {
			t.Errorf("%s: %d connections for four daemons", c.address, n)
		}
	}
	total := 0.0
	for _, c := range checkers {
		total += float64(c.passed.Load())
	}
	old.Wait("all checks, each once", func(s daemon.Stats) bool {
		return s.Number("http.tcp.health_check.ok")+s.Number("http.file.health_check.ok")+s.Number("http.abstract.health_check.ok") == total
	})
	old.Signal(syscall.SIGTERM)
	ended(t, old)
	if left, _ := filepath.Glob(filepath.Join(dir, "h*")); len(left) != 0 {
		t.Errorf("%s stay", strings.Join(left, " "))
	}
}

// selfSigned writes a certificate for 127.0.0.1 and its key, and returns who
// trusts it.
func selfSigned(t *testing.T, dir string) *tls.Config {
	t.Helper()
	p := certtest.Issue(t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, nil)
	p.Write(t, filepath.Join(dir, "own.pem"), filepath.Join(dir, "own.key"))
	pool := x509.NewCertPool()
	pool.AddCert(p.Leaf)
	return &tls.Config{RootCAs: pool}
}

// TestTLSConnectionsOfALine: a connection with TLS stays with the daemon that it
// was made to, which goes on to read it until its time is over and then ends it
// in good order; new ones come to the next daemon. Every line counts once.
func TestTLSConnectionsOfALine(t *testing.T) {
	dir := t.TempDir()
	trust := selfSigned(t, dir)
	yaml := fmt.Sprintf(`
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
stats_flush_interval: 0.1s
statsd:
  listeners:
  - {name: tls, address: "tcp://127.0.0.1:0", tls: {certificate_chain: %[1]s/own.pem, private_key: %[1]s/own.key}}
`, dir)
	first := follow(t, dir, yaml, 0)
	address := first.Address("tls")
	dial := func() *tls.Conn {
		t.Helper()
		c, err := tls.Dial("tcp", address, trust)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	lines := 0
	send := func(c *tls.Conn) {
		t.Helper()
		if _, err := io.WriteString(c, "lines:1|c\n"); err != nil {
			t.Fatal(err)
		}
		lines++
	}
	counted := func(d *daemon.Daemon) {
		t.Helper()
		d.Wait(fmt.Sprint(lines, " lines"), func(s daemon.Stats) bool { return s["lines"] == strconv.Itoa(lines) })
	}
	old := dial()
	send(old)
	counted(first)
	second := follow(t, dir, yaml, 1, "--parent-shutdown-time-s", "900")
	first.Until("the first daemon to stop accepting", func() bool { return strings.Contains(first.Output(), "the successor has taken over") })
	young := dial()
	for range 100 {
		send(old)
		send(young)
	}
	counted(second)
	second.Wait("one connection with each daemon", func(s daemon.Stats) bool {
		return s["server.parent_connections"] == "1" && s["server.total_connections"] == "2"
	})
	// A third daemon has the first one end, and its last lines are counted too.
	send(old)
	third := follow(t, dir, yaml, 2, "--parent-shutdown-time-s", "0")
	ended(t, first)
	if err := old.SetReadDeadline(time.Now().Add(daemon.Patience)); err != nil {
		t.Fatal(err)
	}
	if n, err := old.Read(make([]byte, 1)); n != 0 || err != io.EOF { // not cut: that would be another error
		t.Errorf("the connection ends with %d bytes, %v", n, err)
	}
	ended(t, second)
	send(dial())
	counted(third)
	if s := third.Stats(); s.Sum("ingest.lines_rejected") != 0 {
		t.Errorf("rejected: %v", s)
	}
}
