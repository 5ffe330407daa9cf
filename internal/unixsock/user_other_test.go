//go:build !linux

package unixsock

import "errors"

// asAnother cannot switch the user of one thread on this system.
func asAnother(func()) bool { return false }

func connect(string) error { return errors.ErrUnsupported }
