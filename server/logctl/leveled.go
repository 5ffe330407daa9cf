package logctl

import (
	"context"
	"log/slog"
)

// leveled is the handler of a program with the level of a logger.
type leveled struct {
	r    *Registry
	l    *logger
	next slog.Handler
}

// Enabled implements [slog.Handler].
func (h *leveled) Enabled(ctx context.Context, level slog.Level) bool {
	return h.r.enabled(h.l, level) && h.next.Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (h *leveled) Handle(ctx context.Context, rec slog.Record) error {
	if !h.r.passes(&rec) {
		return nil
	}
	return h.next.Handle(ctx, rec)
}

// WithAttrs implements [slog.Handler].
func (h *leveled) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &leveled{h.r, h.l, h.next.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (h *leveled) WithGroup(name string) slog.Handler {
	return &leveled{h.r, h.l, h.next.WithGroup(name)}
}
