package lb_test

import (
	"fmt"
	"net/netip"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/lb"
)

func hosts(n int) []*host.Host {
	var list []*host.Host
	for i := range n {
		a := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 80)
		list = append(list, host.New(host.Spec{Address: config.Address{IP: a}}))
	}
	return list
}

func Example() {
	b := lb.New(lb.Config{Policy: config.RoundRobinPolicy})
	b.Update([]*host.Set{host.NewSet(0, hosts(2), host.SetOptions{})}, nil)
	for range 3 {
		fmt.Println(b.Pick(nil).AddressText())
	}
	// Output:
	// 10.0.0.1:80
	// 10.0.0.2:80
	// 10.0.0.1:80
}

// Retries reject the hosts that were tried.
func ExampleContext() {
	b := lb.New(lb.Config{Policy: config.RoundRobinPolicy})
	b.Update([]*host.Set{host.NewSet(0, hosts(3), host.SetOptions{})}, nil)
	tried := b.Pick(nil)
	again := b.Pick(&lb.Context{Retries: 3, Reject: func(h *host.Host) bool { return h == tried }})
	fmt.Println(tried.AddressText(), again.AddressText())
	// Output: 10.0.0.1:80 10.0.0.2:80
}
