package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

func addressesOf(t *testing.T, text string) (list []config.Address) {
	t.Helper()
	for _, f := range strings.Fields(text) {
		ip, err := netip.ParseAddr(f)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, config.Address{IP: netip.AddrPortFrom(ip, 80)})
	}
	return list
}

func TestOrderOfAddresses(t *testing.T) {
	v4, v6 := &config.HappyEyeballs{FirstFamilyV4: true, FirstFamilyCount: 1}, &config.HappyEyeballs{FirstFamilyV6: true, FirstFamilyCount: 2}
	for _, tt := range []struct {
		list string
		c    *config.HappyEyeballs
		want string
	}{
		{"1.1.1.1", v6, "1.1.1.1"},
		{"1.1.1.1 ::1", v6, "::1 1.1.1.1"},
		{"1.1.1.1 1.1.1.3 1.1.1.2", nil, "1.1.1.1 1.1.1.3 1.1.1.2"},
		{"::1 ::2 ::3 1.1.1.1 1.1.1.2", nil, "::1 1.1.1.1 ::2 1.1.1.2 ::3"},
		{"1.1.1.1 ::1 ::2 ::3", nil, "1.1.1.1 ::1 ::2 ::3"},
		{"1.1.1.1 1.1.1.2 ::1 ::2", &config.HappyEyeballs{FirstFamilyCount: 1}, "1.1.1.1 ::1 1.1.1.2 ::2"},
		{"::1 ::2 1.1.1.1 1.1.1.2", v4, "1.1.1.1 ::1 1.1.1.2 ::2"},
		{"1.1.1.1 1.1.1.2 ::1 ::2 ::3 ::4", v6, "::1 ::2 1.1.1.1 ::3 ::4 1.1.1.2"},
		{"1.1.1.1 1.1.1.2", v6, "1.1.1.1 1.1.1.2"},
		{"::1 ::2 1.1.1.1", &config.HappyEyeballs{FirstFamilyCount: 9}, "::1 ::2 1.1.1.1"},
		{"::ffff:1.1.1.1 ::1 1.1.1.2", nil, "::ffff:1.1.1.1 ::1 1.1.1.2"},
	} {
		var got []string
		for _, a := range order(addressesOf(t, tt.list), tt.c) {
			got = append(got, a.IP.Addr().String())
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s by %+v: %s, want %s", tt.list, tt.c, got, tt.want)
		}
	}
}

// end is a connection to the address with that number, which can only be closed.
type end struct {
	net.Conn
	number uint16
	closed func()
}

func (e end) Close() error {
	e.closed()
	return nil
}

// TestRace records when each address is tried, abandoned and closed. An address takes
// some milliseconds and then fails, or insists on connecting after it was abandoned.
func TestRace(t *testing.T) {
	type answer struct {
		after    int
		err      error
		stubborn bool
	}
	refused, lack := error(syscall.ECONNREFUSED), error(syscall.EMFILE)
	for _, tt := range []struct {
		name    string
		answers []answer
		limit   int // of the whole, in milliseconds; 0: none
		want    string
	}{
		{"first", []answer{{after: 299}, {}}, 0, "0:try0 299:made0"},
		{"second-beside-it", []answer{{after: 1000}, {after: 100}, {}}, 0, "0:try0 300:try1 400:gone0 400:made1"},
		{"first-though-late", []answer{{after: 500}, {after: 1000}}, 0, "0:try0 300:try1 500:gone1 500:made0"},
		{"at-once-after-a-failure", []answer{{after: 10, err: refused}, {after: 100}}, 0, "0:try0 10:try1 110:made1"},
		{"delay-begins-again", []answer{{after: 200, err: refused}, {after: 1000}, {after: 10}}, 0, "0:try0 200:try1 500:try2 510:gone1 510:made2"},
		{"each-in-turn", []answer{{after: 5000}, {after: 5000}, {after: 5000}}, 0, "0:try0 300:try1 600:try2 5000:gone1 5000:gone2 5000:made0"},
		{"none", []answer{{after: 10, err: refused}, {after: 10, err: errors.New("other")}}, 0, "0:try0 10:try1 20:" + refused.Error()},
		{"lack-is-no-reason", []answer{{after: 10, err: lack}, {after: 10, err: refused}}, 0, "0:try0 10:try1 20:" + refused.Error()},
		{"lack-alone", []answer{{after: 10, err: lack}, {after: 10, err: lack}}, 0, "0:try0 10:try1 20:" + lack.Error()},
		{"limit", []answer{{after: 5000}, {after: 5000}}, 100, "0:try0 100:gone0 100:context deadline exceeded"},
		{"too-late", []answer{{after: 600, stubborn: true}, {after: 100}}, 0, "0:try0 300:try1 600:closed0 600:made1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var list []config.Address
				for i := range tt.answers {
					list = append(list, config.Address{IP: netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(i))})
				}
				start := time.Now()
				events := make(chan string, 100)
				note := func(what string) { events <- fmt.Sprintf("%d:%s", time.Since(start).Milliseconds(), what) }
				ctx := t.Context()
				if tt.limit > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, time.Duration(tt.limit)*time.Millisecond)
					defer cancel()
				}
				conn, err := race(ctx, list, func(ctx context.Context, a config.Address) (net.Conn, error) {
					i := a.IP.Port()
					note(fmt.Sprint("try", i))
					given := tt.answers[i]
					if given.stubborn {
						ctx = context.WithoutCancel(ctx)
					}
					select {
					case <-ctx.Done():
						note(fmt.Sprint("gone", i))
						return nil, ctx.Err()
					case <-time.After(time.Duration(given.after) * time.Millisecond):
					}
					if given.err != nil {
						return nil, given.err
					}
					return end{number: i, closed: func() { note(fmt.Sprint("closed", i)) }}, nil
				}, guard.Guard{})
				if err != nil {
					note(err.Error())
				} else {
					note(fmt.Sprint("made", conn.(end).number))
				}
				close(events)
				var got []string
				for e := range events {
					got = append(got, e)
				}
				// Simultaneous events can occur in any order, except for the end.
				slices.SortFunc(got[:len(got)-1], func(a, b string) int {
					var x, y int
					_, _ = fmt.Sscan(a[:strings.Index(a, ":")], &x)
					_, _ = fmt.Sscan(b[:strings.Index(b, ":")], &y)
					return cmp.Or(x-y, strings.Compare(a, b))
				})
				if g := strings.Join(got, " "); g != tt.want {
					t.Errorf("got  %s\nwant %s", g, tt.want)
				}
			})
		})
	}
}

// TestAttemptsPanic: an attempt that panics has failed, and the next address is
// tried.
func TestAttemptsPanic(t *testing.T) {
	list := addressesOf(t, "1.1.1.1 1.1.1.2")
	for _, wild := range []int{1, 2} { // attempts that panic
		panics := guardtest.New(t)
		n := 0
		conn, err := race(t.Context(), list, func(context.Context, config.Address) (net.Conn, error) {
			if n++; n <= wild {
				panic(guardtest.Canary)
			}
			return end{number: 2}, nil
		}, panics.Guard())
		switch {
		case wild == 1 && (err != nil || conn.(end).number != 2):
			t.Errorf("after a panic: %v, %v", conn, err)
		case wild == 2 && (conn != nil || !errors.Is(err, errPanic)):
			t.Errorf("after panics alone: %v, %v", conn, err)
		}
		for range wild {
			panics.Caught("connection")
		}
	}
}

// TestWatchedDirectoriesAreCounted: a directory is watched until its last context is closed,
// and closing a context again does nothing. A rejected context leaves nothing behind.
func TestWatchedDirectoriesAreCounted(t *testing.T) {
	f := New(Config{})
	a, b := &tlsContext{f: f, directories: []string{"/both", "/a"}}, &tlsContext{f: f, directories: []string{"/both"}}
	f.add(a)
	f.add(b)
	if _, err := f.newTLSContext("c", &config.TLS{TLSCommon: config.TLSCommon{Validation: &config.Validation{
		TrustedCA: config.Data{Kind: config.DataFile, Name: t.TempDir() + "/none.pem"}, WatchedDirectory: "/rejected",
	}}}, "tls", nil); err == nil {
		t.Error("a missing file was read")
	}
	a.close()
	a.close()
	if len(f.watched) != 1 || f.watched["/both"] != 1 || len(f.contexts) != 1 {
		t.Errorf("%d contexts watch %v", len(f.contexts), f.watched)
	}
	b.close()
	if len(f.watched)+len(f.contexts) != 0 {
		t.Errorf("left: %d contexts, watched %v", len(f.contexts), f.watched)
	}
}
