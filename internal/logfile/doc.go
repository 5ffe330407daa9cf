// Package logfile implements the files behind all logs: append-only, reopened under
// their name after rotation, with escaping that keeps untrusted text on one line.
//
//	f, err := logfile.Open("/var/log/access.log", logfile.Options{FlushBytes: 64 << 10, FlushInterval: 10 * time.Second})
//	go f.Run(ctx)
//	f.Write(line) // into memory; a slow disk never delays the caller
//
// Files are created with mode 0640 and never through a symbolic link. All methods are
// safe for concurrent use. A Write is never split.
package logfile
