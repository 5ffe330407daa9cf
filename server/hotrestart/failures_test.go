package hotrestart

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestBrokenSuccessor sends nonsense to a parent, which must continue.
func TestBrokenSuccessor(t *testing.T) {
	w := newWorld(t)
	greeting := string(head{askHello, 2, 0, 1}.append(nil)) + "\x01\x01"
	for name, text := range map[string]string{
		"nothing":   "",
		"garbage":   "GET / HTTP/1.1\r\n\r\n",
		"half":      greeting[:7],
		"version":   greeting[:5] + "\x09" + greeting[6:],
		"length":    string(head{askHello, 1 << 31, 0, 1}.append(nil)),
		"files":     string(head{askHello, 2, 3, 1}.append(nil)) + "\x01\x01",
		"empty":     string(head{askHello, 0, 0, 1}.append(nil)),
		"early":     string(head{askStats, 0, 0, 1}.append(nil)),
		"unknown":   greeting + string(head{99, 1, 0, 2}.append(nil)) + "\x00",
		"truncated": greeting + string(head{askStats, 5, 0, 2}.append(nil)) + "ab",
	} {
		t.Run(name, func(t *testing.T) {
			conn := w.connect()
			if _, err := io.WriteString(conn, text); err != nil {
				t.Fatal(err)
			}
			if err := conn.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, conn); err != nil && !strings.Contains(err.Error(), "reset") {
				t.Error(err)
			}
		})
	}
	w.dial(Successor{})
	if did := w.process.done(); did != "" {
		t.Errorf("the parent did %s", did)
	}
}

// TestSilentPeers: a peer that does not answer is left after the time limit.
func TestSilentPeers(t *testing.T) {
	cfg := Config{Path: filepath.Join(t.TempDir(), "hot"), Timeout: 30 * time.Millisecond}
	ln, err := net.ListenUnix("unix", cfg.address(0))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	talk := make(chan []byte, 4)
	go func() {
		for {
			c, err := ln.AcceptUnix()
			if err != nil {
				return
			}
			defer c.Close()
			_, _ = c.Write(<-talk)
		}
	}()
	cfg.Epoch = 1
	talk <- nil
	if _, err := Dial(cfg, Successor{}); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a parent that does not greet: %v", err)
	}
	greeted := func(answer []byte, to Successor) *Child {
		t.Helper()
		greeting := Origin{time.Unix(0, 0), 1}.append(nil)
		talk <- append(append(head{answerHello, uint32(len(greeting)), 0, 1}.append(nil), greeting...), answer...)
		patient := cfg
		patient.Timeout = time.Minute
		c, err := Dial(patient, to)
		if err != nil {
			t.Fatal(err)
		}
		c.link.timeout = cfg.Timeout
		return c
	}
	if err := greeted(nil, Successor{}).Stats(); !errors.Is(err, ErrGone) || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a parent that does not answer: %v", err)
	}
	for _, answer := range [][]byte{
		head{answerStats, 4, 0, 2}.append(nil), // and nothing follows
		append(head{answerStats, 4, 0, 2}.append(nil), "\xff\xff\xff\xff"...),
		append(head{answerDone, 1, 0, 2}.append(nil), 1),
		head{answerConnection, 0, 0, 2}.append(nil),
		head{answerSocket, 0, 0, 2}.append(nil),
		head{answerHello, 0, 0, 2}.append(nil),
		head{777, 0, 0, 2}.append(nil),
		{1, 2, 3},
	} {
		c := greeted(answer, Successor{Stat: func(*store.ExportedStat) { t.Error("a stat out of nothing") }})
		if err := c.Stats(); !errors.Is(err, ErrGone) {
			t.Errorf("answer %q: %v", answer, err)
		}
	}
}

// dialFake dials a parent that greets, and then does what play says.
func dialFake(t *testing.T, to Successor, play func(*link)) *Child {
	t.Helper()
	cfg := Config{Path: filepath.Join(t.TempDir(), "hot"), Timeout: 20 * time.Second}
	ln, err := net.ListenUnix("unix", cfg.address(0))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		c, err := ln.AcceptUnix()
		if err != nil {
			return
		}
		defer c.Close()
		l := &link{conn: c, timeout: time.Minute}
		_ = l.send(answerHello, Origin{time.Unix(0, 0), 1}.append(nil))
		play(l)
	}()
	cfg.Epoch = 1
	c, err := Dial(cfg, to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestHalfABatch: of a batch that breaks off nothing is applied, because the parent still
// has it to flush, unless it is a copy before the commit.
func TestHalfABatch(t *testing.T) {
	for _, tt := range []struct {
		name string
		ask  func(*Child) error
		want int
	}{
		{"stats", (*Child).Stats, 1}, {"commit", (*Child).Commit, 0},
		{"usage", (*Child).Watch, 0}, // a parent that ends sends its last stats unasked
	} {
		n := 0
		c := dialFake(t, Successor{Stat: func(*store.ExportedStat) { n++ }}, func(l *link) {
			for range 2 { // the greeting and the question
				if m, err := l.receive(0); err != nil || m.kind == 0 {
					return
				}
			}
			_ = l.send(answerStats, appendStat(nil, &samples()[0]))
		})
		if err := tt.ask(c); !errors.Is(err, ErrDied) || n != tt.want {
			t.Errorf("%s: %d stats, want %d; %v", tt.name, n, tt.want, err)
		}
	}
}

// TestGivenUpAfterCommit: a successor that ends before it serves has not acknowledged
// what the commit handed over.
func TestGivenUpAfterCommit(t *testing.T) {
	w := newWorld(t)
	w.process.has(samples()...)
	c := w.dial(Successor{Stat: func(*store.ExportedStat) {}})
	if err := c.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := c.Watch(); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if <-w.process.lost || w.process.done() != "commit stats" {
		t.Errorf("the parent did %s", w.process.done())
	}
}

// lateProcess is asked for its last stats while the acknowledgement of the ones before is
// under way.
type lateProcess struct {
	*fake
	before func()
}

func (p lateProcess) Stats(yield func(*store.ExportedStat) bool) {
	p.before()
	p.fake.Stats(yield)
}

// TestAcknowledgementBeforeAFailedHandoff: a parent that cannot hand over its last stats
// flushes them itself, and no increments that the successor acknowledged before it died.
func TestAcknowledgementBeforeAFailedHandoff(t *testing.T) {
	w := newWorld(t)
	conn := w.connect()
	l := &link{conn: conn, timeout: time.Minute}
	ask := func(k kind, payload []byte) {
		t.Helper()
		if _, err := l.call(k, payload); err != nil {
			t.Fatal(err)
		}
	}
	ask(askHello, hello{1, true}.append(nil))
	ask(askCommit, []byte{0})
	w.process.has(samples()...)
	err := w.Part().Finish(lateProcess{w.process, func() {
		if err := l.send(tellAck, []byte{1}); err != nil {
			t.Error(err)
		}
		_ = conn.Close()
	}})
	if err == nil {
		t.Error("the last stats have no reader")
	}
	if did := w.process.done(); did != "commit stats stats ack" {
		t.Errorf("the parent did %s", did)
	}
}

// TestUnsentQuestion: a question that cannot be sent fails without waiting for an answer,
// though the parent keeps the connection open.
func TestUnsentQuestion(t *testing.T) {
	over := make(chan struct{})
	defer close(over)
	c := dialFake(t, Successor{}, func(*link) { <-over })
	if err := c.link.conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := c.Stats(); !errors.Is(err, ErrGone) || !errors.Is(err, syscall.EPIPE) {
		t.Errorf("error %v, want that of the question", err)
	}
	if took := time.Since(begin); took > c.link.timeout/2 {
		t.Errorf("failed after %v", took)
	}
}

// TestLastAcknowledgement: without it the last stats are still to be flushed if the
// successor has left, and not if it can still read them.
func TestLastAcknowledgement(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		w := newWorld(t)
		c := w.dial(Successor{Stat: func(*store.ExportedStat) {}})
		w.process.has(samples()...)
		h := w.Part()
		if leaves {
			c.Close()
		} else {
			h.link.timeout = 50 * time.Millisecond
		}
		if err := h.Finish(w.process); (err != nil) != leaves {
			t.Errorf("successor leaves: %t, error %v", leaves, err)
		}
	}
}

// TestUnwantedFiles sends files where none belong: they are closed.
func TestUnwantedFiles(t *testing.T) {
	w := newWorld(t)
	conn := w.connect()
	r, wr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	l := &link{conn: conn, timeout: time.Minute}
	if err := l.send(askHello, hello{1, false}.append(nil), r, r); err != nil {
		t.Fatal(err)
	}
	if _, err := l.receive(time.Minute); err != nil {
		t.Fatal(err)
	}
	r.Close()
	// With the last reader gone, writing fails.
	for end := time.Now().Add(30 * time.Second); ; {
		if _, err = wr.Write([]byte("x")); err != nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the parent keeps files that it does not want")
		}
	}
	wr.Close()
}

// wildProcess panics when it is to drain.
type wildProcess struct{ *fake }

func (wildProcess) Drain() { panic(guardtest.Canary) }

// TestAnswerPanics: a panic ends the talk to one successor alone.
func TestAnswerPanics(t *testing.T) {
	panics := guardtest.New(t)
	cfg := Config{Path: filepath.Join(t.TempDir(), "hot"), Logger: panics.Logger()}
	p, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx, wildProcess{newFake()}) }()
	cfg.Epoch++
	for range 2 {
		c, err := Dial(cfg, Successor{})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Drain(); err == nil {
			t.Error("a process that panics has drained")
		}
		c.Close()
		panics.Caught("answer to a successor")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
