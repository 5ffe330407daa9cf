package transport

import (
	"net"
	"strconv"
	"testing"
)

// TestZones: the zone of a source address is the name or the number of an interface.
func TestZones(t *testing.T) {
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	zones := map[string]uint32{"": 0, "12": 12, "4294967295": 1<<32 - 1}
	for _, i := range all {
		zones[i.Name], zones[strconv.Itoa(i.Index)] = uint32(i.Index), uint32(i.Index)
	}
	for zone, want := range zones {
		if got, err := zoneID(zone); got != want || err != nil {
			t.Errorf("zone %q: %d, %v; want %d", zone, got, err, want)
		}
	}
	for _, zone := range []string{"no such", "4294967296", "-1"} {
		if n, err := zoneID(zone); err == nil {
			t.Errorf("zone %q: %d", zone, n)
		}
	}
}
