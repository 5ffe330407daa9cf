package statsd

import (
	"bytes"
	"log/slog"
	"sync"
)

// logBuffer collects log output.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func (b *logBuffer) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// callback is a log that calls a function for each message.
type callback struct {
	logBuffer
	call func()
}

func (c *callback) Write(p []byte) (int, error) {
	c.call()
	return len(p), nil
}

func (c *callback) logger() *slog.Logger { return slog.New(slog.NewTextHandler(c, nil)) }
