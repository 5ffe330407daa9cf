package statsd

import (
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestMetricsOfTransports sends the same input over each kind of transport,
// with one packet of the maximum size, and checks the counts of packets and
// bytes.
func TestMetricsOfTransports(t *testing.T) {
	dir := t.TempDir()
	packets := []string{
		"a:1|c\na:1|c\n",
		strings.Repeat("a:1|c\n", 166) + "a:1\n", // 1000 bytes
		"\n",
	}
	const applied, lines, size = 168, 169, 12 + 1000 + 1
	for _, tt := range []struct {
		name, address string
		framed        bool // by length
		packets       uint64
		bytes         uint64
	}{
		{"udp", "udp://127.0.0.1:0", false, 3, size},
		{"unixgram", "unixgram://" + dir + "/g", false, 3, size},
		{"tcp", "tcp://127.0.0.1:0", false, 0, size},
		{"unixlines", "unixlines://" + dir + "/l", false, 0, size},
		{"unixstream", "unixstream://" + dir + "/s", true, 3, size + 3*lengthPrefix + 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLive(t, Config{Listeners: []ListenerConfig{{Address: tt.address, PacketBytes: 1000, Readers: 1}}}).run()
			c := l.dial(0)
			for _, p := range packets {
				if tt.framed {
					p = frame(p)
				}
				write(t, c, p)
			}
			if tt.framed {
				write(t, c, frame("lost")[:6])
			}
			_ = c.Close()
			f := l.listeners[0].metrics
			waittest.Until(t, "the bytes", func() bool { return f.bytes.Total() >= tt.bytes })
			l.stop()
			r := l.report(0)
			want := uint64(lines)
			if tt.framed {
				want++ // the frame that breaks off
			}
			if r.Packets != tt.packets || f.bytes.Total() != tt.bytes || r.Applied != applied || r.Lines != want || r.Rejected["missing_pipe"] != 1 {
				t.Errorf("%d packets, %d bytes, want %d, %d; %+v", r.Packets, f.bytes.Total(), tt.packets, tt.bytes, r)
			}
			l.store.Flush(store.FlushOptions{}).Close()
			if tt.packets == 0 {
				if f.linesPerPacket != nil || f.batchSize != nil {
					t.Error("packets are told of where there are none")
				}
				return
			}
			if s := f.linesPerPacket.Snapshot().Cumulative; s.Count() != 3 || s.Sum() != lines {
				t.Errorf("lines per packet: %d values, sum %v", s.Count(), s.Sum())
			}
			if tt.framed {
				return
			}
			if s := f.batchSize.Snapshot().Cumulative; s.Sum() != 3 {
				t.Errorf("sizes of batches add up to %v, want 3", s.Sum())
			}
		})
	}
}

// TestBusyTime: the time of each sixteenth visit of a worker stands for that of sixteen,
// and whole seconds are counted.
func TestBusyTime(t *testing.T) {
	r := newRig(t, Config{})
	w := r.streamWorkers[0]
	last := 0.0
	for visit := range 3 * busyEvery {
		r.send("a:1|c")
		now := w.busy.value()
		if timed := now > last; timed != (visit%16 == 15) {
			t.Errorf("visit %d is timed: %t", visit+1, timed)
		}
		last = now
	}
	b := newBusyTime(r.store.Root(), "x")
	for i := range 3 {
		b.add(time.Now().Add(-100 * time.Millisecond))
		if least := float64(i+1) * 1.6; b.value() < least || b.seconds.Total() != uint64(b.value()) {
			t.Errorf("%d times 100 ms are %v seconds, %d counted, want %v", i+1, b.value(), b.seconds.Total(), least)
		}
	}
}
