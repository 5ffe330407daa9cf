package host_test

import (
	"fmt"
	"net/netip"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

func Example() {
	at := func(text string) config.Address { return config.Address{IP: netip.MustParseAddrPort(text)} }
	good := host.New(host.Spec{Address: at("10.0.0.1:80")})
	bad := host.New(host.Spec{Address: at("10.0.0.2:80")})
	bad.SetFlags(status.FailedActiveHC)

	set := host.NewSet(0, []*host.Host{good, bad}, host.SetOptions{})
	fmt.Println(len(set.Hosts), "hosts,", len(set.Healthy), "healthy")
	fmt.Println(bad.AddressText(), bad.Flags())
	// Output:
	// 2 hosts, 1 healthy
	// 10.0.0.2:80 /failed_active_hc
}
