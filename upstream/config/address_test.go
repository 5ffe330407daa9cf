package config_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

func TestAddress(t *testing.T) {
	for _, tt := range []struct {
		a             config.Address
		text, network string
	}{
		{config.Address{IP: netip.MustParseAddrPort("10.0.0.1:80")}, "10.0.0.1:80", "tcp"},
		{config.Address{IP: netip.MustParseAddrPort("[fd00::1]:80")}, "[fd00::1]:80", "tcp"},
		{config.Address{Pipe: "/run/x"}, "/run/x", "unix"},
		{config.Address{}, "", "tcp"},
	} {
		if tt.a.String() != tt.text || tt.a.Network() != tt.network || tt.a.IsZero() != (tt.text == "") {
			t.Errorf("%+v: %s %s", tt.a, tt.a, tt.a.Network())
		}
	}
	if got := (config.Address{IP: netip.MustParseAddrPort("10.0.0.1:80")}).WithPort(9).String(); got != "10.0.0.1:9" {
		t.Errorf("with port 9: %s", got)
	}
}

func TestLocalityOrder(t *testing.T) {
	list := []config.Locality{{Region: "b"}, {Region: "a", Zone: "z", SubZone: "2"}, {Region: "a", Zone: "z", SubZone: "1"}, {Region: "a", Zone: "y", SubZone: "9"}, {SubZone: "x"}}
	slices.SortFunc(list, config.Locality.Compare)
	want := []config.Locality{{SubZone: "x"}, {Region: "a", Zone: "y", SubZone: "9"}, {Region: "a", Zone: "z", SubZone: "1"}, {Region: "a", Zone: "z", SubZone: "2"}, {Region: "b"}}
	if !slices.Equal(list, want) {
		t.Errorf("order %v", list)
	}
}
