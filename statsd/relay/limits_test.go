package relay

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/store"
)

// TestLimits: the largest and smallest settings are accepted, the next ones are not.
func TestLimits(t *testing.T) {
	targets := func(n int) (list []Target) {
		for i := range n {
			list = append(list, Target{Address: fmt.Sprint("udp://127.0.0.1:", i+1)})
		}
		return list
	}
	size := func(n int) []Target { return []Target{{Address: "udp://127.0.0.1:1", PacketBytes: n}} }
	for _, tt := range []struct {
		targets []Target
		want    string
	}{
		{targets(1), ""}, {targets(256), ""}, {targets(257), "257 targets, not in [1,256]"},
		{size(64), ""}, {size(63), "packets of 63 bytes, not in [64,16777216]"},
		{size(16 << 20), ""}, {size(16<<20 + 1), "packets of 16777217 bytes"},
	} {
		_, err := Config{Store: store.New(store.Options{}), Parser: parser, Routes: []Route{{Targets: tt.targets}}}.withDefaults()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
}

func TestDefaults(t *testing.T) {
	in := Config{Store: store.New(store.Options{}), Parser: parser, Routes: []Route{{Targets: []Target{
		{Address: "udp://127.0.0.1:1"}, {Address: "tcp://127.0.0.1:1"}, {Address: "unixgram:///a"}, {Address: "unixstream:///a"}, {Address: "unixlines:///a"},
	}}}}
	c, err := in.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if c.Delay != 200*time.Millisecond || c.Timeout != 2*time.Second || c.Logger == nil {
		t.Errorf("delay %v, timeout %v", c.Delay, c.Timeout)
	}
	for i, size := range []int{1400, 65536, 8192, 8192, 8192} {
		got := c.Routes[0].Targets[i]
		if got.PacketBytes != size || got.QueueBytes != 4<<20 || got.Health.Interval != 5*time.Second || got.Name != got.Address {
			t.Errorf("%+v, want packets of %d bytes", got, size)
		}
	}
	least := Target{Address: "udp://127.0.0.1:1", QueueBytes: 1, Health: HealthCheck{Interval: 1}}
	c, err = Config{Store: in.Store, Parser: parser, Delay: 1, Timeout: 1, Routes: []Route{{Targets: []Target{least}}}}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Routes[0].Targets[0]; c.Delay != 1 || c.Timeout != 1 || got.QueueBytes != 1 || got.Health.Interval != 1 {
		t.Errorf("the least settings became delay %v, timeout %v, %+v", c.Delay, c.Timeout, got)
	}
	if in.Routes[0].Targets[0].Name != "" {
		t.Error("the caller's configuration was changed")
	}
}

// TestPacketsAreFilled: a packet has exactly the bytes that it may have.
func TestPacketsAreFilled(t *testing.T) {
	for _, tt := range []struct {
		address string
		long    bool   // the second line has a byte more
		want    string // sizes of packets
	}{
		{"udp://127.0.0.1:1", false, "[100]"}, {"udp://127.0.0.1:1", true, "[49 51]"},
		{"unixgram:///a", false, "[100]"}, {"tcp://127.0.0.1:1", false, "[50 51]"},
	} {
		w := newWorld(t, Route{Targets: []Target{{Address: tt.address, PacketBytes: 100}}})
		w.add(strings.Repeat("x", 45) + ":1|c")
		w.add(strings.Repeat("x", map[bool]int{false: 46, true: 47}[tt.long]) + ":1|c")
		var sizes []int
		for _, p := range w.queued(0) {
			sizes = append(sizes, len(p))
		}
		if got := fmt.Sprint(sizes); got != tt.want {
			t.Errorf("%s: packets of %s bytes, want %s", tt.address, got, tt.want)
		}
	}
	w := newWorld(t, Route{Targets: []Target{{Address: "tcp://127.0.0.1:1", PacketBytes: 100}}})
	w.add(strings.Repeat("x", 44) + ":1|c")
	w.add(strings.Repeat("x", 46) + ":1|c")
	if got := w.queued(0); len(got) != 1 || len(got[0]) != 100 {
		t.Errorf("%d packets of a stream", len(got))
	}
}

// TestThirdFailureInARow: a target is down after three failures of one kind.
func TestThirdFailureInARow(t *testing.T) {
	w := newWorld(t, Route{Targets: tcp("127.0.0.1:1")})
	x, bad := w.targets[0], errors.New("bad")
	for i, step := range []struct {
		f   *failures
		err error
		up  bool
	}{
		{&x.sends, bad, true}, {&x.sends, bad, true}, {&x.checks, bad, true}, {&x.checks, bad, true}, {&x.sends, nil, true},
		{&x.sends, bad, true}, {&x.checks, bad, false}, {&x.sends, nil, false}, {&x.checks, nil, true},
		{&x.sends, bad, true}, {&x.sends, bad, true}, {&x.sends, bad, false}, {&x.sends, bad, false}, {&x.sends, nil, true},
	} {
		x.note(step.f, step.err)
		if x.up.Load() != step.up || x.upGauge.Value() != map[bool]uint64{true: 1}[step.up] {
			t.Errorf("after step %d the target is up: %v, the gauge is %d", i, x.up.Load(), x.upGauge.Value())
		}
	}
}

// TestProbesBackOff: probes begin after 100 ms and are at most 30 s apart, a fifth
// either way, and begin again after a packet was sent.
func TestProbesBackOff(t *testing.T) {
	w := newWorld(t, Route{Targets: tcp("127.0.0.1:1")})
	x := w.targets[0]
	if d := x.nextProbe(); d != 0 {
		t.Errorf("a probe after %v although nothing failed", d)
	}
	x.sends.n = 3
	for _, want := range []time.Duration{100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30_000, 30_000} {
		want *= time.Millisecond
		if d := x.nextProbe(); d < want*8/10 || d > want*12/10 {
			t.Errorf("a probe after %v, want %v", d, want)
		}
	}
}

// TestHashStays: relays of different versions agree about the target of a name.
func TestHashStays(t *testing.T) {
	rt := newWorld(t, Route{Hash: Name, Targets: []Target{
		{Name: "a", Address: "udp://127.0.0.1:1"}, {Name: "b", Address: "udp://127.0.0.1:2"}, {Name: "c", Address: "udp://127.0.0.1:3"}, {Name: "d", Address: "udp://127.0.0.1:4"},
	}}).routes[0]
	got := ""
	for i := range 64 {
		owner, _ := rt.pick(invalidKey(fmt.Append(nil, "name.", i)))
		got += owner.cfg.Name
	}
	if want := "dabcccbaabdccccddacaaacbaddddcaacdaccaadaccddbbbbcdaccdddbacdadb"; got != want {
		t.Errorf("targets %s, want %s", got, want)
	}
}
