package config_test

import (
	"net/netip"
	"testing"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// TestAddressSpec: only an IP address is one, and only the zero value is none.
func TestAddressSpec(t *testing.T) {
	ip := netip.MustParseAddr("10.0.0.1")
	for _, tt := range []struct {
		name     string
		spec     config.AddressSpec
		zero, ok bool
	}{
		{"none", config.AddressSpec{}, true, false},
		{"IP", config.AddressSpec{Kind: config.SocketAddress, IP: ip, Port: 80}, false, true},
		{"name", config.AddressSpec{Kind: config.SocketAddress, Host: "h", Port: 80}, false, false},
		{"pipe with an IP", config.AddressSpec{Kind: config.PipeAddress, IP: ip, Port: 80}, false, false},
	} {
		ap, ok := tt.spec.AddrPort()
		if ok != tt.ok || ok && ap != netip.AddrPortFrom(ip, 80) || tt.spec.IsZero() != tt.zero {
			t.Errorf("%s: %v, %t; zero %t", tt.name, ap, ok, tt.spec.IsZero())
		}
	}
}

// runtime has one value for every key, also for the empty one.
type runtime struct{ value float64 }

func (r runtime) Uint(string, uint64) uint64    { return uint64(r.value) }
func (r runtime) Float(string, float64) float64 { return r.value }

func TestRuntimeDouble(t *testing.T) {
	for _, tt := range []struct {
		key  string
		rt   config.Runtime
		want float64
	}{
		{"", runtime{5}, 2}, {"k", runtime{5}, 5}, {"k", config.NoRuntime{}, 2},
	} {
		if got := (config.RuntimeDouble{Default: 2, Key: tt.key}).Value(tt.rt); got != tt.want {
			t.Errorf("key %q: %v, want %v", tt.key, got, tt.want)
		}
	}
	if got := (config.NoRuntime{}).Uint("k", 7); got != 7 {
		t.Errorf("no runtime: %d", got)
	}
}

// TestTexts: errors name secrets by their field, and data by its place alone.
func TestTexts(t *testing.T) {
	for _, tt := range []struct {
		v    interface{ String() string }
		want string
	}{
		{config.CertificateSecret, "tls_certificate"},
		{config.ValidationSecret, "validation_context"},
		{config.OtherSecret, "session_ticket_keys or generic_secret"},
		{config.Data{Kind: config.DataEnvironment, Name: "KEY"}, "$KEY"},
		{config.Data{Kind: config.DataFile, Name: "/k"}, "/k"},
		{config.Data{Kind: config.DataInline, Name: "n", Inline: "secret"}, "<inline>"},
		{config.Data{}, ""},
	} {
		if got := tt.v.String(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
