//go:build !linux

package transport

import (
	"fmt"
	"net/netip"
)

// supported returns an error if a setting is not available on this system.
func (s *source) supported(at string) error {
	switch {
	case len(s.addresses) > 0:
		return fmt.Errorf("%s.source_address: binding is supported on Linux only", at)
	case s.freebind:
		return fmt.Errorf("%s.freebind: supported on Linux only", at)
	case len(s.prebind)+len(s.bound) > 0:
		return fmt.Errorf("%s.socket_options: supported on Linux only", at)
	}
	return nil
}

// prepare does nothing on this system.
func (s *source) prepare(int, netip.Addr) error { return nil }
