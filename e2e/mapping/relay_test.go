package mapping

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/statsd_exporter/pkg/relay"
	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

// TestSameRelay sends random lines, good and bad, to statsd_exporter and to the daemon
// with its flags, both of which relay them, and compares what a UDP server gets.
func TestSameRelay(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 99))
	var lines strings.Builder
	for range 2000 {
		text := randomLine(r, 1)
		if r.IntN(10) == 0 {
			text = text[:r.IntN(len(text)-1)+1] // cut anywhere
		}
		lines.WriteString(strings.TrimSpace(text) + "\n")
	}
	const packetBytes = 512

	target := newReceiver(t)
	p := newPeer(t, "")
	var err error
	if p.listener.Relay, err = relay.NewRelay(slog.New(slog.DiscardHandler), target.address(), packetBytes); err != nil {
		t.Fatal(err)
	}
	p.serve(t, lines.String()+lastLine)
	want := target.until(t, strings.TrimSpace(lastLine), packetBytes)

	target = newReceiver(t)
	d, tcp := startOurs(t, "--statsd.relay.address="+target.address(), fmt.Sprintf("--statsd.relay.packet-length=%d", packetBytes))
	if err := send(tcp, lines.String()+lastLine); err != nil {
		t.Fatal(err)
	}
	got := target.until(t, strings.TrimSpace(lastLine), packetBytes)
	if !slices.Equal(got, want) {
		t.Errorf("%d lines here, %d there; the first that differ: %q", len(got), len(want), firstDifference(got, want))
	}
	if len(want) != 2001 {
		t.Errorf("statsd_exporter relayed %d lines", len(want))
	}
	sample := fmt.Sprintf("statsd_exporter_relay_lines_relayed_total{target=%q} 2001", target.address())
	d.Until(sample, func() bool { return strings.Contains(d.Get("/metrics"), "\n"+sample+"\n") })
}

// firstDifference returns the first elements that differ.
func firstDifference(a, b []string) [2]string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return [2]string{a[i], b[i]}
		}
	}
	return [2]string{}
}

// receiver is a UDP server.
type receiver struct{ net.PacketConn }

func newReceiver(t *testing.T) receiver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return receiver{conn}
}

func (r receiver) address() string { return r.LocalAddr().String() }

// until returns the received lines up to the last one. No packet may be longer than
// packetBytes.
func (r receiver) until(t *testing.T, last string, packetBytes int) (lines []string) {
	t.Helper()
	if err := r.SetReadDeadline(time.Now().Add(daemon.Patience)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 1<<16)
	for len(lines) == 0 || lines[len(lines)-1] != last {
		n, _, err := r.ReadFrom(buf)
		if err != nil {
			t.Fatalf("%v after %d lines", err, len(lines))
		}
		if n > packetBytes {
			t.Errorf("a packet of %d bytes", n)
		}
		lines = append(lines, strings.Split(strings.TrimSuffix(string(buf[:n]), "\n"), "\n")...)
	}
	return lines
}
