// Package profiler writes profiles of the process to a file on demand, in the format
// of go tool pprof. The Go runtime has a single CPU profiler, so a process should
// have one [CPU].
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
	maxDuration = 10 * time.Minute // CPU profiles stop after this time
	maxBytes    = 256 << 20
)

// errTooLarge is returned for a profile over maxBytes.
var errTooLarge = errors.New("profiler: profile over 256 MiB")

// ErrBusy is returned by Start while the other profiler of the same file is running.
var ErrBusy = errors.New("profiler: the other profiler, which writes to the same file, is running")

// New returns profilers that write to the same file. They cannot run at the same
// time.
func New(path string) (*CPU, *Heap) {
	o := &output{path: path, limit: maxBytes}
	return &CPU{out: o, after: time.AfterFunc}, &Heap{out: o}
}

// CPU is the CPU profiler. Use [New]. It is safe for concurrent use.
type CPU struct {
	out   *output
	after func(time.Duration, func()) *time.Timer // time.AfterFunc, replaced in tests

	mu      sync.Mutex
	profile *profile // running profile or nil
	timer   *time.Timer
	late    error // of writing a profile that stopped automatically, for Stop
}

// Path returns the output file.
func (p *CPU) Path() string { return p.out.path }

// Start starts a profile, which stops automatically after 10 minutes. It reports
// false if a profile is already running. It fails if the file cannot be written or is
// a symbolic link.
func (p *CPU) Start() (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.profile != nil {
		return false, nil
	}
	if err := p.out.take(); err != nil {
		return false, err
	}
	next := &profile{limit: p.out.limit}
	if err := pprof.StartCPUProfile(next); err != nil {
		p.out.running.Store(false)
		return false, fmt.Errorf("profiler: %w", err)
	}
	p.profile, p.late = next, nil
	p.timer = p.after(maxDuration, func() { p.stop(next) })
	return true, nil
}

// Stop stops the profile and writes it. It reports false if no profile is running. If
// the last one stopped automatically and could not be written, it returns that error, once.
func (p *CPU) Stop() (bool, error) { return p.stop(nil) }

// stop stops the given profile, or any profile if it is nil.
func (p *CPU) stop(one *profile) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ended, late := p.profile, p.late
	switch {
	case one != nil && one != ended:
		return false, nil
	case ended == nil:
		p.late = nil
		return false, late
	}
	p.timer.Stop()
	pprof.StopCPUProfile() // does not report write errors
	p.profile = nil
	defer p.out.running.Store(false)
	err := p.out.replace(ended)
	if one != nil {
		p.late = err
	}
	return true, err
}

// Heap writes a heap profile when it is stopped. Use [New]. It is safe for concurrent
// use. The runtime samples the heap continuously; Start only reserves the file.
type Heap struct {
	out *output

	mu      sync.Mutex
	started bool
}

// Path returns the output file.
func (p *Heap) Path() string { return p.out.path }

// Start reports false if the profiler is already running. It fails if the file cannot
// be written.
func (p *Heap) Start() (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started {
		return false, nil
	}
	if err := p.out.take(); err != nil {
		return false, err
	}
	p.started = true
	return true, nil
}

// Stop writes the profile. It reports false if the profiler is not running.
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

// profile buffers a profile up to a size limit. The runtime writes a profile at its
// end, compressed, so it is small.
type profile struct {
	data  []byte
	limit int
	err   error // set if the profile is incomplete
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

// output is the file for profiles.
type output struct {
	path  string
	limit int // maximum size of a profile

	running atomic.Bool // a profiler is running, or writes its profile
}

// take reserves the file for a profiler, and keeps its contents. It returns an error if
// the file cannot be written.
func (o *output) take() error {
	f, err := o.open(0)
	if err == nil {
		err = f.Close()
	}
	if err == nil && !o.running.CompareAndSwap(false, true) {
		err = ErrBusy
	}
	return err
}

// replace replaces the file's contents with a profile. If the disk has too little
// space, the file is left empty, since a partial profile is useless.
func (o *output) replace(p *profile) error {
	if p.err != nil {
		return p.err
	}
	f, err := o.open(os.O_TRUNC)
	if err != nil {
		return err
	}
	if _, err = f.Write(p.data); err != nil {
		_ = f.Truncate(0) // fails for devices, which keep no data
	}
	return errors.Join(err, f.Close())
}

// open opens the file with owner-only permissions. It does not block on a pipe
// without a reader.
func (o *output) open(flags int) (*os.File, error) {
	f, err := os.OpenFile(o.path, os.O_CREATE|os.O_WRONLY|nofollow.Flag|syscall.O_NONBLOCK|flags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("profiler: %w", err)
	}
	return f, nil
}
