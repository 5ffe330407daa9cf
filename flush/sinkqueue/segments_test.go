package sinkqueue

import (
	"context"
	"net"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/store"
)

// cutting is a refusing connection that also cuts the data, if its control message is
// right.
type cutting struct {
	refusing
	calls int
}

func (r *cutting) WriteMsgUDP(b, oob []byte, _ *net.UDPAddr) (int, int, error) {
	r.calls++
	if len(r.errs) > 0 {
		e := r.errs[0]
		if r.errs = r.errs[1:]; e != 0 {
			return 0, 0, os.NewSyscallError("sendmsg", e)
		}
	}
	for part := range slices.Chunk(b, 10) {
		r.got = append(r.got, string(part))
	}
	return len(b), len(oob), nil
}

// TestErrorsOfManyDatagrams: whatever the system answers, each packet is sent once, and
// the datagrams that an error is about are counted.
func TestErrorsOfManyDatagrams(t *testing.T) {
	if segmentSize(nil, 10) == nil {
		t.Skip("the system does not cut")
	}
	run := [][]byte{[]byte("aaaaaa:1|c"), []byte("bbbbbb:1|c"), []byte("c:1|c")}
	for _, tt := range []struct {
		name  string
		errs  []syscall.Errno // of all calls
		lost  int
		calls int // that sent several
	}{
		{"none", nil, 0, 3},
		{"refused before", []syscall.Errno{0, syscall.ECONNREFUSED}, 3, 4},
		{"refused twice", []syscall.Errno{0, syscall.ECONNREFUSED, syscall.ECONNREFUSED}, 3, 4},
		{"refused at first", []syscall.Errno{syscall.ECONNREFUSED}, 1, 4},
		{"no checksums", []syscall.Errno{syscall.EIO}, 0, 1},
		{"not known", []syscall.Errno{syscall.EINVAL}, 0, 1},
		{"not there", []syscall.Errno{0, syscall.ENOPROTOOPT}, 0, 2},
		{"too long", []syscall.Errno{syscall.EMSGSIZE}, 0, 3},
		{"no memory", []syscall.Errno{syscall.ENOBUFS, syscall.ENOBUFS}, 0, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, lost := &cutting{refusing: refusing{largest: 100, errs: tt.errs}}, 0
			c := NewConn(ConnConfig{
				Network: UDP, Timeout: time.Second, PacketBytes: 100, Lost: func(n int) { lost += n },
				Dial: func(context.Context) (net.Conn, error) { return r, nil },
			})
			if c.SendAll(run) {
				t.Fatal("sent without a connection")
			}
			if err := c.dial(t.Context()); err != nil {
				t.Fatal(err)
			}
			var want []string
			for range 3 {
				for _, p := range run {
					want = append(want, string(p))
				}
				if c.SendAll(run) {
					continue
				}
				for _, p := range run {
					if _, err := c.Send(t.Context(), p); err != nil {
						t.Fatal(err)
					}
				}
			}
			if !slices.Equal(r.got, want) || lost != tt.lost || r.calls != tt.calls {
				t.Errorf("got %q after %d calls for several, %d lost; want %q, %d, %d", r.got, r.calls, lost, want, tt.calls, tt.lost)
			}
			c.Close()
			if err := c.dial(t.Context()); err != nil || !c.SendAll(run) {
				t.Error("a new connection does not try it again", err)
			}
		})
	}
}

// TestSystemCutsDatagrams sends to a real socket.
func TestSystemCutsDatagrams(t *testing.T) {
	for _, host := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.ListenPacket("udp", host)
		if err != nil {
			t.Log(err)
			continue
		}
		defer l.Close()
		c := NewConn(ConnConfig{Network: UDP, Address: l.LocalAddr().String(), Timeout: time.Minute, PacketBytes: DefaultUDPBytes})
		defer c.Close()
		if err := c.dial(t.Context()); err != nil {
			t.Fatal(err)
		}
		run := [][]byte{[]byte("aaa:1|c"), []byte("bbb:1|c"), []byte("c:1|c")}
		if !c.SendAll(run) {
			if runtime.GOOS == "linux" && segmentSize(nil, 1) != nil {
				t.Log("this kernel does not cut")
			}
			continue
		}
		buf := make([]byte, 100)
		_ = l.SetReadDeadline(time.Now().Add(time.Minute))
		for _, want := range run {
			n, _, err := l.ReadFrom(buf)
			if err != nil || string(buf[:n]) != string(want) {
				t.Errorf("got %q, %v; want %q", buf[:n], err, want)
			}
		}
	}
}

// TestRunsLeaveTheQueue: packets that were sent together are freed, even while others wait
// behind them, and come back in their order if they were not sent.
func TestRunsLeaveTheQueue(t *testing.T) {
	for _, sent := range []bool{true, false} {
		var got []string
		q := New(Config{
			Options: Options{Name: "a", Store: store.New(store.Options{})},
			SendAll: func(packets [][]byte) bool {
				for _, p := range packets {
					got = append(got, string(p))
				}
				return sent
			},
		})
		q.AddAll([]Packed{{[]byte("aa"), 1}, {[]byte("bb"), 1}, {[]byte("c"), 1}, {[]byte("d"), 1}})
		s := q.shards[0]
		before := s.queue.all()
		var queued []string // the order of packets of one size is not defined
		for _, p := range before {
			queued = append(queued, string(p.data))
		}
		if s.sendRun() != sent || !slices.Equal(got, queued[:3]) {
			t.Fatalf("sent %q of %q, want the first three together", got, queued)
		}
		var left []string
		for _, p := range s.queue.all() {
			left = append(left, string(p.data))
		}
		want := queued
		if sent {
			want = want[3:]
			for i, p := range before[:3] {
				if p.data != nil {
					t.Errorf("the queue keeps packet %d, %q, in memory", i, p.data)
				}
			}
		}
		if !slices.Equal(left, want) || len(s.data) != 0 || s.data[:1][0] != nil {
			t.Errorf("sent: %t: %q wait, want %q; %d packets are kept for the next call", sent, left, want, len(s.data))
		}
	}
}

func TestRuns(t *testing.T) {
	sized := func(group uint64, sizes ...int) (all []packet) {
		for _, n := range sizes {
			all = append(all, packet{data: make([]byte, n), group: group})
		}
		return all
	}
	for _, tt := range []struct {
		name  string
		queue []packet
		want  int
	}{
		{"alone", sized(1, 5), 1},
		{"added one by one", sized(0, 5, 5), 1},
		{"equal", sized(1, 5, 5, 5), 3},
		{"the last is shorter", sized(1, 5, 5, 4, 4), 3},
		{"one of another call", append(sized(1, 5, 5), sized(2, 5)...), 2},
		{"many", sized(1, slices.Repeat([]int{5}, 40)...), runPackets},
		{"large", sized(1, runBytes/2, runBytes/2, 5), 2},
		{"a longer one", sized(1, 5, 6), 1},
	} {
		if got := runLength(tt.queue); got != tt.want {
			t.Errorf("%s: %d packets, want %d", tt.name, got, tt.want)
		}
	}
	packets := []Packed{{[]byte("a"), 1}, {[]byte("bb"), 2}, {[]byte("c"), 1}, {[]byte("dd"), 2}}
	largestFirst(packets)
	for i, want := range []int{2, 2, 1, 1} {
		if p := packets[i]; len(p.Data) != want || p.Metrics != want {
			t.Errorf("packet %d is %q with %d metrics, want %d bytes and metrics", i, p.Data, p.Metrics, want)
		}
	}
}
