package accesslog

import (
	"bytes"
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/logfile"
)

// Config sets up a [Logger].
type Config struct {
	Path   string // file; /dev/stdout and /dev/stderr mean the streams of the process
	Format string // default DefaultFormat(HeaderPrefix)
	// JSON, unless nil, makes lines of JSON in place of Format. Members are
	// formats, numbers, booleans, nil, and lists and objects of them.
	JSON map[string]any
	// Typed, for JSON, writes numbers as numbers and missing values as null.
	// Otherwise every value is a text, and - stands for values that are
	// missing.
	Typed bool
	// OmitEmpty, for JSON, leaves out members whose values are missing.
	OmitEmpty bool
	// Filter says which requests are logged.
	Filter Filter
	// Runtime returns runtime values for Filter. Nil: there are none.
	Runtime func(key string, byDefault uint64) uint64
	// HeaderPrefix is what the names of own headers begin with; default
	// "x-proxy".
	HeaderPrefix string

	FlushBytes    int           // default 64 KiB: lines are written when so much is waiting
	FlushInterval time.Duration // default 10s: and at this interval
}

const defaultFlushBytes = 64 << 10

// Logger writes to one file. Make it with [New].
type Logger struct {
	pieces []piece
	json   *node // in place of pieces
	keep   func(e *Entry) bool
	file   *logfile.File
	lines  sync.Pool // *[]byte
}

// Check returns an error if the format or the filter is not valid.
func Check(cfg Config) error {
	_, err := prepare(&cfg)
	return err
}

// prepare returns a logger without a file.
func prepare(cfg *Config) (l *Logger, err error) {
	l = new(Logger)
	if l.pieces, err = compile(cmp.Or(cfg.Format, DefaultFormat(cmp.Or(cfg.HeaderPrefix, "x-proxy")))); err != nil {
		return nil, err
	}
	if l.json, err = compileJSON(cfg); err != nil {
		return nil, err
	}
	l.keep, err = cfg.Filter.compile(cfg.Runtime)
	return l, err
}

// New opens the file. The error names the problem with the path, the format or
// the filter.
func New(cfg Config) (*Logger, error) {
	if cfg.FlushBytes <= 0 {
		cfg.FlushBytes = defaultFlushBytes
	}
	l, err := prepare(&cfg)
	if err != nil {
		return nil, err
	}
	l.file, err = logfile.Open(cfg.Path, logfile.Options{FlushBytes: cfg.FlushBytes, FlushInterval: cfg.FlushInterval})
	if err != nil {
		return nil, err
	}
	l.lines.New = func() any { return new([]byte) }
	return l, nil
}

// Log writes one line of at most 8 KiB if the filter lets e pass. A line that
// finds the buffer full, as behind a disk that hangs, is dropped and counted. e is
// not kept.
func (l *Logger) Log(e *Entry) {
	if !l.keep(e) {
		return
	}
	buffer := l.lines.Get().(*[]byte)
	line := (*buffer)[:0]
	if l.json != nil {
		line = l.json.appendLine(line, e)
	} else {
		line = appendText(line, l.pieces, e)
	}
	line = append(line, '\n')
	_, _ = l.file.Write(line) // a buffered file counts what it drops
	*buffer = line
	l.lines.Put(buffer)
}

// appendText appends a line of text.
func appendText(line []byte, pieces []piece, e *Entry) []byte {
	for _, p := range pieces {
		if p.value == nil {
			line = append(line, p.text...)
			continue
		}
		before := len(line)
		if line = p.value.appendLine(line, e); len(line) == before {
			line = append(line, '-')
		}
	}
	return logfile.Cut(bytes.TrimRight(line, "\n"), logfile.MaxLineBytes)
}

// Run writes buffered lines to the file until ctx is done, and then the rest.
func (l *Logger) Run(ctx context.Context) error { return l.file.Run(ctx) }

// Flush writes buffered lines to the file now.
func (l *Logger) Flush() error { return l.file.Flush() }

// Reopen opens the path again, after buffered lines went to the file that was
// open. When that fails the open file stays in use.
func (l *Logger) Reopen() error { return l.file.Reopen() }

// Close writes buffered lines and closes the file.
func (l *Logger) Close() error { return l.file.Close() }

// Dropped returns the number of lines that did not fit in the buffer.
func (l *Logger) Dropped() uint64 { return l.file.Dropped() }

// Failed returns the number of lines that could not be written to the file.
func (l *Logger) Failed() uint64 { return l.file.Failed() }
