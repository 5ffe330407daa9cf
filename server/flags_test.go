package server

import (
	"testing"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// TestFlagsHaveOneMeaning keeps the flags of hosts and those that are shown bit
// by bit the same.
func TestFlagsHaveOneMeaning(t *testing.T) {
	for bit := range 16 {
		if in, out := host.Flags(1<<bit).String(), admin.HostHealth(1<<bit).String(); in != out {
			t.Errorf("bit %d means %q and is shown as %q", bit, in, out)
		}
	}
	if in, out := host.Flags(0).String(), admin.HostHealth(0).String(); in != out {
		t.Errorf("no flags mean %q and are shown as %q", in, out)
	}
}
