package sinks

import (
	"io"
	"net"
	"sync"
	"testing"
)

// tcpGate is a TCP proxy in front of a receiver, whose port outlives the receiver.
type tcpGate struct {
	address string

	mu     sync.Mutex
	target string              // empty: connections are closed at once
	conns  map[net.Conn]string // of both sides, with the target
	closed int                 // connections that found the gate shut
}

func openTCP(t *testing.T) *tcpGate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &tcpGate{address: l.Addr().String(), conns: map[net.Conn]string{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { g.pass(c) })
		}
	})
	t.Cleanup(func() { l.Close(); g.shut(); all.Wait() })
	return g
}

func (g *tcpGate) pass(in net.Conn) {
	defer in.Close()
	g.mu.Lock()
	target := g.target
	if target == "" {
		g.closed++
	}
	g.mu.Unlock()
	if target == "" {
		return
	}
	out, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer out.Close()
	if !g.enter(target, in, out) {
		return
	}
	defer g.leave(in, out)
	back := make(chan struct{})
	go func() { defer close(back); _, _ = io.Copy(in, out); in.Close() }()
	_, _ = io.Copy(out, in)
	out.Close()
	<-back
}

// enter notes connections, unless the gate was shut in the meantime.
func (g *tcpGate) enter(target string, conns ...net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.target != target {
		return false
	}
	for _, c := range conns {
		g.conns[c] = target
	}
	return true
}

func (g *tcpGate) leave(conns ...net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range conns {
		delete(g.conns, c)
	}
}

// to passes new connections on from now on.
func (g *tcpGate) to(target string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.target = target
}

// shut breaks all connections and closes new ones.
func (g *tcpGate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.target = ""
	for c := range g.conns {
		c.Close()
	}
}

// refused returns how many connections found the gate shut.
func (g *tcpGate) refused() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}
