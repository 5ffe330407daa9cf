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

// CPU is the CPU profiler. Use [NewCPU]. It is safe for concurrent use.
type CPU struct {
	path  string
	after func(time.Duration, func()) *time.Timer // time.AfterFunc, but for tests

	mu    sync.Mutex
	file  *os.File
	out   *limited // to file
	timer *time.Timer
}

// NewCPU returns a profiler that writes to path.
func NewCPU(path string) *CPU { return &CPU{path: path, after: time.AfterFunc} }

// Path returns the output file.
func (p *CPU) Path() string { return p.path }

// Start begins a profile, which ends by itself after 10 minutes. It reports
// false if one is under way. The file is replaced; a link is not followed.
func (p *CPU) Start() (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file != nil {
		return false, nil
	}
	f, err := create(p.path)
	if err != nil {
		return false, err
	}
	out := &limited{f: f, left: maxBytes}
	if err := pprof.StartCPUProfile(out); err != nil {
		f.Close()
		return false, fmt.Errorf("profiler: %w", err)
	}
	p.file, p.out = f, out
	p.timer = p.after(maxDuration, func() { p.stopFile(f) })
	return true, nil
}

// Stop ends the profile. It reports false if none is under way.
func (p *CPU) Stop() (bool, error) { return p.stopFile(nil) }

// stopFile ends the profile that goes to f, any if f is nil.
func (p *CPU) stopFile(f *os.File) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == nil || f != nil && f != p.file {
		return false, nil
	}
	p.timer.Stop()
	pprof.StopCPUProfile() // which says nothing of what it could not write
	err := errors.Join(p.out.err, p.file.Close())
	p.file, p.out = nil, nil
	return true, err
}

// Heap writes a heap profile when it is stopped. It is safe for concurrent
// use. The runtime samples the heap all the time; starting only marks from
// where on somebody is interested.
type Heap struct {
	path string

	mu      sync.Mutex
	started bool
}

// NewHeap returns a profiler that writes to path.
func NewHeap(path string) *Heap { return &Heap{path: path} }

// Path returns the output file.
func (p *Heap) Path() string { return p.path }

// Start reports false if the profiler was started already. It fails if the
// file cannot be written.
func (p *Heap) Start() (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started {
		return false, nil
	}
	f, err := create(p.path)
	if err != nil {
		return false, err
	}
	p.started = true
	return true, f.Close()
}

// Stop writes the profile. It reports false if the profiler was not started.
func (p *Heap) Stop() (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.started {
		return false, nil
	}
	p.started = false
	f, err := create(p.path)
	if err != nil {
		return false, err
	}
	err = pprof.Lookup("heap").WriteTo(&limited{f: f, left: maxBytes}, 0)
	return true, errors.Join(err, f.Close())
}

// create opens an output file for its owner alone.
func create(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC|nofollow.Flag, 0o600)
	if err != nil {
		return nil, fmt.Errorf("profiler: %w", err)
	}
	return f, nil
}

// limited is a file that takes so many bytes and no more.
type limited struct {
	f    *os.File
	left int
	err  error // the first one
}

func (l *limited) Write(b []byte) (int, error) {
	if l.err == nil && len(b) > l.left {
		l.err = errTooLarge
	}
	if l.err != nil {
		return 0, l.err
	}
	l.left -= len(b)
	var n int
	n, l.err = l.f.Write(b)
	return n, l.err
}
