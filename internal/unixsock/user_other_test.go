//go:build !linux

package unixsock

import "errors"

// asAnother: there is no such thing as a user of one thread here.
func asAnother(func()) bool { return false }

func connect(string) error { return errors.ErrUnsupported }
