package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
)

// notifySocket is the socket of a service manager.
type notifySocket struct {
	*testing.T
	net.PacketConn
	path string
}

func newNotifySocket(t *testing.T) notifySocket {
	t.Helper()
	path := shortDir(t) + "/notify"
	c, err := net.ListenPacket("unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return notifySocket{t, c, path}
}

// next returns the next message, "" if none comes within limit.
func (s notifySocket) next(limit time.Duration) string {
	s.Helper()
	if err := s.SetReadDeadline(time.Now().Add(limit)); err != nil {
		s.Fatal(err)
	}
	b := make([]byte, 1024)
	n, _, err := s.ReadFrom(b)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		s.Fatal(err)
	}
	return string(b[:n])
}

func (s notifySocket) expect(want ...string) {
	s.Helper()
	for _, w := range want {
		if got := s.next(time.Minute); got != w {
			s.Fatalf("the service manager got %q, want %q", got, w)
		}
	}
}

func (s notifySocket) env(more map[string]string) func(string) string {
	return func(name string) string {
		if name == "NOTIFY_SOCKET" {
			return s.path
		}
		return more[name]
	}
}

// TestServiceManagerSeesStates runs a real server through its states.
func TestServiceManagerSeesStates(t *testing.T) {
	s := newNotifySocket(t)
	m, err := newServiceManager(s.env(nil), 1)
	if err != nil {
		t.Fatal(err)
	}
	i, _ := instanceOf(t, t.TempDir(), []string{"--disable-hot-restart", "--config-yaml", "admin: {" + onLoopback + "}"})
	d := m.supervise(i)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	s.expect("STATUS=initializing", fmt.Sprintf("READY=1\nSTATUS=live\nMAINPID=%d", os.Getpid()))
	for !d.ready.Load() { // it follows the message
		time.Sleep(time.Millisecond)
	}
	d.Reload()
	s.expect("RELOADING=1\nSTATUS=reloading", "READY=1\nSTATUS=live")
	stop()
	s.expect("STOPPING=1\nSTATUS=stopping")
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestReloadBeforeReady: a reload does not report a server that is not live as ready.
func TestReloadBeforeReady(t *testing.T) {
	s := newNotifySocket(t)
	m, err := newServiceManager(s.env(nil), 1)
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeDaemon{calls: make(chan string, 1)}
	d := &supervised{daemon: f, manager: m}
	d.Reload()
	if got := <-f.calls; got != "reload" {
		t.Error(got)
	}
	if got := s.next(20 * time.Millisecond); got != "" {
		t.Errorf("the service manager got %q", got)
	}
}

// TestStopDuringAReload: a reload that ends while the server stops does not report it as
// ready.
func TestStopDuringAReload(t *testing.T) {
	s := newNotifySocket(t)
	m, err := newServiceManager(s.env(nil), 1)
	if err != nil {
		t.Fatal(err)
	}
	f := &stuckDaemon{fakeDaemon{calls: make(chan string, 9), hang: make(chan struct{})}, make(chan struct{})}
	live := make(chan struct{})
	close(live)
	d := &supervised{daemon: f, manager: m, live: live}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	s.expect("STATUS=initializing", fmt.Sprintf("READY=1\nSTATUS=live\nMAINPID=%d", os.Getpid()))
	waittest.Until(t, "it is ready", d.ready.Load) // it follows the message
	reloaded := make(chan struct{})
	go func() { defer close(reloaded); d.Reload() }()
	s.expect("RELOADING=1\nSTATUS=reloading")
	stop()
	s.expect("STOPPING=1\nSTATUS=stopping")
	close(f.wait)
	<-reloaded
	if got := s.next(20 * time.Millisecond); got != "" {
		t.Errorf("the service manager got %q", got)
	}
	close(f.hang)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestWatchdogFollowsFlushes: signs come while flushes continue, and stop with them.
func TestWatchdogFollowsFlushes(t *testing.T) {
	s := newNotifySocket(t)
	m, err := newServiceManager(s.env(map[string]string{"WATCHDOG_USEC": "200000", "WATCHDOG_PID": "7"}), 7)
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeDaemon{calls: make(chan string, 1), hang: make(chan struct{})}
	close(f.hang)
	live := make(chan struct{})
	close(live)
	var stuck atomic.Bool
	var n atomic.Uint64
	d := &supervised{daemon: f, manager: m, live: live, interval: 10 * time.Millisecond, flushes: func() uint64 {
		if stuck.Load() {
			return n.Load()
		}
		return n.Add(1)
	}}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	s.expect("STATUS=initializing", fmt.Sprintf("READY=1\nSTATUS=live\nMAINPID=%d", os.Getpid()), "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1")
	stuck.Store(true)
	for end := time.Now().Add(time.Minute); s.next(500*time.Millisecond) != ""; {
		if time.Now().After(end) {
			t.Fatal("the watchdog still gets signs when no flush ends")
		}
	}
	stop()
	last := s.next(time.Minute)
	for last == "WATCHDOG=1" { // it was late
		last = s.next(time.Minute)
	}
	if want := "STOPPING=1\nSTATUS=stopping"; last != want {
		t.Errorf("the service manager got %q, want %q", last, want)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestWatchdogWithoutTimer: if admin requests flush, signs go on for longer than flushes of
// a timer can be overdue.
func TestWatchdogWithoutTimer(t *testing.T) {
	s := newNotifySocket(t)
	m, err := newServiceManager(s.env(map[string]string{"WATCHDOG_USEC": "20000"}), 7)
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeDaemon{calls: make(chan string, 1), hang: make(chan struct{})}
	close(f.hang)
	d := &supervised{daemon: f, manager: m, live: make(chan struct{}), interval: 10 * time.Millisecond}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	s.expect("STATUS=initializing")
	for range 20 { // a sign every 10 ms
		s.expect("WATCHDOG=1")
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestQuickStop: a stop is reported also if the daemon ends at the same moment.
func TestQuickStop(t *testing.T) {
	s := newNotifySocket(t)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	for range 20 {
		m, err := newServiceManager(s.env(nil), 7)
		if err != nil {
			t.Fatal(err)
		}
		f := &fakeDaemon{calls: make(chan string, 1), hang: make(chan struct{})}
		close(f.hang)
		if err := (&supervised{daemon: f, manager: m}).Run(ctx); err != nil {
			t.Fatal(err)
		}
		s.expect("STATUS=initializing", "STOPPING=1\nSTATUS=stopping")
	}
}

func TestServiceManagerOfTheEnvironment(t *testing.T) {
	s := newNotifySocket(t)
	if m, err := newServiceManager(func(string) string { return "" }, 1); m != nil || err != nil {
		t.Errorf("without a socket: %v, %v", m, err)
	}
	if m, err := newServiceManager(func(string) string { return "/nowhere/s" }, 1); m != nil || err == nil {
		t.Errorf("a missing socket: %v, %v", m, err)
	}
	for _, tt := range []struct {
		usec, pid string
		want      time.Duration
	}{{"", "", 0}, {"30000000", "", 30 * time.Second}, {"30000000", strconv.Itoa(5), 30 * time.Second}, {"30000000", "6", 0}, {"x", "", 0}, {"-1", "", 0}} {
		m, err := newServiceManager(s.env(map[string]string{"WATCHDOG_USEC": tt.usec, "WATCHDOG_PID": tt.pid}), 5)
		if err != nil {
			t.Fatal(err)
		}
		if m.watchdog != tt.want {
			t.Errorf("%+v: watchdog %v", tt, m.watchdog)
		}
		_ = m.conn.Close()
	}
}
