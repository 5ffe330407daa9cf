package logctl

import (
	"context"
	"log/slog"
	"runtime"
	"strings"

	"github.com/statsd-admin/statsd-admin/internal/logfile"
)

// handler writes the records of one logger.
type handler struct {
	r *Registry
	l *logger
	// attrs are the attributes added by WithAttrs, formatted as they follow a
	// message.
	attrs string
	// group is the prefix of the keys of later attributes: "a.b." or "".
	group string
}

var _ slog.Handler = (*handler)(nil)

// Enabled implements [slog.Handler].
func (h *handler) Enabled(_ context.Context, level slog.Level) bool { return h.r.enabled(h.l, level) }

// enabled reports whether a record of the level can pass.
func (r *Registry) enabled(l *logger, level slog.Level) bool {
	lowest := &l.level
	if r.fineGrain {
		lowest = &r.lowest // the file is not yet known
	}
	return levelOf(level) >= Level(lowest.Load())
}

// passes reports whether an enabled record passes.
func (r *Registry) passes(rec *slog.Record) bool {
	return !r.fineGrain || levelOf(rec.Level) >= Level(r.fileLogger(rec.PC).level.Load())
}

// Handle implements [slog.Handler].
func (h *handler) Handle(_ context.Context, rec slog.Record) error {
	if !h.r.passes(&rec) {
		return nil
	}
	buffer := h.r.lines.Get().(*[]byte)
	whole := logfile.Cut(h.appendMessage((*buffer)[:0], rec), maxMessageBytes)
	event := event{time: rec.Time, level: levelOf(rec.Level), logger: h.l.name, message: whole}
	if h.r.format.source {
		event.frame, _ = runtime.CallersFrames([]uintptr{rec.PC}).Next()
	}
	start := len(whole)
	whole = h.r.format.append(whole, &event)
	err := h.r.write(append(logfile.Cut(whole[start:], logfile.MaxLineBytes), '\n'))
	if cap(whole) <= 4*logfile.MaxLineBytes { // do not pool large buffers
		*buffer = whole[:0]
		h.r.lines.Put(buffer)
	}
	return err
}

// maxMessageBytes leaves space for the rest of a line, so that a long message does
// not cut off the flags that follow it in the pattern.
const maxMessageBytes = logfile.MaxLineBytes - 1024

// appendMessage appends the message and its attributes, escaped.
func (h *handler) appendMessage(dst []byte, rec slog.Record) []byte {
	dst = logfile.AppendEscaped(dst, rec.Message)
	dst = append(dst, h.attrs...)
	rec.Attrs(func(a slog.Attr) bool {
		dst = appendAttr(dst, h.group, a)
		return true
	})
	return dst
}

// WithAttrs implements [slog.Handler].
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	var b []byte
	for _, a := range attrs {
		b = appendAttr(b, h.group, a)
	}
	next.attrs += string(b)
	return &next
}

// WithGroup implements [slog.Handler].
func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	next := *h
	next.group += name + "."
	return &next
}

// appendAttr appends " key=value". A group is flattened into its members, with its
// name as key prefix.
func appendAttr(dst []byte, prefix string, a slog.Attr) []byte {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, member := range v.Group() {
			dst = appendAttr(dst, prefix, member)
		}
		return dst
	}
	if a.Equal(slog.Attr{}) {
		return dst
	}
	dst = append(dst, ' ')
	dst = logfile.AppendEscaped(dst, prefix+a.Key)
	dst = append(dst, '=')
	text := v.String()
	if text == "" || strings.ContainsAny(text, " =\"\\") {
		return logfile.AppendQuoted(dst, text)
	}
	return logfile.AppendEscaped(dst, text)
}
