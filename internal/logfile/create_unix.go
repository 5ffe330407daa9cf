//go:build unix

package logfile

import "golang.org/x/sys/unix"

// mayCreate returns an error if this process may not create files in dir.
func mayCreate(dir string) error {
	return unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS)
}
