package hotrestart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/internal/descriptors"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// TestSocketsOfManyReaders: an address can have more sockets than one message carries.
func TestSocketsOfManyReaders(t *testing.T) {
	for _, n := range []int{maxFiles, maxFiles + 1, 2 * maxFiles} {
		w := newWorld(t)
		files := make([]*os.File, n)
		for i := range files {
			var err error
			if files[i], err = os.Open(os.DevNull); err != nil {
				t.Fatal(err)
			}
		}
		w.process.mu.Lock()
		w.process.sockets = []Socket{{Address: "udp://many", Files: files}, {Address: "udp://few"}}
		w.process.mu.Unlock()
		c := w.dial(Successor{})
		all, err := c.Sockets()
		if err != nil || len(all) != 2 || len(all[0].Files) != n || all[1].Address != "udp://few" || len(all[1].Files) != 0 {
			t.Errorf("%d sockets: %d addresses, %v", n, len(all), err)
		}
		for _, s := range all {
			closeAll(s.Files)
		}
	}
}

// TestWholeLife goes through all that a successor asks for.
func TestWholeLife(t *testing.T) {
	w := newWorld(t)
	w.process.has(samples()...)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	file, err := tcp.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	w.process.mu.Lock()
	w.process.sockets = []Socket{{Address: "tcp://x", Files: []*os.File{file}}, {Address: "udp://empty"}}
	w.process.mu.Unlock()

	w.process.parcels = parcels()
	var got []store.ExportedStat
	var conns []Connection
	var undelivered []flush.Parcel
	c := w.dial(Successor{
		Parcel: func(p flush.Parcel) { undelivered = append(undelivered, p) },
		Stat: func(h *store.ExportedStat) {
			k := *h
			k.Tags = append([]tags.Tag(nil), h.Tags...)
			got = append(got, k)
		},
		Connection: func(c Connection) { conns = append(conns, c) },
	})
	if o := c.Origin(); !o.Start.Equal(time.Unix(1_700_000_000, 5)) || o.Generation != 3 {
		t.Errorf("origin %+v", o)
	}
	sockets, err := c.Sockets()
	if err != nil || len(sockets) != 2 || sockets[0].Address != "tcp://x" || len(sockets[0].Files) != 1 || len(sockets[1].Files) != 0 {
		t.Fatalf("sockets %+v, %v", sockets, err)
	}
	ln, err := net.FileListener(sockets[0].Files[0])
	if err != nil || ln.Addr().String() != tcp.Addr().String() {
		t.Errorf("the socket is %v, %v", ln, err)
	}
	ln.Close()
	sockets[0].Files[0].Close()
	for _, step := range []func() error{c.Stats, c.Stats, c.Commit, c.Drain} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(samples(), got); d != "" {
		t.Errorf("stats (-want +got)\n%s", d)
	}
	if f := c.Usage(); f != (Usage{1 << 40, 7}) {
		t.Errorf("usage %+v", f)
	}
	got = nil
	go func() { // what the process does when it is told to end
		<-w.process.quit
		p := w.Part()
		r, wr, _ := os.Pipe()
		wr.WriteString("alive")
		wr.Close()
		if !p.Connection(Connection{"tcp://x", r, []byte("half a li")}) {
			t.Error("a connection was not given away")
		}
		w.process.has(samples()[:1]...)
		if err := p.Finish(w.process); err != nil {
			t.Error(err)
		}
	}()
	if err := c.Terminate(); err != nil {
		t.Errorf("terminate: %v", err)
	}
	if len(conns) != 1 || conns[0].Address != "tcp://x" || string(conns[0].Read) != "half a li" {
		t.Fatalf("connections %+v", conns)
	}
	if b, _ := io.ReadAll(conns[0].File); string(b) != "alive" {
		t.Errorf("the connection reads %q", b)
	}
	conns[0].File.Close()
	if d := cmp.Diff(samples()[:1], got); d != "" {
		t.Errorf("last stats (-want +got)\n%s", d)
	}
	if d := cmp.Diff(parcels(), undelivered); d != "" {
		t.Errorf("parcels (-want +got)\n%s", d)
	}
	if err := c.Stats(); !errors.Is(err, ErrGone) {
		t.Errorf("afterwards: %v", err)
	}
	if c.Usage() != (Usage{}) {
		t.Error("usage of a parent that is gone")
	}
	c.Close()
	for linked := true; linked; runtime.Gosched() {
		w.mu.Lock()
		linked = w.link != nil
		w.mu.Unlock()
	}
	if asked := w.process.done(); asked != "sockets stats ack stats ack commit stats ack drain terminate stats ack" {
		t.Errorf("the parent was asked for %s", asked)
	}
	w.stop()
	select {
	case <-w.process.lost:
		t.Error("a successor that ended its parent counts as lost")
	default:
	}
	w.logMu.Lock()
	defer w.logMu.Unlock()
	if text := w.log.String(); text != "" {
		t.Errorf("an orderly hand-over was logged:\n%s", text)
	}
}

// TestParentEndsByItself sends the last words before a successor asks.
func TestParentEndsByItself(t *testing.T) {
	w := newWorld(t)
	var got []string
	c := w.dial(Successor{Stat: func(h *store.ExportedStat) { got = append(got, h.Name) }})
	if err := c.Watch(); err != nil || c.Usage().Connections != 7 {
		t.Errorf("watch: %v, usage %+v", err, c.Usage())
	}
	if err := c.Drain(); err != nil {
		t.Fatal(err)
	}
	p := w.Part()
	if w.Part() != nil {
		t.Error("two handoffs")
	}
	w.process.has(samples()[:2]...)
	finished := make(chan error, 1)
	go func() { finished <- p.Finish(w.process) }()
	if err := c.Watch(); !errors.Is(err, ErrEnded) {
		t.Errorf("watch: %v", err)
	}
	if err := <-finished; err != nil {
		t.Fatal(err)
	}
	w.stop()
	if len(w.process.lost) > 0 {
		t.Error("a parent that left by itself is notified of a lost successor")
	}
	if err := c.Watch(); !errors.Is(err, ErrGone) || strings.Join(got, " ") != "rq hits" {
		t.Errorf("%v, stats %q", err, got)
	}
	if err := c.Terminate(); err != nil {
		t.Errorf("terminate of one that has ended: %v", err)
	}
}

func TestSuccessorWithoutStats(t *testing.T) {
	w := newWorld(t)
	c := w.dial(Successor{})
	w.process.has(samples()...)
	w.process.parcels = []flush.Parcel{{Sink: "a", Data: []byte("packet")}}
	go func() {
		<-w.process.quit
		if err := w.Part().Finish(w.process); err != nil {
			t.Error(err)
		}
	}()
	if err := c.Terminate(); err != nil {
		t.Error(err)
	}
	if len(w.process.has()) == 0 {
		t.Error("stats were taken that no process wants")
	}
}

func TestManyStats(t *testing.T) {
	w := newWorld(t)
	var many []store.ExportedStat
	for i := range 50_000 {
		many = append(many, store.ExportedStat{Name: fmt.Sprint("some.name.", i), Delta: 1})
	}
	w.process.has(many...)
	n := 0
	c := w.dial(Successor{Stat: func(*store.ExportedStat) { n++ }})
	if err := c.Stats(); err != nil || n != 50_000 {
		t.Errorf("%d stats, %v", n, err)
	}
}

// TestLost: a parent whose successor is gone is replaced only if that one has
// committed and lives.
func TestLost(t *testing.T) {
	for _, tt := range []struct {
		name                       string
		commits, lives, dead, want bool
	}{
		{name: "before the commit", lives: true},
		{name: "dead", commits: true},
		{name: "does not serve", commits: true, lives: true, dead: true},
		{name: "serves", commits: true, lives: true, want: true},
	} {
		w := newWorld(t)
		c := w.dial(Successor{})
		if tt.lives {
			next := w.cfg
			next.Epoch = 1
			p, err := Listen(next)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			process := newFake()
			process.idle = tt.dead
			go func() { done <- p.Run(ctx, process) }()
			defer func() { cancel(); <-done }()
		}
		if tt.commits {
			for _, step := range []func() error{c.Commit, c.Drain} {
				if err := step(); err != nil {
					t.Fatal(err)
				}
			}
		}
		c.Close()
		if got := <-w.process.lost; got != tt.want {
			t.Errorf("%s: replaced %t, want %t", tt.name, got, tt.want)
		}
		w.dial(Successor{}).Close() // a second attempt
		<-w.process.lost
		if w.Part() != nil {
			t.Errorf("%s: a handoff without a successor", tt.name)
		}
		next := w.cfg
		next.Epoch = 1
		if _, err := Dial(next, Successor{}); !errors.Is(err, ErrEnded) {
			t.Errorf("%s: a successor of a server that ends: %v", tt.name, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	w := newWorld(t)
	next := w.cfg
	for _, epoch := range []uint32{1, 4} { // 4 has the name of 1
		next.Epoch = epoch
		if epoch == 1 {
			w.process.refuseWith(errors.New("not yet"))
		}
		_, err := Dial(next, Successor{})
		want := "not yet"
		if epoch == 4 {
			want = "its successor has epoch 1, not 4"
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("epoch %d: %v", epoch, err)
		}
	}
	w.process.refuseWith(nil)
	first := w.dial(Successor{})
	next.Epoch = 1
	descriptors.Check(t, "a refused successor", func() {
		if _, err := Dial(next, Successor{}); err == nil || !strings.Contains(err.Error(), "has a successor already") {
			t.Errorf("a second successor: %v", err)
		}
	})
	w.process.refuseWith(errors.New("no sockets"))
	if _, err := first.Sockets(); !errors.Is(err, ErrGone) || !strings.Contains(err.Error(), "no sockets") {
		t.Errorf("sockets: %v", err)
	}
	next.BaseID = 5
	if _, err := Dial(next, Successor{}); !errors.Is(err, ErrNoParent) {
		t.Errorf("another base id: %v", err)
	}
	if _, err := Dial(Config{Path: w.cfg.Path}, Successor{}); err == nil {
		t.Error("epoch 0 follows somebody")
	}
}
