//go:build !linux

package main

import "errors"

// allowCoreDumps reports that the settings of the system decide.
func allowCoreDumps() error {
	return errors.New("limits of core files are left as they are on this system")
}
