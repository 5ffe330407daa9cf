package transport

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// TestAddressesToBindTo: addresses that bind to nothing are left out, wherever they are,
// and the others keep their order. The first of the family of the remote address counts.
func TestAddressesToBindTo(t *testing.T) {
	at := func(host string, port uint16) config.AddressSpec {
		ip, _ := netip.ParseAddr(host) // invalid for a name
		return config.AddressSpec{Kind: config.SocketAddress, Host: host, IP: ip, Port: port}
	}
	none, any4, any6 := config.AddressSpec{}, at("0.0.0.0", 0), at("::", 0)
	for _, tt := range []struct {
		all       []config.AddressSpec // the source, and the additional ones
		want      string
		four, six string // for a remote of the family
	}{
		{[]config.AddressSpec{none}, "[]", "", ""},
		{[]config.AddressSpec{any4}, "[]", "", ""},
		{[]config.AddressSpec{any4, at("127.0.0.1", 5)}, "[127.0.0.1:5]", "127.0.0.1:5", "127.0.0.1:5"},
		{[]config.AddressSpec{any6, none, at("::1", 0), at("127.0.0.1", 0)}, "[[::1]:0 127.0.0.1:0]", "127.0.0.1:0", "[::1]:0"},
		{[]config.AddressSpec{none, at("127.0.0.1", 0), at("127.0.0.2", 0), at("::1", 0)}, "[127.0.0.1:0 127.0.0.2:0 [::1]:0]", "127.0.0.1:0", "[::1]:0"},
		{[]config.AddressSpec{at("0.0.0.0", 5)}, "[0.0.0.0:5]", "0.0.0.0:5", "0.0.0.0:5"},
		{[]config.AddressSpec{at("", 5)}, "[0.0.0.0:5]", "0.0.0.0:5", "0.0.0.0:5"},
		{[]config.AddressSpec{at("::ffff:127.0.0.1", 0), at("::1", 0)}, "[[::ffff:127.0.0.1]:0 [::1]:0]", "[::ffff:127.0.0.1]:0", "[::1]:0"},
	} {
		s, err := newSource(&config.Bind{Source: tt.all[0], Additional: tt.all[1:]}, nil, "b")
		if err != nil {
			t.Errorf("%v: %v", tt.all, err)
			continue
		}
		if got := fmt.Sprint(s.addresses); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.all, got, tt.want)
		}
		for remote, want := range map[string]string{"10.0.0.1": tt.four, "::ffff:10.0.0.1": tt.four, "2001:db8::1": tt.six} {
			a, ok := s.address(netip.MustParseAddr(remote))
			if ok != (want != "") || ok && a.String() != want {
				t.Errorf("%v to %s: %v, %t, want %q", tt.all, remote, a, ok, want)
			}
		}
	}
	for i, place := range []string{"b.source_address", "b.additional_source_addresses[0]", "b.additional_source_addresses[1]"} {
		all := []config.AddressSpec{none, any4, at("127.0.0.1", 0)}
		all[i] = at("name", 0)
		if _, err := newSource(&config.Bind{Source: all[0], Additional: all[1:]}, nil, "b"); err == nil || !strings.HasPrefix(err.Error(), place+": ") {
			t.Errorf("%v: %v, want an error of %s", all, err, place)
		}
	}
}

// TestSocketOptionsKeepTheirOrder within their state.
func TestSocketOptionsKeepTheirOrder(t *testing.T) {
	option := func(name int64, s config.SocketState) config.SocketOption {
		return config.SocketOption{Name: name, State: s}
	}
	all := []config.SocketOption{option(1, config.StateBound), option(2, config.StatePrebind), option(3, config.StateBound), option(4, config.StatePrebind)}
	s, err := newSource(&config.Bind{Options: all}, nil, "b")
	if err != nil || len(s.bound) != 2 || s.bound[0].Name != 1 || s.bound[1].Name != 3 || len(s.prebind) != 2 || s.prebind[0].Name != 2 || s.prebind[1].Name != 4 {
		t.Errorf("%+v, %v", s, err)
	}
	for i := range all {
		bad := append([]config.SocketOption{}, all...)
		bad[i].State = config.StateListening
		if _, err := newSource(&config.Bind{Options: bad}, nil, "b"); err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("b.socket_options[%d].state: ", i)) {
			t.Errorf("option %d: %v", i, err)
		}
	}
}
