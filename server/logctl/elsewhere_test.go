package logctl

import "log/slog"

// logElsewhere logs from a source file of its own.
func logElsewhere(log *slog.Logger) {
	log.Debug("t")
	log.Warn("t")
}
