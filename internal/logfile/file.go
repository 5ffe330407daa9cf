package logfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/nofollow"
)

// Options configure buffering. The zero value writes each line immediately.
type Options struct {
	// FlushBytes is the buffer size that triggers a write. If it is 0, there is no
	// buffer and Write goes to the file. With a buffer, Run must be called.
	FlushBytes int
	// FlushInterval is the interval at which the buffer is written in any case. The
	// default is 10 s.
	FlushInterval time.Duration
	// MaxBytes bounds the buffer. Lines beyond it are dropped and counted. The
	// default is 16 times FlushBytes, at least 1 MiB.
	MaxBytes int
}

const (
	fileMode        = 0o640
	defaultInterval = 10 * time.Second
	minMaxBytes     = 1 << 20
)

// ErrClosed is returned by methods of a closed [File].
var ErrClosed = errors.New("logfile: file is closed")

// File is an open log. Create it with [Open].
type File struct {
	path string
	opts Options

	full    chan struct{} // wakes Run when FlushBytes are waiting
	dropped atomic.Uint64
	failed  atomic.Uint64

	// ioMu is locked before mu.
	ioMu   sync.Mutex
	out    *os.File // nil after Close
	fixed  bool     // standard output or error: never reopened or closed
	torn   bool     // the file ends with a part of a line
	spare  []byte   // the buffer that is not being filled
	mu     sync.Mutex
	buffer []byte // lines that wait; guarded by mu
}

// Open opens path for appending and creates it if necessary; its directory must
// exist. It refuses symbolic links, directories and pipes. /dev/stdout and
// /dev/stderr mean the streams of this process.
func Open(path string, opts Options) (*File, error) {
	if opts.FlushInterval <= 0 {
		opts.FlushInterval = defaultInterval
	}
	if opts.MaxBytes <= 0 {
		opts.MaxBytes = max(minMaxBytes, 16*opts.FlushBytes)
	}
	f := &File{path: path, opts: opts, full: make(chan struct{}, 1)}
	switch path {
	case "/dev/stdout":
		f.out, f.fixed = os.Stdout, true
	case "/dev/stderr":
		f.out, f.fixed = os.Stderr, true
	default:
		var err error
		if f.out, f.torn, err = openFile(path); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// openFile also reports whether the file ends with a part of a line, which a full disk
// or the end of a process can leave. That of a file that cannot be read is not known.
func openFile(path string) (out *os.File, torn bool, err error) {
	const flags = os.O_APPEND | os.O_CREATE | nofollow.Flag | syscall.O_NONBLOCK
	out, err = os.OpenFile(path, os.O_RDWR|flags, fileMode)
	if errors.Is(err, fs.ErrPermission) {
		out, err = os.OpenFile(path, os.O_WRONLY|flags, fileMode)
	}
	if errors.Is(err, syscall.ELOOP) {
		return nil, false, fmt.Errorf("logfile: %q is a symbolic link", path)
	}
	if err != nil {
		return nil, false, fmt.Errorf("logfile: %w", err)
	}
	info, err := out.Stat()
	if err == nil && !info.Mode().IsRegular() && info.Mode()&fs.ModeCharDevice == 0 {
		err = fmt.Errorf("logfile: %q is not a regular file", path)
	}
	if err != nil {
		out.Close()
		return nil, false, err
	}
	var last [1]byte
	if info.Size() > 0 {
		n, _ := out.ReadAt(last[:], info.Size()-1)
		torn = n > 0 && last[0] != '\n'
	}
	return out, torn, nil
}

// Path returns the name of the file.
func (f *File) Path() string { return f.path }

// Write appends one or more complete lines and returns how many bytes of them, in whole
// lines, are in the file. With a buffer it never waits for the disk: lines that do not
// fit are dropped, and the result is still len(p), nil.
func (f *File) Write(p []byte) (int, error) {
	if f.opts.FlushBytes <= 0 {
		f.ioMu.Lock()
		defer f.ioMu.Unlock()
		return f.writeLocked(p)
	}
	f.mu.Lock()
	if len(f.buffer)+len(p) > f.opts.MaxBytes {
		f.mu.Unlock()
		f.dropped.Add(lines(p))
		return len(p), nil
	}
	f.buffer = append(f.buffer, p...)
	enough := len(f.buffer) >= f.opts.FlushBytes
	f.mu.Unlock()
	if enough {
		select {
		case f.full <- struct{}{}:
		default:
		}
	}
	return len(p), nil
}

func lines(p []byte) uint64 { return uint64(bytes.Count(p, []byte("\n"))) }

// writeLocked writes to the file, returns the bytes of whole lines that it wrote, and
// counts the lines that it lost. A line that was cut, as by a full disk, gets an end
// before the next one. f.ioMu must be held.
func (f *File) writeLocked(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if f.out == nil {
		return 0, ErrClosed
	}
	var n int
	var err error
	if f.torn {
		_, err = f.out.Write([]byte("\n"))
		f.torn = err != nil
	}
	if err == nil {
		n, err = f.out.Write(p)
	}
	if err == nil {
		return n, nil
	}
	whole := bytes.LastIndexByte(p[:n], '\n') + 1
	if whole < n {
		f.torn = true
		if n < len(p) && p[n] == '\n' { // only the end is missing
			whole = n + 1
		}
	}
	f.failed.Add(lines(p[whole:]))
	return whole, fmt.Errorf("logfile: %w", err)
}

// Flush writes the buffer.
func (f *File) Flush() error {
	f.ioMu.Lock()
	defer f.ioMu.Unlock()
	return f.flushLocked()
}

// flushLocked writes the buffer. f.ioMu must be held.
func (f *File) flushLocked() error {
	f.mu.Lock()
	full := f.buffer
	f.buffer = f.spare[:0]
	f.mu.Unlock()
	f.spare = full
	_, err := f.writeLocked(full)
	return err
}

// Run writes the buffer when it is full enough and at each interval. It returns nil
// after a last flush when ctx is done.
func (f *File) Run(ctx context.Context) error {
	tick := time.Tick(f.opts.FlushInterval)
	for {
		select {
		case <-ctx.Done():
			return f.Flush()
		case <-tick:
		case <-f.full:
		}
		_ = f.Flush() // lost lines are counted
	}
}

// Reopen writes the buffer to the open file and opens the name again. If that fails,
// the open file stays in use.
func (f *File) Reopen() error {
	f.ioMu.Lock()
	defer f.ioMu.Unlock()
	if f.out == nil {
		return ErrClosed
	}
	flushErr := f.flushLocked()
	if f.fixed {
		return flushErr
	}
	out, torn, err := openFile(f.path)
	if err != nil {
		return err
	}
	old := f.out
	f.out, f.torn = out, torn
	return errors.Join(flushErr, old.Close())
}

// Close writes the buffer and closes the file. Later lines are lost.
func (f *File) Close() error {
	f.ioMu.Lock()
	defer f.ioMu.Unlock()
	if f.out == nil {
		return ErrClosed
	}
	err := f.flushLocked()
	if !f.fixed {
		err = errors.Join(err, f.out.Close())
	}
	f.out = nil
	return err
}

// Dropped returns the number of lines that did not fit in the buffer.
func (f *File) Dropped() uint64 { return f.dropped.Load() }

// Failed returns the number of lines that could not be written to the file.
func (f *File) Failed() uint64 { return f.failed.Load() }
