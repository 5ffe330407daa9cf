package logctl

import "log/slog"

// logElsewhere logs from another source file.
func logElsewhere(log *slog.Logger) {
	log.Debug("t")
	log.Warn("t")
}
