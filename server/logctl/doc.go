// Package logctl holds the loggers of a server by name, each with a level that
// can change while the server runs.
//
//	logs, err := logctl.New(logctl.Config{Level: logctl.Info})
//	log := logs.Logger("admin") // an ordinary *slog.Logger; keep it
//	log.Info("listener bound", "address", addr)
//	err = logs.SetPaths("admin:debug,main=error")
//
// Lines have a configurable pattern of percent flags, see [Config.Format]. Text
// that a line carries is escaped, so that one record is one line of at most
// 8 KiB. In fine-grained mode the loggers are source files instead of names.
//
// All methods are safe for concurrent use. A record below its logger's level
// costs two atomic loads and no allocation.
package logctl
