package sinkqueue_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestLimits fills queues exactly, and then a bit more.
func TestLimits(t *testing.T) {
	type counts struct {
		packets, owed int // owed: series so far
		lost          uint64
	}
	for _, tt := range []struct {
		name    string
		options sinkqueue.Options
		series  int
		key     int   // its length at least
		sizes   []int // of packets, each with a series of its own
		age     time.Duration
		full    counts
		size    int // of another packet
		wait    time.Duration
		over    counts
	}{
		{"bytes", sinkqueue.Options{QueueBytes: 100}, 0, 0, []int{40, 60}, 0, counts{2, 0, 0}, 1, 0, counts{2, 1, 0}},
		{"one_packet", sinkqueue.Options{QueueBytes: 100}, 0, 0, []int{100}, 0, counts{1, 0, 0}, 101, 0, counts{0, 2, 0}},
		{"default_bytes", sinkqueue.Options{}, 0, 0, []int{16<<20 - 10, 10}, 0, counts{2, 0, 0}, 1, 0, counts{2, 1, 0}},
		{"small_packets", sinkqueue.Options{QueueBytes: 1 << 17}, 0, 0, slices.Repeat([]int{1}, 1<<11), 0, counts{1 << 11, 0, 0}, 1, 0, counts{1 << 11, 1, 0}},
		{"few_small_packets", sinkqueue.Options{QueueBytes: 4096}, 0, 0, slices.Repeat([]int{1}, 1<<10), 0, counts{1 << 10, 0, 0}, 1, 0, counts{1 << 10, 1, 0}},
		{"age", sinkqueue.Options{QueueAge: time.Minute}, 0, 0, []int{1, 1}, time.Minute, counts{2, 0, 0}, 1, 1, counts{1, 2, 0}},
		{"default_age", sinkqueue.Options{}, 0, 0, []int{1, 1}, 10 * time.Minute, counts{2, 0, 0}, 1, 1, counts{1, 2, 0}},
		{"keys", sinkqueue.Options{QueueBytes: 1}, 4, 512, []int{2, 2, 2}, 0, counts{0, 2, 1}, 2, 0, counts{0, 3, 1}},
		{"series", sinkqueue.Options{QueueBytes: 1}, 2, 0, []int{2, 2, 2}, 0, counts{0, 2, 1}, 2, 0, counts{0, 3, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.options.Name, tt.options.Store = "out", store.New(store.Options{})
				series, owed := 0, 0
				q := sinkqueue.New(sinkqueue.Config{Options: tt.options, Series: tt.series, Send: (&target{}).send,
					Increments: func(_ []byte, yield func([]byte, uint64)) {
						series++
						yield(fmt.Appendf(nil, "%*d", tt.key, series), 1)
					}})
				check := func(when string, want counts) {
					t.Helper()
					owed += len(q.Owed())
					d := q.Delivery()
					if got := (counts{d.Packets, owed, d.LostCounts}); got != want {
						t.Errorf("%s: %+v, want %+v", when, got, want)
					}
				}
				for _, size := range tt.sizes {
					q.Add(bytes.Repeat([]byte("x"), size), 1)
				}
				time.Sleep(tt.age)
				check("full", tt.full)
				q.Add(bytes.Repeat([]byte("x"), tt.size), 1)
				time.Sleep(tt.wait)
				check("over", tt.over)
			})
		})
	}
}

// TestLongestWait: a receiver cannot ask for more than the age of packets.
func TestLongestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &target{err: &sinkqueue.Wait{After: time.Hour, Err: errDown}}
		q, metric, stop := queue(t, r, func(c *sinkqueue.Config) { c.QueueAge = time.Minute })
		q.Add([]byte("a:1\n"), 1)
		synctest.Wait()
		if d := q.Delivery(); d.NextRetry.Sub(r.at[0]) != time.Minute {
			t.Errorf("the next attempt is after %v", d.NextRetry.Sub(r.at[0]))
		}
		time.Sleep(20 * time.Second)
		q.Add([]byte("b:1\n"), 1)
		if s := metric("queue_age_seconds"); s != 20 {
			t.Errorf("the oldest packet waits for %d s", s)
		}
		stop()
	})
}

// TestNoAttemptAfterTheAge: a packet that gets too old during a pause is not tried again.
func TestNoAttemptAfterTheAge(t *testing.T) {
	for _, many := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const age = time.Second
			r := &target{err: errDown}
			q, metric, stop := queue(t, r, func(c *sinkqueue.Config) {
				if c.QueueAge = age; many {
					c.SendAll = func([][]byte) bool { return false }
				}
			})
			began := time.Now()
			q.AddAll([]sinkqueue.Packed{{Data: []byte("a:1\n"), Metrics: 1}, {Data: []byte("b:1\n"), Metrics: 1}})
			time.Sleep(time.Minute)
			synctest.Wait()
			if last := r.at[len(r.at)-1].Sub(began); last > age || len(r.at) < 3 {
				t.Errorf("%d attempts, the last after %v", len(r.at), last)
			}
			if metric("dropped_packets") != 2 || metric("owed_series") != 2 {
				t.Errorf("%d packets dropped, %d series owed", metric("dropped_packets"), metric("owed_series"))
			}
			stop()
		})
	}
}

// TestIntervalIsNotNegative: 0 means every flush.
func TestIntervalIsNotNegative(t *testing.T) {
	for interval, ok := range map[time.Duration]bool{-1: false, 0: true, 1: true} {
		o := sinkqueue.Options{Store: store.New(store.Options{}), Interval: interval}
		if err := o.Check("out", "kind"); (err == nil) != ok {
			t.Errorf("%v: %v", interval, err)
		}
	}
}

// TestAlphabets writes each byte in each alphabet.
func TestAlphabets(t *testing.T) {
	letters := "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	control := "\x7f"
	for c := range byte(' ') {
		control += string(c)
	}
	var all []byte
	for c := range 256 {
		all = append(all, byte(c))
	}
	for _, tt := range []struct {
		name     string
		alphabet *sinkqueue.Alphabet
		keeps    func(c byte) bool
	}{
		{"graphite", sinkqueue.GraphiteAlphabet(), func(c byte) bool { return strings.IndexByte(letters+"_-.", c) >= 0 }},
		{"statsd", sinkqueue.StatsDAlphabet(), func(c byte) bool { return strings.IndexByte(control+":|@#,", c) < 0 }},
		{"labels", sinkqueue.LabelAlphabet(), func(c byte) bool { return strings.IndexByte(control+":|@#,=[]", c) < 0 }},
		{"values", sinkqueue.ValueAlphabet(), func(c byte) bool { return strings.IndexByte(control+"|,", c) < 0 }},
	} {
		for i, got := range tt.alphabet.Append([]byte("/"), all)[1:] {
			want := byte('_')
			if tt.keeps(byte(i)) {
				want = byte(i)
			} else if tt.name == "graphite" && i == '/' {
				want = '-'
			}
			if got != want {
				t.Errorf("%s: %q becomes %q, want %q", tt.name, byte(i), got, want)
			}
		}
	}
	if got := sinkqueue.ValueAlphabet().Append([]byte("|"), []byte("|")); string(got) != "|_" {
		t.Errorf("appended %q: only the new text is cleaned", got)
	}
}

// TestBatch: lines that fit exactly share a packet; longer ones are sent alone.
func TestBatch(t *testing.T) {
	r := &target{}
	q, _, stop := queue(t, r, nil)
	b := sinkqueue.Batch{Queue: q, Limit: 12, Head: "#\n"}
	for _, line := range []string{"123:1\n", "56:1\n", "78:1\n", "1234567890:1\n", "1:1\n"} {
		b.Add([]byte(line))
	}
	b.End()
	b.End() // nothing is left
	stop()
	if got, want := r.text(), "#\n123:1\n|#\n56:1\n78:1\n|#\n1234567890:1\n|#\n1:1\n"; got != want {
		t.Errorf("packets %q, want %q", got, want)
	}
}

// TestDetachedPackets are short and long ones in a buffer that has room for another
// packet or not.
func TestDetachedPackets(t *testing.T) {
	for _, tt := range []struct {
		length, room, limit int
		copied              bool
	}{
		{10, 100, 100, true}, {49, 100, 100, true}, {50, 100, 100, false}, {100, 100, 100, false},
		{10, 100, 91, true}, {10, 100, 90, false}, {60, 100, 20, false},
	} {
		buf := make([]byte, tt.length, tt.room)
		packet, rest := sinkqueue.Detach(buf, tt.limit)
		if copied := &packet[0] != &buf[0]; copied != tt.copied {
			t.Errorf("%d bytes of %d, limit %d: copied %v", tt.length, tt.room, tt.limit, copied)
		}
		wantRoom := tt.room - tt.length
		if tt.copied {
			wantRoom = tt.room
		}
		if len(packet) != tt.length || len(rest) != 0 || cap(rest) != wantRoom {
			t.Errorf("%d bytes of %d, limit %d: packet of %d, rest %d of %d", tt.length, tt.room, tt.limit, len(packet), len(rest), cap(rest))
		}
		rest = append(rest, 1)
		if packet = append(packet, 2); packet[0] != 0 || rest[0] != 1 {
			t.Errorf("%d bytes of %d, limit %d: packet and buffer share memory", tt.length, tt.room, tt.limit)
		}
	}
}

func TestDefaultSizes(t *testing.T) {
	for _, tt := range []struct {
		network sinkqueue.Network
		address string
		bytes   int
	}{
		{sinkqueue.UDP, "127.0.0.1:1", 1432}, {sinkqueue.TCP, "127.0.0.1:1", 65536},
		{sinkqueue.Unixgram, "/a", 8192}, {sinkqueue.Unixstream, "@a", 8192}, {sinkqueue.Unixlines, "/a", 8192},
		{sinkqueue.UDP, "127.0.0.1", 0}, {sinkqueue.TCP, "/a", 0}, {sinkqueue.Unixgram, "a", 0}, {"sctp", "127.0.0.1:1", 0},
	} {
		if n, err := tt.network.CheckAddress(tt.address); n != tt.bytes || (err == nil) != (n > 0) {
			t.Errorf("%s %q: %d, %v, want %d bytes", tt.network, tt.address, n, err, tt.bytes)
		}
	}
}
