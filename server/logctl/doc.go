// Package logctl holds the named loggers of a server. Each has a level that can
// change while the server runs.
//
//	logs, err := logctl.New(logctl.Config{})
//	log := logs.Logger("admin") // an ordinary *slog.Logger; keep it
//	log.Info("listener bound", "address", addr)
//	err = logs.SetPaths("admin:debug,main=error")
//
// A program that has a [slog.Handler] keeps it, with a level that /logging changes:
//
//	log := slog.New(logs.Handler("jobs", slog.NewJSONHandler(os.Stdout, nil)))
//
// The line format is a pattern of percent flags, see [Config.Format]. Text in a
// record is escaped, so each record is one line of at most 8 KiB. In fine-grained
// mode the loggers are source files instead of names.
//
// All methods are safe for concurrent use. A record below its logger's level
// costs two atomic loads and no allocation.
package logctl
