// Package logfile is what all logs stand on: a file that only grows and that
// can be reopened under its name after rotation, and the escaping that keeps
// untrusted text on its line.
//
//	f, err := logfile.Open("/var/log/access.log", logfile.Options{FlushBytes: 64 << 10, FlushInterval: 10 * time.Second})
//	go f.Run(ctx)
//	f.Write(line) // into memory; a slow disk never delays the caller
//
// Files are made with mode 0640 and never through a symbolic link. All methods
// are safe for concurrent use; each Write stays in one piece.
package logfile
