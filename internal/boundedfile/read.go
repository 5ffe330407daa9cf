package boundedfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Read returns the content of a regular file of at most limit bytes. It never waits
// for the other end of a pipe, and opens no device. The error is a [*fs.PathError].
func Read(name string, limit int) ([]byte, error) {
	refuse := func(err error) ([]byte, error) { return nil, &fs.PathError{Op: "read", Path: name, Err: err} }
	irregular := errors.New("not a regular file")
	info, err := os.Stat(name) // before opening, to which devices may react
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return refuse(irregular)
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may have been replaced since
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return refuse(irregular)
	}
	b, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return nil, err
	}
	if len(b) > limit {
		return refuse(fmt.Errorf("more than %d bytes", limit))
	}
	return b, nil
}

// Cause returns an error of the file system without the path, for messages that name
// the file themselves.
func Cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
