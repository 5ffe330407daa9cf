package admin

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestParameterLimits: the last value of each range is accepted, the next is not.
func TestParameterLimits(t *testing.T) {
	world := newWorld()
	s := newServer(t, Config{Sources: world.sources()})
	defer s.Close()
	for ttl, want := range map[string]int{"999999999ns": 400, "1s": 200, "720h": 200, "720h0m0.000000001s": 400} {
		if r := s.Request("POST", "/runtime_modify?k=1&dry_run&ttl="+ttl, nil); r.Status != want {
			t.Errorf("ttl=%s: status %d, want %d", ttl, r.Status, want)
		}
	}
	for text, want := range map[string]time.Duration{"": 30 * time.Second, "600": 10 * time.Minute, "600.001": 0, "0": 0, "0.001": time.Millisecond} {
		got, err := recordingTime(&Request{query: Query{{"seconds", text}}})
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("seconds=%s: %v, %v, want %v", text, got, err, want)
		}
	}
	for cpu, ok := range map[time.Duration]bool{-1: false, 0: true, 30 * time.Second: true, 30*time.Second + 1: false} {
		done, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Bundle(done, io.Discard, cpu); err != nil && strings.Contains(err.Error(), "is not in [0, 30s]") == ok {
			t.Errorf("a CPU profile of %v: %v", cpu, err)
		}
		if r := s.Request("GET", "/bundle?cpu="+cpu.String(), nil); !ok && r.Status != 400 {
			t.Errorf("cpu=%v: status %d", cpu, r.Status)
		}
	}
	list := func(n int) string { return strings.Repeat(",1", n)[1:] }
	for n, ok := range map[int]bool{1: true, 100: true, 101: false} {
		if got, err := numbers("quantiles", list(n), 1, 1); (err == nil) != ok || ok && len(got) != n {
			t.Errorf("%d numbers: %d, %v", n, len(got), err)
		}
	}
	for text, ok := range map[string]bool{"0": true, "100": true, "-0.1": false, "100.1": false} {
		if _, err := numbers("quantiles", text, 0, 100); (err == nil) != ok {
			t.Errorf("%s from 0 to 100: %v", text, err)
		}
	}
}

// TestTokenLimits: a secret has at least 22 bytes, a file of tokens at most 1 MiB.
func TestTokenLimits(t *testing.T) {
	secret := strings.Repeat("x", 22)
	token, err := NewToken("a", RoleRead, secret)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := NewTokens(token).find(secret); !ok {
		t.Error("a secret of 22 bytes is not found")
	}
	if _, err := NewToken("a", RoleRead, secret[1:]); err == nil {
		t.Error("a secret of 21 bytes is accepted")
	}
	for size, ok := range map[int]bool{1 << 20: true, 1<<20 + 1: false} {
		path := filepath.Join(t.TempDir(), "tokens")
		if err := os.WriteFile(path, []byte("#"+strings.Repeat("\n", size-1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if list, err := ReadTokens(path); (err == nil) != ok || len(list) != 0 {
			t.Errorf("a file of %d bytes: %v, %v", size, list, err)
		}
	}
}

// TestPanicWindow: the third panic within a minute disables a handler, once.
func TestPanicWindow(t *testing.T) {
	for _, tt := range []struct {
		at       []time.Duration
		disabled int // the panic that does it, from 1; 0: none
	}{
		{[]time.Duration{0, 1, time.Minute - 1}, 3},
		{[]time.Duration{0, 1, time.Minute}, 0},
		{[]time.Duration{0, 30 * time.Second, time.Minute, 89 * time.Second}, 4},
		{[]time.Duration{0, 0, 0, 0}, 3},
	} {
		var p panicLog
		for i, at := range tt.at {
			if got, want := p.note("/a", testTime().Add(at)), i+1 == tt.disabled; got != want {
				t.Errorf("panics at %v: number %d disables the handler: %v", tt.at, i+1, got)
			}
			if p.disabled("/b") || p.disabled("/a") != (tt.disabled > 0 && i+1 >= tt.disabled) {
				t.Errorf("panics at %v: after number %d disabled is %v", tt.at, i+1, p.disabled("/a"))
			}
		}
	}
}

// TestGateLimits lets as many requests in, and wait, as a gate allows, and one more.
func TestGateLimits(t *testing.T) {
	for _, tt := range []struct {
		running, waiting int
		wait             time.Duration
		ask              int
		in, refused      int           // at once
		took             time.Duration // until the last one that waited gave up
	}{
		{2, 1, time.Second, 3, 2, 0, time.Second},
		{2, 1, time.Second, 4, 2, 1, time.Second},
		{1, 0, time.Second, 2, 1, 1, 0},
		{1, -1, time.Second, 9, 1, 0, time.Second},
		{0, 0, time.Second, 9, 9, 0, 0},
		{-1, 0, time.Second, 9, 9, 0, 0},
		{1, 1, 0, 2, 1, 0, time.Hour}, // without a limit: until stop
	} {
		t.Run(fmt.Sprint(tt.running, "+", tt.waiting, "+", tt.wait, "/", tt.ask), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate(tt.running, tt.waiting, tt.wait)
				stop, answers := make(chan struct{}), make(chan bool, tt.ask)
				for range tt.ask {
					go func() { answers <- g.enter(stop) }()
				}
				synctest.Wait()
				in := 0
				first := len(answers)
				for range first {
					if <-answers {
						in++
					}
				}
				if in != tt.in || first-in != tt.refused {
					t.Errorf("%d in, %d refused at once, want %d and %d", in, first-in, tt.in, tt.refused)
				}
				began := time.Now()
				time.AfterFunc(time.Hour, func() { close(stop) })
				for range tt.ask - first {
					if <-answers {
						t.Error("one got in that waited in vain")
					}
				}
				if took := time.Since(began); took != tt.took {
					t.Errorf("the others waited for %v, want %v", took, tt.took)
				}
				if g.waiting.Load() != 0 {
					t.Errorf("%d still wait", g.waiting.Load())
				}
				for range in {
					g.leave()
				}
				if tt.running > 0 && !g.enter(stop) {
					t.Error("nothing gets in although nothing runs")
				}
			})
		})
	}
}
