package health

import (
	"bytes"
	"io"
	"math"
	"net"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/upstreamtest"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// TestRandomTimesAreBelowTheirBound draws numbers around the bound.
func TestRandomTimesAreBelowTheirBound(t *testing.T) {
	for _, tt := range []struct {
		bound time.Duration
		drawn uint64
		want  time.Duration
	}{{10, 9, 9}, {10, 10, 0}, {10, 11, 1}, {1, 7, 0}, {0, 7, 0}, {-5, 7, 0}, {math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 - 1}, {math.MaxInt64, math.MaxInt64, 0}} {
		k, err := New(Config{Check: settings(), Rand: func() uint64 { return tt.drawn }})
		if err != nil {
			t.Fatal(err)
		}
		if got := k.random(tt.bound); got != tt.want {
			t.Errorf("below %d, number %d: %d, want %d", tt.bound, tt.drawn, got, tt.want)
		}
	}
}

// TestIntervalsStayWithinTheRuntime has intervals at both bounds and beyond.
func TestIntervalsStayWithinTheRuntime(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		runtime map[string]uint64
		in      time.Duration
		want    time.Duration
	}{
		{nil, 0, ms}, {nil, ms - 1, ms}, {nil, ms, ms}, {nil, math.MaxInt64, math.MaxInt64 / ms * ms},
		{map[string]uint64{"max_interval": 5}, 5 * ms, 5 * ms}, {map[string]uint64{"max_interval": 5}, 5*ms + 1, 5 * ms}, {map[string]uint64{"max_interval": 5}, 5*ms - 1, 5*ms - 1},
		{map[string]uint64{"min_interval": 5}, 5 * ms, 5 * ms}, {map[string]uint64{"min_interval": 5}, 5*ms - 1, 5 * ms}, {map[string]uint64{"min_interval": 5}, 5*ms + 1, 5*ms + 1},
		{map[string]uint64{"min_interval": 7, "max_interval": 5}, 6 * ms, 7 * ms}, {map[string]uint64{"min_interval": math.MaxUint64}, ms, math.MaxInt64 / ms * ms},
	} {
		run := upstreamtest.Runtime{}
		for key, v := range tt.runtime {
			run["health_check."+key] = v
		}
		k, err := New(Config{Check: settings(), Runtime: run})
		if err != nil {
			t.Fatal(err)
		}
		if got := k.clamp(tt.in); got != tt.want {
			t.Errorf("%v, runtime %v: %v, want %v", tt.in, tt.runtime, got, tt.want)
		}
	}
}

// TestThresholdsAtTheirLimit has runs of checks of one less than each threshold, and as many.
// Another outcome in between starts the run again.
func TestThresholdsAtTheirLimit(t *testing.T) {
	for _, tt := range []struct {
		failed  bool // before
		steps   []*Outcome
		want    bool // failed afterwards
		pending Transition
	}{
		{false, []*Outcome{broken, broken}, false, ChangePending},
		{false, []*Outcome{broken, broken, broken}, true, Changed},
		{false, []*Outcome{broken, broken, ok, broken, broken}, false, ChangePending},
		{false, []*Outcome{broken, retriable, broken}, true, Changed},
		{false, []*Outcome{bad}, true, Changed},
		{true, []*Outcome{bad, ok}, true, ChangePending},
		{true, []*Outcome{bad, ok, ok}, false, Changed},
		{true, []*Outcome{bad, ok, bad, ok}, true, ChangePending},
		{true, []*Outcome{ok}, false, Changed}, // the first check decides
	} {
		var n counts
		k, err := New(Config{Check: settings(), Stats: n.stats()})
		if err != nil {
			t.Fatal(err)
		}
		h := upstreamtest.Host(1)
		if tt.failed {
			h.SetFlags(status.FailedActiveHC)
		}
		s := &session{k: k, host: h, first: true}
		var last Transition
		for _, o := range tt.steps {
			last, _ = s.apply(*o)
		}
		if got := h.Flags()&status.FailedActiveHC != 0; got != tt.want || last != tt.pending {
			t.Errorf("failed %v, then %d checks: failed %v, transition %d, want %v, %d", tt.failed, len(tt.steps), got, last, tt.want, tt.pending)
		}
		if got, want := n.healthy.Value() == 1, !tt.want; got != want {
			t.Errorf("failed %v, then %d checks: %d healthy", tt.failed, len(tt.steps), n.healthy.Value())
		}
	}
}

// TestGaugesOfEndedSessions has hosts of each kind whose checks end.
func TestGaugesOfEndedSessions(t *testing.T) {
	var n counts
	k, err := New(Config{Check: settings(), Stats: n.stats(), Custom: func(*host.Host) Prober { return &script{steps: []*Outcome{ok}} }})
	if err != nil {
		t.Fatal(err)
	}
	k.c.Check.InitialJitter, k.c.Rand = time.Hour, func() uint64 { return uint64(time.Hour - 1) }
	var hosts []*host.Host
	for _, f := range []status.Flags{0, status.DegradedActiveHC, status.FailedActiveHC, status.FailedActiveHC | status.DegradedActiveHC, 0} {
		h := upstreamtest.Host(len(hosts))
		h.SetFlags(f)
		hosts = append(hosts, h)
		k.Add(h)
	}
	for i, want := range [][2]uint64{{3, 2}, {2, 2}, {1, 1}, {1, 1}, {1, 0}, {0, 0}} {
		if got := [2]uint64{n.healthy.Value(), n.degraded.Value()}; got != want {
			t.Errorf("%d of %d removed: healthy and degraded %v, want %v", i, len(hosts), got, want)
		}
		if i < len(hosts) {
			k.Remove(hosts[i])
		}
	}
	k.Close()
}

// chunks is a connection that answers with texts, one for each Read.
type chunks struct {
	net.Conn
	left [][]byte
}

func (*chunks) Write(b []byte) (int, error) { return len(b), nil }
func (*chunks) SetDeadline(time.Time) error { return nil }
func (*chunks) Close() error                { return nil }
func (c *chunks) Read(b []byte) (n int, e error) {
	if len(c.left) == 0 {
		return 0, io.EOF
	}
	n = copy(b, c.left[0])
	if c.left[0] = c.left[0][n:]; len(c.left[0]) == 0 {
		c.left = c.left[1:]
	}
	return n, nil
}

// TestTCPAnswersAtTheLimit has the payload behind as many bytes as are kept, and one more.
func TestTCPAnswersAtTheLimit(t *testing.T) {
	for size, want := range map[int]bool{maxReceived - 1: true, maxReceived: true, maxReceived + 1: false} {
		p := &tcpProber{conn: &chunks{left: [][]byte{bytes.Repeat([]byte("x"), size), []byte("end")}}}
		if err := p.exchange(t.Context(), nil, [][]byte{[]byte("end")}); (err == nil) != want {
			t.Errorf("%d bytes before the payload: %v", size, err)
		}
	}
}

// TestStatusesAtTheEdgesOfRanges has the status that matters in the first, a middle and the
// last range.
func TestStatusesAtTheEdgesOfRanges(t *testing.T) {
	list := []config.StatusRange{{Start: 200, End: 202}, {Start: 300, End: 301}, {Start: 400, End: 500}}
	for code, want := range map[int]bool{199: false, 200: true, 201: true, 202: false, 299: false, 300: true, 301: false, 399: false, 400: true, 499: true, 500: false} {
		if inRanges(list, code) != want {
			t.Errorf("%d: %v", code, !want)
		}
	}
	if inRanges(nil, 200) {
		t.Error("no range has 200")
	}
}
