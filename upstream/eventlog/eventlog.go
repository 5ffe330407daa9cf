// Package eventlog keeps the files to which clusters write events of their hosts,
// one line each.
//
//	logs := eventlog.New()
//	go logs.Run(ctx)
//	f, err := logs.Open("/var/log/outlier.log")
//	defer f.Close()
//	f.Write(line)
//
// Clusters that name the same file share it. Writes go to memory, so a slow disk
// blocks no caller. All types are safe for concurrent use.
package eventlog

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/logfile"
)

// bufferBytes bounds the bytes of a file that wait for the disk. Lines beyond it are
// dropped.
const bufferBytes = 1 << 20

// interval is the time between writes to the disk.
const interval = time.Second

// Logs is a set of open files. Create it with [New].
type Logs struct {
	discard bool // nothing is opened

	mu   sync.Mutex
	open map[string]*shared
}

// shared is a file with the number of its users.
type shared struct {
	file  *logfile.File
	users int
}

// New returns an empty set.
func New() *Logs { return &Logs{open: make(map[string]*shared)} }

// Discard returns a set that opens no files and drops all lines, for programs that only
// check a configuration.
func Discard() *Logs { return &Logs{discard: true} }

// Open opens a file for appending, and creates it if necessary.
func (l *Logs) Open(path string) (*File, error) {
	if l.discard {
		return nil, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.open[path]
	if s == nil {
		f, err := logfile.Open(path, logfile.Options{FlushBytes: bufferBytes, MaxBytes: bufferBytes})
		if err != nil {
			return nil, err
		}
		s = &shared{file: f}
		l.open[path] = s
	}
	s.users++
	return &File{logs: l, shared: s}, nil
}

// Run writes logged lines to the files once a second until ctx is done, and then the
// rest. It returns nil.
func (l *Logs) Run(ctx context.Context) error {
	t := time.Tick(interval)
	for {
		select {
		case <-ctx.Done():
			_ = l.each((*logfile.File).Flush)
			return nil
		case <-t:
			_ = l.each((*logfile.File).Flush) // counted; the next may fare better
		}
	}
}

// Reopen opens all files by name again, for example after a rotation. If that fails for
// a file, the open one stays in use.
func (l *Logs) Reopen() error { return l.each((*logfile.File).Reopen) }

func (l *Logs) each(do func(*logfile.File) error) error {
	l.mu.Lock()
	var list []*logfile.File
	for _, s := range l.open {
		list = append(list, s.file)
	}
	l.mu.Unlock()
	var errs []error
	for _, f := range list {
		if err := do(f); err != nil && !errors.Is(err, logfile.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// File is an open file of a [Logs]. A nil File drops all lines.
type File struct {
	logs   *Logs
	shared *shared
	once   sync.Once
}

// Write appends whole lines. It returns no error: lines that do not fit are dropped.
func (f *File) Write(lines []byte) (int, error) {
	if f != nil {
		_, _ = f.shared.file.Write(lines)
	}
	return len(lines), nil
}

// Close ends the use of the file. The last Close writes buffered lines to disk.
func (f *File) Close() error {
	if f == nil {
		return nil
	}
	var err error
	f.once.Do(func() {
		f.logs.mu.Lock()
		f.shared.users--
		last := f.shared.users == 0
		if last {
			delete(f.logs.open, f.shared.file.Path())
		}
		f.logs.mu.Unlock()
		if last {
			err = f.shared.file.Close()
		}
	})
	return err
}
