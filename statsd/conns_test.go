package statsd

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
)

// seat is a connection of a test that has asked for a place.
type seat struct {
	*stream
	logs []string // what it was told; "" means a place
}

// seats are connections of one set.
type seats struct {
	connSet
	all []*seat
}

func newSeats(total, perAddr int) *seats {
	s := &seats{}
	s.init()
	s.total, s.perAddr, s.patience = total, perAddr, time.Hour
	return s
}

// ask lets a connection from 10.0.0.from ask for a place.
func (s *seats) ask(from byte) *seat {
	p := &seat{stream: &stream{addr: netip.AddrFrom4([4]byte{10, 0, 0, from})}}
	s.all = append(s.all, p)
	s.await(p.stream, func(limit string) { p.logs = append(p.logs, limit) })
	return p
}

// lose lets the patience of p end.
func (s *seats) lose(p *seat) {
	for _, w := range slices.Clone(s.waiting) {
		if w.st == p.stream {
			s.giveUp(w)
			s.giveUp(w) // a timer that fires although it was stopped
		}
	}
}

// state shows the answer to each connection in order of arrival: - for none
// yet.
func (s *seats) state() (out string) {
	for _, p := range s.all {
		switch {
		case len(p.logs) == 0:
			out += "- "
		case len(p.logs) == 1 && p.logs[0] == "":
			out += "+ "
		default:
			out += fmt.Sprint(p.logs, " ")
		}
	}
	return out
}

func TestPlacesInTheOrderOfArrival(t *testing.T) {
	s := newSeats(3, 2)
	a1, _, a3 := s.ask(1), s.ask(1), s.ask(1)
	b1, b2 := s.ask(2), s.ask(2)
	steps := []struct {
		name string
		do   func()
		want string
	}{
		{"two-per-address-three-in-all", func() {}, "+ + - + - "},
		{"another-address-has-no-use-for-it", func() { s.remove(b1.stream) }, "+ + - + + "},
		{"its-own-place", func() { s.remove(a1.stream) }, "+ + + + + "},
		{"all-wait", func() { s.ask(3); s.ask(1); s.ask(3) }, "+ + + + + - - - "},
		{"the-first-that-may", func() { s.remove(b2.stream) }, "+ + + + + + - - "},
		{"the-next", func() { s.remove(a3.stream) }, "+ + + + + + + - "},
	}
	for _, step := range steps {
		step.do()
		if got := s.state(); got != step.want {
			t.Fatalf("%s: %q, want %q", step.name, got, step.want)
		}
	}
}

func TestPatienceEnds(t *testing.T) {
	s := newSeats(2, 1)
	a := s.ask(1)
	late, later := s.ask(1), s.ask(1)
	s.lose(late)
	if got, want := s.state(), "+ [per_address] - "; got != want {
		t.Fatalf("one gave up: %q, want %q", got, want)
	}
	s.ask(1)
	b := s.ask(2)
	s.ask(3)
	if got, want := s.state(), "+ [per_address] - [per_address] + - "; got != want {
		t.Fatalf("the next of that address: %q, want %q", got, want)
	}
	s.remove(a.stream)
	s.ask(1)
	if got, want := s.state(), "+ [per_address] + [per_address] + - - "; got != want {
		t.Fatalf("after a place was freed: %q, want %q", got, want)
	}
	s.lose(s.all[5])
	s.ask(4)
	s.remove(b.stream)
	if got, want := s.state(), "+ [per_address] + [per_address] + [connections] - [connections] "; got != want {
		t.Fatalf("all places taken: %q, want %q", got, want)
	}
	s.remove(later.stream)
	if got, want := s.state(), "+ [per_address] + [per_address] + [connections] + [connections] "; got != want {
		t.Fatalf("in the end: %q, want %q", got, want)
	}
	s.remove(s.all[6].stream)
	if len(s.conns) != 0 || len(s.from) != 0 || len(s.waiting) != 0 {
		t.Errorf("left: %d connections of %v, %d waiting", len(s.conns), s.from, len(s.waiting))
	}
}

// TestWaitingConnectionsAreAcceptedAtTheEnd checks that their slots are counted
// like all others.
func TestWaitingConnectionsAreAcceptedAtTheEnd(t *testing.T) {
	s := newSeats(2, 1)
	for range 3 {
		s.ask(1)
	}
	s.ask(2)
	s.ask(2)
	s.takeWaiting()
	s.takeWaiting()
	if got, want := s.state(), "+ + + + + "; got != want {
		t.Fatalf("%q, want %q", got, want)
	}
	if len(s.conns) != 5 || s.from[s.all[0].addr] != 3 || s.from[s.all[3].addr] != 2 {
		t.Errorf("%d connections, by address %v", len(s.conns), s.from)
	}
	for _, p := range s.all {
		s.remove(p.stream)
	}
	if len(s.conns) != 0 || len(s.from) != 0 || len(s.waiting) != 0 {
		t.Errorf("left: %d connections of %v, %d waiting", len(s.conns), s.from, len(s.waiting))
	}
}

// TestFullRoom has more connections than may wait: asking waits until another
// one has left the room, however it leaves.
func TestFullRoom(t *testing.T) {
	for _, tt := range []struct {
		name  string
		leave func(*seats)
		want  string
	}{
		{"place", func(s *seats) { s.remove(s.all[0].stream) }, "+ + - - "},
		{"refusal", func(s *seats) { s.lose(s.all[1]) }, "+ [connections] - [connections] "},
		{"end", func(s *seats) { s.takeWaiting() }, "+ + + - "},
		{"patience", func(*seats) { time.Sleep(time.Hour) }, "+ [connections] [connections] [connections] "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSeats(1, 1)
				s.room = 2
				s.ask(1)
				s.ask(1)
				s.ask(1)
				var asked atomic.Bool
				go func() {
					s.ask(2)
					asked.Store(true)
				}()
				synctest.Wait()
				if asked.Load() {
					t.Fatal("the room has more places than it should")
				}
				tt.leave(s)
				synctest.Wait()
				if got := s.state(); !asked.Load() || got != tt.want {
					t.Errorf("asked: %t, %q, want %q", asked.Load(), got, tt.want)
				}
				s.takeWaiting()
			})
		})
	}
}

// TestWaitingConnectionsBlockNoOthers has one address open more connections
// than allowed: connections of other addresses are served meanwhile.
func TestWaitingConnectionsBlockNoOthers(t *testing.T) {
	l := patient(newLive(t, Config{Listeners: []ListenerConfig{{Address: "tcp://127.0.0.1:0", PerAddress: 2}}})).run()
	var greedy []net.Conn
	for range 5 {
		c := l.dial(0)
		write(t, c, "greedy:1|c\n")
		greedy = append(greedy, c)
	}
	waittest.Until(t, "the greedy one has its places", func() bool { return l.counter("greedy") == 2 })
	other := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	c, err := other.Dial("tcp", l.address(0))
	if err != nil {
		t.Skip("127.0.0.2 is no address here:", err)
	}
	defer c.Close()
	write(t, c, "other:1|c\n")
	waittest.Until(t, "the line of another address", func() bool { return l.counter("other") == 1 })
	_ = greedy[0].Close()
	waittest.Until(t, "the third has a place", func() bool { return l.counter("greedy") == 3 })
	l.stop() // what waits then has logs something too
	if got := l.counter("greedy"); got != 5 {
		t.Errorf("%d lines of 5; connections ended: %v", got, l.report(0).Ended)
	}
}

// TestCrowded: more than half of the slots are taken.
func TestCrowded(t *testing.T) {
	for _, tt := range []struct {
		total, taken int
		want         bool
	}{{4, 0, false}, {4, 2, false}, {4, 3, true}, {5, 2, false}, {5, 3, true}, {1, 0, false}, {1, 1, true}} {
		s := newSeats(tt.total, tt.total)
		for range tt.taken {
			s.ask(1)
		}
		if got := s.crowded(); got != tt.want {
			t.Errorf("%d of %d: crowded %t", tt.taken, tt.total, got)
		}
	}
}
