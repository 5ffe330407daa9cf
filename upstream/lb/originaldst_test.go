package lb

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/upstreamtest"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

func TestOriginalDst(t *testing.T) {
	var invalid upstreamtest.Count
	var added atomic.Uint64
	b := NewOriginalDst(OriginalDstConfig{UseHeader: true, ClusterName: "od", Invalid: invalid.Counter(), Added: func(*host.Host) { added.Add(1) }})
	to := config.Address{IP: netip.MustParseAddrPort("10.0.0.1:80")}
	h := b.Pick(&Context{Destination: to})
	if h == nil || h.AddressText() != "10.0.0.1:80" || h.Hostname() != "od10.0.0.1:80" {
		t.Fatalf("picked %v", h)
	}
	if again := b.Pick(&Context{Destination: to}); again != h || added.Load() != 1 {
		t.Errorf("second pick %v, added %d times", again, added.Load())
	}
	if o := b.Pick(&Context{Destination: to, DestinationHeader: "[::1]:9"}); o.AddressText() != "[::1]:9" {
		t.Errorf("by header: %s", o.AddressText())
	}
	if o := b.Pick(&Context{Destination: to, DestinationHeader: "nowhere"}); o != h || invalid.Value() != 1 {
		t.Errorf("bad header: %v, counted %d", o, invalid.Value())
	}
	if o := b.Pick(&Context{Destination: to, HasDestinationHeader: true}); o != h || invalid.Value() != 2 {
		t.Errorf("empty header: %v, counted %d", o, invalid.Value())
	}
	if o := b.Pick(nil); o != nil {
		t.Errorf("no context: %v", o)
	}
	if o := b.Pick(&Context{}); o != nil {
		t.Errorf("no destination: %v", o)
	}
	if o := b.Pick(&Context{Destination: config.Address{Pipe: "/x"}}); o != nil {
		t.Errorf("pipe: %v", o)
	}
	if gone := b.Sweep(); len(gone) != 0 {
		t.Errorf("first sweep removed %d used hosts", len(gone))
	}
	b.Pick(&Context{Destination: to})
	if gone := b.Sweep(); len(gone) != 1 || gone[0].AddressText() != "[::1]:9" {
		t.Errorf("second sweep removed %v, want the unused one", gone)
	}
	if gone := b.Sweep(); len(gone) != 1 || gone[0] != h {
		t.Errorf("third sweep removed %v, want the other", gone)
	}
}

func TestOriginalDstOrder(t *testing.T) {
	var invalid upstreamtest.Count
	b := NewOriginalDst(OriginalDstConfig{UseHeader: true, Invalid: invalid.Counter()})
	at := func(text string) config.Address { return config.Address{IP: netip.MustParseAddrPort(text)} }
	ctx := Context{Destination: at("10.0.0.1:1"), DestinationMetadata: "10.0.0.2:2", DestinationHeader: "10.0.0.3:3", DestinationOverride: at("10.0.0.4:4")}
	for _, tt := range []struct {
		want    string
		invalid uint64
		next    func()
	}{
		{"10.0.0.4:4", 0, func() { ctx.DestinationOverride = config.Address{Pipe: "/x"} }},
		{"10.0.0.3:3", 0, func() { ctx.DestinationHeader = "three" }},
		{"10.0.0.2:2", 1, func() { ctx.DestinationHeader, ctx.DestinationMetadata = "", "two" }},
		{"10.0.0.1:1", 2, func() { ctx.DestinationMetadata = "" }},
		{"10.0.0.1:1", 2, func() {}},
	} {
		if h := b.Pick(&ctx); h.AddressText() != tt.want || invalid.Value() != tt.invalid {
			t.Errorf("picked %s, want %s; %d invalid, want %d", h.AddressText(), tt.want, invalid.Value(), tt.invalid)
		}
		tt.next()
	}
}

// TestOriginalDstWithLongZone: clients decide the address, and the host keeps its text.
func TestOriginalDstWithLongZone(t *testing.T) {
	for zone, want := range map[string]uint64{"0123456789abcde": 0, "0123456789abcdef": 1} {
		var invalid upstreamtest.Count
		b := NewOriginalDst(OriginalDstConfig{UseHeader: true, Invalid: invalid.Counter()})
		h := b.Pick(&Context{DestinationHeader: "[fe80::1%" + zone + "]:80"})
		if (h == nil) != (want > 0) || invalid.Value() != want {
			t.Errorf("zone %s: picked a host: %t, %d invalid, want %d", zone, h != nil, invalid.Value(), want)
		}
	}
}

func TestOriginalDstKeepsHostsThatAreBeingAdded(t *testing.T) {
	var b *OriginalDst
	during := 0
	b = NewOriginalDst(OriginalDstConfig{Limit: 1, Added: func(*host.Host) {
		for range 3 {
			during += len(b.Sweep())
		}
	}})
	h := b.Pick(&Context{Destination: upstreamtest.Host(1).Address()})
	if during != 0 {
		t.Errorf("%d hosts went before they were added, and so would stay for ever", during)
	}
	b.Sweep()
	if gone := b.Sweep(); len(gone) != 1 || gone[0] != h {
		t.Errorf("removed %v, want the host that was added", gone)
	}
}

func TestOriginalDstLimit(t *testing.T) {
	var overflow upstreamtest.Count
	var added atomic.Uint64
	b := NewOriginalDst(OriginalDstConfig{Limit: 100, Overflow: overflow.Counter(), Added: func(*host.Host) { added.Add(1) }})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 200 {
				b.Pick(&Context{Destination: upstreamtest.Host(i).Address()})
			}
		})
	}
	wg.Wait()
	if added.Load() != 100 || overflow.Value() != 800 {
		t.Errorf("%d hosts and %d refused picks, want 100 and 800", added.Load(), overflow.Value())
	}
	b.Sweep()
	if gone := len(b.Sweep()); gone != 100 {
		t.Errorf("%d hosts went, want 100", gone)
	}
	if h := b.Pick(&Context{Destination: upstreamtest.Host(200).Address()}); h == nil {
		t.Error("no host though there is room again")
	}
}

func TestOriginalDstPortOverride(t *testing.T) {
	b := NewOriginalDst(OriginalDstConfig{Port: 99})
	if h := b.Pick(&Context{Destination: config.Address{IP: netip.MustParseAddrPort("10.0.0.1:80")}, DestinationHeader: "10.9.9.9:1"}); h.AddressText() != "10.0.0.1:99" {
		t.Errorf("picked %s", h.AddressText())
	}
}

func TestOriginalDstMakesOneHostForAll(t *testing.T) {
	var added atomic.Uint64
	b := NewOriginalDst(OriginalDstConfig{Added: func(*host.Host) { added.Add(1) }})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 200 {
				b.Pick(&Context{Destination: upstreamtest.Host(i).Address()})
				if i%50 == 0 {
					b.Sweep()
				}
			}
		})
	}
	wg.Wait()
	if added.Load() < 200 {
		t.Errorf("added %d, want at least 200", added.Load())
	}
}
