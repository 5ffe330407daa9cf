package closedport

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"
)

// TestPortsRefuse connects and sends to the ports, and tries to listen there.
func TestPortsRefuse(t *testing.T) {
	tcp, udp := TCP(t), UDP(t)
	for range 100 {
		if c, err := net.DialTCP("tcp", nil, tcp); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("connect: %v, %v; want connection refused", c, err)
		}
	}
	c, err := net.DialUDP("udp", nil, udp)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("datagram: %v, want connection refused", err)
	}
	for _, address := range []string{tcp.String(), (&net.TCPAddr{Port: tcp.Port}).String()} {
		if ln, err := net.Listen("tcp", address); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("listen on %s: %v, %v; want address in use", address, ln, err)
		}
	}
	if c, err := net.ListenUDP("udp", udp); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("receive on %s: %v, %v; want address in use", udp, c, err)
	}
}

// TestReservedPorts listens on a port again and again.
func TestReservedPorts(t *testing.T) {
	at := Reserve(t)
	for range 3 {
		if c, err := net.DialTCP("tcp", nil, at); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("connect: %v, %v; want connection refused", c, err)
		}
		ln, err := net.Listen("tcp", at.String())
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.DialTCP("tcp", nil, at)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		ln.Close()
	}
}
