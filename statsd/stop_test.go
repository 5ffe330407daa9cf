package statsd

import (
	"io"
	"net"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
)

// TestStopListener stops listeners one by one: earlier input is applied, the
// address is free afterwards, and the others continue and can be handed over.
func TestStopListener(t *testing.T) {
	l := newLive(t, Config{Listeners: []ListenerConfig{
		{Address: "tcp://127.0.0.1:0"}, {Address: "udp://127.0.0.1:0", Readers: 2}, {Address: "tcp://127.0.0.1:0", Name: "other"},
	}}).run()
	infos := l.Listeners()
	tcp, udp, other := l.address(0), l.address(1), l.address(2)
	count := func(want uint64) {
		t.Helper()
		waittest.Equal(t, "a", want, l.Scope().Counter("a").Value)
	}
	conn, err := net.Dial("tcp", tcp)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "a:1|c\na:2|c\n"); err != nil {
		t.Fatal(err)
	}
	count(3)
	for range 2 { // the second time changes nothing
		if !l.StopListener(infos[0].Name) {
			t.Error("the listener is not known")
		}
	}
	sockets, err := l.Sockets()
	if err != nil || len(sockets) != 2 || len(sockets[0].Files) != 2 || len(sockets[1].Files) != 1 {
		t.Errorf("sockets %v, %v, want 2 of udp and 1 of tcp", sockets, err)
	}
	for _, ls := range sockets {
		for _, f := range ls.Files {
			f.Close()
		}
	}
	if c, err := net.Dial("tcp", tcp); err == nil {
		c.Close()
		t.Error("a listener that was stopped accepts")
	}
	packets, err := net.Dial("udp", udp)
	if err != nil {
		t.Fatal(err)
	}
	defer packets.Close()
	if _, err := io.WriteString(packets, "a:4|c"); err != nil {
		t.Fatal(err)
	}
	count(7)
	l.StopListener(infos[1].Name)
	again, err := net.ListenPacket("udp", udp)
	if err != nil {
		t.Errorf("the address is not free: %v", err)
	} else {
		again.Close()
	}
	last, err := net.Dial("tcp", other)
	if err != nil {
		t.Fatal(err)
	}
	defer last.Close()
	if _, err := io.WriteString(last, "a:8|c\n"); err != nil {
		t.Fatal(err)
	}
	count(15)
	if l.StopListener("unknown") {
		t.Error("an unknown listener was stopped")
	}
}
