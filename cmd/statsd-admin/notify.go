package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// serviceManager is the service manager that started the process and wants to
// know its state, such as systemd with Type=notify.
type serviceManager struct {
	conn     net.Conn
	watchdog time.Duration // the process is restarted after this time without a notification; 0 means never
}

// notifyTimeout limits the time to send a state, so that a service manager that
// hangs does not block the server.
const notifyTimeout = time.Second

// newServiceManager returns the service manager that env names for the process
// pid: NOTIFY_SOCKET is its socket, WATCHDOG_USEC the time limit of the watchdog,
// and WATCHDOG_PID the process that it watches. It is nil if there is none.
func newServiceManager(env func(string) string, pid int) (*serviceManager, error) {
	path := env("NOTIFY_SOCKET")
	if path == "" {
		return nil, nil
	}
	conn, err := net.Dial("unixgram", path)
	if err != nil {
		return nil, fmt.Errorf("cannot notify the service manager: %w", err)
	}
	m := &serviceManager{conn: conn}
	if watched := env("WATCHDOG_PID"); watched == "" || watched == strconv.Itoa(pid) {
		if us, err := strconv.ParseUint(env("WATCHDOG_USEC"), 10, 40); err == nil {
			m.watchdog = time.Duration(us) * time.Microsecond
		}
	}
	return m, nil
}

// notify sends assignments such as READY=1. Errors are ignored: the service
// manager acts on missing states.
func (m *serviceManager) notify(state ...string) {
	_ = m.conn.SetWriteDeadline(time.Now().Add(notifyTimeout))
	_, _ = m.conn.Write([]byte(strings.Join(state, "\n")))
}

// supervise returns i as a daemon that reports its states to m.
func (m *serviceManager) supervise(i instance) *supervised {
	f := i.Flusher()
	s := &supervised{daemon: i, manager: m, live: i.Initialized(), flushes: f.Ended, interval: f.Interval()}
	if f.OnAdmin() {
		s.flushes = nil
	}
	return s
}

// supervised is a daemon that reports its states to the service manager.
type supervised struct {
	daemon
	manager  *serviceManager
	live     <-chan struct{}
	flushes  func() uint64 // how many have ended; nil if no timer flushes
	interval time.Duration // of flushes
	ready    atomic.Bool   // READY=1 was sent, and not STOPPING=1
}

// Run runs the daemon. It notifies the watchdog at half of its time limit, until
// flushes are overdue. During a stop, which ends the flush loop, it always does: the
// service manager limits the time of a stop.
func (d *supervised) Run(ctx context.Context) error {
	stopped := make(chan struct{})
	var reports sync.WaitGroup
	reports.Go(func() { d.report(ctx, stopped) })
	err := d.daemon.Run(ctx)
	close(stopped)
	reports.Wait()
	_ = d.manager.conn.Close()
	return err
}

func (d *supervised) report(ctx context.Context, stopped <-chan struct{}) {
	live, stopping := d.live, ctx.Done()
	var signs <-chan time.Time
	if d.manager.watchdog > 0 {
		signs = time.Tick(max(d.manager.watchdog/2, time.Millisecond))
	}
	stop := func() {
		d.ready.Store(false)
		d.manager.notify("STOPPING=1", "STATUS=stopping")
		live, stopping = nil, nil
	}
	d.manager.notify("STATUS=initializing")
	flushes, moved := uint64(0), time.Now()
	for {
		select {
		case <-live:
			// After a hot restart, this is the main process from now on.
			d.manager.notify("READY=1", "STATUS=live", fmt.Sprintf("MAINPID=%d", os.Getpid()))
			d.ready.Store(true)
			live = nil
		case <-stopping:
			stop()
		case <-stopped:
			if stopping != nil && ctx.Err() != nil { // both came at once
				stop()
			}
			return
		case <-signs:
			if d.flushes != nil {
				if n := d.flushes(); n != flushes {
					flushes, moved = n, time.Now()
				}
			}
			if d.flushes == nil || stopping == nil || time.Since(moved) < 2*d.interval+d.manager.watchdog/2 {
				d.manager.notify("WATCHDOG=1")
			}
		}
	}
}

// Reload reloads the daemon. It reports nothing before READY=1, since the READY=1 after a
// reload would end the start too early, and nothing once the daemon stops.
func (d *supervised) Reload() {
	ready := d.ready.Load()
	if ready {
		d.manager.notify("RELOADING=1", "STATUS=reloading")
	}
	d.daemon.Reload()
	if ready && d.ready.Load() {
		d.manager.notify("READY=1", "STATUS=live")
	}
}
