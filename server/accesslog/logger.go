package accesslog

import (
	"bytes"
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/logfile"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// Config configures a [Logger].
type Config struct {
	Path   string // file; /dev/stdout and /dev/stderr are the streams of the process
	Format string // default DefaultFormat(HeaderPrefix)
	// JSON, unless nil, selects JSON lines and replaces Format. Members are formats,
	// numbers, booleans, nil, and lists and objects of these.
	JSON map[string]any
	// Typed, for JSON, keeps numbers as numbers and renders missing values as null.
	// Otherwise every format renders as a string, with - for missing values.
	Typed bool
	// OmitEmpty, for JSON, omits members whose values are missing.
	OmitEmpty bool
	// Filter selects the requests to log.
	Filter Filter
	// Runtime has the runtime values for Filter; nil has none.
	Runtime config.Runtime
	// HeaderPrefix is the prefix of the product's own headers. Default "x-proxy".
	HeaderPrefix string

	FlushBytes    int           // lines are written when this many bytes are buffered; default 64 KiB
	FlushInterval time.Duration // and at this interval; default 10s
}

const defaultFlushBytes = 64 << 10

// Logger writes to one file. Use [New].
type Logger struct {
	pieces []piece
	json   *node // if set, replaces pieces
	keep   func(e *Entry) bool
	file   *logfile.File
	lines  sync.Pool // *[]byte
}

// Check returns the error of the format or the filter, if any.
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
	if cfg.Runtime == nil {
		cfg.Runtime = config.NoRuntime{}
	}
	l.keep, err = cfg.Filter.compile(cfg.Runtime)
	return l, err
}

// New opens the file. It fails if the path, the format or the filter is invalid.
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

// Log writes one line of at most 8 KiB if e passes the filter. If the buffer is full,
// for example because the disk hangs, the line is dropped and counted. Log does not
// retain e.
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
	_, _ = l.file.Write(line) // the file counts dropped lines
	*buffer = line
	l.lines.Put(buffer)
}

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

// Run writes buffered lines to the file until ctx is done, and then writes the
// remaining ones.
func (l *Logger) Run(ctx context.Context) error { return l.file.Run(ctx) }

// Flush writes buffered lines to the file now.
func (l *Logger) Flush() error { return l.file.Flush() }

// Reopen writes buffered lines to the current file and opens the path again. On
// failure the current file stays in use.
func (l *Logger) Reopen() error { return l.file.Reopen() }

// Close writes buffered lines and closes the file.
func (l *Logger) Close() error { return l.file.Close() }

// Dropped returns the number of lines that did not fit in the buffer.
func (l *Logger) Dropped() uint64 { return l.file.Dropped() }

// Failed returns the number of lines that could not be written to the file.
func (l *Logger) Failed() uint64 { return l.file.Failed() }
