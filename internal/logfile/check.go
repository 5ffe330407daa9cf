package logfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/statsd-admin/statsd-admin/internal/boundedfile"
	"github.com/statsd-admin/statsd-admin/internal/nofollow"
)

// Check returns an error if [Open] would fail for path. It creates and writes nothing.
// The errors do not repeat path.
func Check(path string) error {
	if path == "/dev/stdout" || path == "/dev/stderr" {
		return nil
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return checkDirectory(filepath.Dir(path))
	case err != nil:
		return boundedfile.Cause(err)
	case info.IsDir():
		return errors.New("it is a directory")
	case nofollow.Flag != 0 && info.Mode()&fs.ModeSymlink != 0:
		return errors.New("it is a symbolic link")
	case !info.Mode().IsRegular() && info.Mode()&fs.ModeCharDevice == 0:
		return errors.New("it is not a regular file")
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|nofollow.Flag|syscall.O_NONBLOCK, 0)
	if err != nil {
		return boundedfile.Cause(err)
	}
	return f.Close()
}

// checkDirectory returns an error if no file can be created in dir.
func checkDirectory(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("its directory: %w", boundedfile.Cause(err))
	case !info.IsDir():
		return fmt.Errorf("%q is not a directory", dir)
	}
	if err := mayCreate(dir); err != nil {
		return fmt.Errorf("its directory: %w", err)
	}
	return nil
}
