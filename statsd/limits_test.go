package statsd

import (
	"strings"
	"testing"
	"time"
)

// TestTopWindow: the rates of names cover the last minute, in at most 60 intervals and
// at least one.
func TestTopWindow(t *testing.T) {
	for _, tt := range []struct {
		interval  time.Duration
		add, left int
	}{
		{5 * time.Second, 12, 12}, {5 * time.Second, 13, 12}, {time.Second, 60, 60}, {time.Second, 61, 60},
		{time.Millisecond, 60, 60}, {time.Millisecond, 61, 60}, {time.Minute, 2, 1}, {time.Minute + 1, 2, 1}, {20*time.Second + 1, 3, 2},
	} {
		var w topWindow
		for range tt.add {
			w.add(map[string]uint64{"a": uint64(tt.interval / time.Millisecond)}, tt.interval)
		}
		if n := len(w.intervals); n != tt.left {
			t.Errorf("%d intervals of %v: %d are kept, want %d", tt.add, tt.interval, n, tt.left)
		}
		if r := w.rates(9); len(r) != 1 || r[0].PerSecond < 999.9 || r[0].PerSecond > 1000.1 {
			t.Errorf("%d intervals of %v: rates %v, want 1000 per second", tt.add, tt.interval, r)
		}
	}
}

// TestSetWindows: sets cover 10 minutes in 5 steps by default, of a second or more.
func TestSetWindows(t *testing.T) {
	for _, tt := range []struct {
		all   time.Duration
		steps int
		want  setWindow
	}{
		{0, 0, setWindow{step: 2 * time.Minute, steps: 5}}, {time.Minute, 0, setWindow{step: 12 * time.Second, steps: 5}},
		{0, 10, setWindow{step: time.Minute, steps: 10}}, {10 * time.Second, 10, setWindow{step: time.Second, steps: 10}},
		{9 * time.Second, 10, setWindow{step: time.Second, steps: 10}}, {1, 1, setWindow{step: time.Second, steps: 1}}, {-1, 3, setWindow{}},
	} {
		if got := newSetWindow(tt.all, tt.steps); got != tt.want {
			t.Errorf("%v in %d steps: %+v, want %+v", tt.all, tt.steps, got, tt.want)
		}
	}
}

// TestLongestPath: paths of unix sockets have 2 to 107 bytes, ports 16 bits.
func TestLongestPath(t *testing.T) {
	for text, ok := range map[string]bool{
		"unixgram:///": false, "unixgram:///a": true,
		"unixgram:///" + strings.Repeat("x", 106): true, "unixgram:///" + strings.Repeat("x", 107): false,
		"udp://:65535": true, "udp://:65536": false, "udp://:0": true, "udp://:-1": false,
	} {
		if _, err := parseAddress(text); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestConnectionPatience: 512 connections wait for half a second each.
func TestConnectionPatience(t *testing.T) {
	var c connSet
	c.init()
	if c.room != 512 || c.patience != 500*time.Millisecond {
		t.Errorf("%d wait for %v, want 512 for 500 ms", c.room, c.patience)
	}
}
