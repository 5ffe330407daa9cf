// Package closedport gives tests ports of the loopback address that refuse
// connections. A port that was merely closed can be taken by another process
// at any time; these are held until the test ends.
package closedport

import (
	"net"
	"testing"
)

// TCP returns an address that refuses connections until t ends. A socket that
// is bound to it has a connection of its own and does not listen, so nothing
// else can listen there, and no connection to the port gets the port itself as
// its source.
func TCP(t testing.TB) *net.TCPAddr {
	t.Helper()
	peer, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { peer.Close() })
	return held(t, peer.Addr(), &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}).(*net.TCPAddr)
}

// UDP returns an address that refuses datagrams until t ends: the socket that
// holds it receives from its peer only.
func UDP(t testing.TB) *net.UDPAddr {
	t.Helper()
	peer, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { peer.Close() })
	return held(t, peer.LocalAddr(), &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}).(*net.UDPAddr)
}

// held connects from any port of the address local to peer, and returns the
// local address, which is in use until t ends.
func held(t testing.TB, peer, local net.Addr) net.Addr {
	t.Helper()
	c, err := (&net.Dialer{LocalAddr: local}).Dial(peer.Network(), peer.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.LocalAddr()
}
