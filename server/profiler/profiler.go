// Package profiler writes profiles of the process to a file, on and off at
// will, in the format that go tool pprof reads. The Go runtime has one CPU
// profiler, so a process should have one [CPU].
package profiler

import (
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/nofollow"
)

// Limits of a profile.
const (
	maxDuration = 10 * time.Minute // after which a CPU profile ends by itself
	maxBytes    = 256 << 20
)

// errTooLarge ends a profile that grew over maxBytes.
var errTooLarge = errors.New("profiler: profile over 256 MiB")

// ErrBusy is returned by Start while the other profiler of the same file runs.
var ErrBusy = errors.New("profiler: the other profiler is running, which writes to the same file")

// New returns profilers that write to the same file, one at a time.
func New(path string) (*CPU, *Heap) {
	o := &output{path: path, limit: maxBytes}
	return &CPU{out: o, after: time.AfterFunc}, &Heap{out: o}
}

// CPU is the CPU profiler. Use [New]. It is safe for concurrent use.
type CPU struct {
	out   *output
	after func(time.Duration, func()) *time.Timer // time.AfterFunc, but for tests

	mu      sync.Mutex
	profile *profile // the one under way; nil: none
	timer   *time.Timer
}

// Path returns the output file.
func (p *CPU) Path() string { return p.out.path }

// Start begins a profile, which ends by itself after 10 minutes. It reports
// false if one is under way. It fails if the file cannot be written; a link is
// not followed.
func (p *CPU) Start() (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.profile != nil {
		return false, nil
	}
	if err := p.out.check(); err != nil {
		return false, err
	}
	if !p.out.running.CompareAndSwap(false, true) {
		return false, ErrBusy
	}
	next := &profile{limit: p.out.limit}
	if err := pprof.StartCPUProfile(next); err != nil {
		p.out.running.Store(false)
		return false, fmt.Errorf("profiler: %w", err)
	}
	p.profile = next
	p.timer = p.after(maxDuration, func() { p.stop(next) })
	return true, nil
}

// Stop ends the profile and writes it. It reports false if none is under way.
func (p *CPU) Stop() (bool, error) { return p.stop(nil) }

// stop ends one profile, any if it is nil.
func (p *CPU) stop(one *profile) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ended := p.profile
	if ended == nil || one != nil && one != ended {
		return false, nil
	}
	p.timer.Stop()
	pprof.StopCPUProfile() // which says nothing of what it could not write
	p.profile = nil
	defer p.out.running.Store(false)
	return true, p.out.replace(ended)
}

// Heap writes a heap profile when it is stopped. Use [New]. It is safe for
// concurrent use. The runtime samples the heap all the time; starting only
// reserves the file.
type Heap struct {
	out *output

	mu      sync.Mutex
	started bool
}

// Path returns the output file.
func (p *Heap) Path() string { return p.out.path }

// Start reports false if the profiler was started already. It fails if the
// file cannot be written.
func (p *Heap) Start() (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started {
		return false, nil
	}
	if err := p.out.check(); err != nil {
		return false, err
	}
	if !p.out.running.CompareAndSwap(false, true) {
		return false, ErrBusy
	}
	p.started = true
	return true, nil
}

// Stop writes the profile. It reports false if the profiler was not started.
func (p *Heap) Stop() (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.started {
		return false, nil
	}
	p.started = false
	defer p.out.running.Store(false)
	heap := &profile{limit: p.out.limit}
	if err := pprof.Lookup("heap").WriteTo(heap, 0); err != nil {
		return true, err
	}
	return true, p.out.replace(heap)
}

// profile is one in the making, which takes so many bytes and no more. The
// runtime hands a profile out at its end, compressed, so it is small.
type profile struct {
	data  []byte
	limit int
	err   error // it is incomplete
}

// Write implements [io.Writer].
func (p *profile) Write(b []byte) (int, error) {
	if p.err == nil && len(b) > p.limit-len(p.data) {
		p.err = errTooLarge
	}
	if p.err != nil {
		return 0, p.err
	}
	p.data = append(p.data, b...)
	return len(b), nil
}

// output is the file that profiles are written to.
type output struct {
	path  string
	limit int        // bytes of a profile
	mu    sync.Mutex // held while a profile is written

	running atomic.Bool // a profiler was started and not stopped
}

// check returns an error if the file cannot be written. It keeps its content.
func (o *output) check() error {
	f, err := o.open(0)
	if err != nil {
		return err
	}
	return f.Close()
}

// replace makes the file hold a profile and nothing else. If there is no room for
// all of it, nothing is left: a part of a profile is of no use, and takes room.
func (o *output) replace(p *profile) error {
	if p.err != nil {
		return p.err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	f, err := o.open(os.O_TRUNC)
	if err != nil {
		return err
	}
	if _, err = f.Write(p.data); err != nil {
		_ = f.Truncate(0) // what cannot be truncated keeps nothing, as a device
	}
	return errors.Join(err, f.Close())
}

// open opens the file for its owner alone. It does not wait for the other end of
// a pipe.
func (o *output) open(flags int) (*os.File, error) {
	f, err := os.OpenFile(o.path, os.O_CREATE|os.O_WRONLY|nofollow.Flag|syscall.O_NONBLOCK|flags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("profiler: %w", err)
	}
	return f, nil
}
