package health

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// TestSwitchOfProtocols gets an answer that hands the connection over to another
// protocol, which nobody asked for, and then nothing.
func TestSwitchOfProtocols(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn)
	}()
	p := proberFor(t, Config{Check: config.HealthCheck{Kind: config.HTTPCheck, ReuseConnection: true, HTTP: config.HTTPHealthCheck{Method: "GET", Path: "/"}}}, hostAt(l.Addr().String()))
	done := make(chan Outcome, 1)
	go func() { done <- p.Probe(t.Context()) }()
	select {
	case o := <-done:
		if o.Kind != Active || o.Why != "status 101" {
			t.Errorf("%+v", o)
		}
	case <-time.After(20 * time.Second):
		t.Error("the check goes on")
	}
}
