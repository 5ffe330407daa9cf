package statsd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/statsd/report"
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

// TestTopWindowWhenTheClockIsSet: an interval whose clock was set back takes no time.
func TestTopWindowWhenTheClockIsSet(t *testing.T) {
	var w topWindow
	for _, length := range []time.Duration{10 * time.Second, -time.Hour, 10 * time.Second} {
		w.add(map[string]uint64{"a": 10}, length)
	}
	if r := w.rates(9); len(r) != 1 || r[0].PerSecond != 1.5 {
		t.Errorf("rates %v, want 1.5 per second", r)
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

// TestNearlyFull: a limit is near from four fifths on, unless there is none.
func TestNearlyFull(t *testing.T) {
	for _, tt := range []struct {
		use, most int
		want      bool
	}{{3, 5, false}, {4, 5, true}, {5, 5, true}, {0, 1, false}, {1, 1, true}, {unlimited, unlimited, false}, {unlimited - 1, unlimited - 1, true}} {
		if got := nearly(tt.use, tt.most); got != tt.want {
			t.Errorf("%d of %d is near: %t", tt.use, tt.most, got)
		}
	}
	r := newRig(t, Config{})
	m := &r.registry.memory
	m.max = 1000
	for used, want := range map[int]bool{799: false, 800: true} {
		m.charge(used)
		if got := r.registry.near(limitMemory); got != want {
			t.Errorf("%d of 1000 bytes are near the limit: %t", used, got)
		}
		m.charge(-used)
	}
}

// TestUseOfLimits compares the use of each limit, whose maximum is -1 if it is off.
func TestUseOfLimits(t *testing.T) {
	r := newRig(t, Config{Limits: Limits{Series: 100, FirstSegment: 90, SeriesPerName: 80, NewPerSecond: 70, Sets: 60, ValuesPerTagKey: 50, MemoryBytes: -1}})
	for _, step := range []struct {
		send string
		want map[limit]int
	}{
		{"", map[limit]int{}},
		{"a.x:1|c", map[limit]int{limitSeries: 1, limitFirstSegment: 1, limitPerName: 1, limitRate: 1}},
		{"a.y:1|c|#k:1\na.y:1|c|#k:2\nb:x|s", map[limit]int{limitSeries: 4, limitFirstSegment: 3, limitPerName: 2, limitRate: 4, limitSets: 1, limitTagValues: 2}},
	} {
		r.send(step.send)
		for lim, most := range map[limit]int{limitSeries: 100, limitFirstSegment: 90, limitPerName: 80, limitRate: 70, limitSets: 60, limitTagValues: 50, limitStore: -1, limitMemory: -1} {
			gotMost, use := r.registry.use(lim)
			want := step.want[lim]
			if lim == limitMemory {
				want = int(r.registry.memory.total())
			}
			if gotMost != most || use != want {
				t.Errorf("after %q, %v: %d of %d, want %d of %d", step.send, lim, use, gotMost, want, most)
			}
		}
	}
}

// TestInsertTop keeps the twenty largest counts, equal ones by name.
func TestInsertTop(t *testing.T) {
	var all, got []report.NameCount
	for i := range 60 {
		all = append(all, report.NameCount{Name: fmt.Sprintf("n%02d", i*7%60), Count: uint64(i % 5)})
	}
	for i, c := range all {
		got = insertTop(got, c)
		want := slices.SortedFunc(slices.Values(all[:i+1]), func(a, b report.NameCount) int {
			return cmp.Or(-cmp.Compare(a.Count, b.Count), strings.Compare(a.Name, b.Name))
		})
		if want = want[:min(len(want), 20)]; !slices.Equal(got, want) {
			t.Fatalf("after %d names: %v, want %v", i+1, got, want)
		}
	}
}
