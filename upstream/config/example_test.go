package config_test

import (
	"fmt"
	"net/netip"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

func ExampleAddress() {
	a := config.Address{IP: netip.MustParseAddrPort("10.0.0.1:80")}
	fmt.Println(a.Network(), a, a.WithPort(8080))
	fmt.Println(config.Address{Pipe: "/run/app.sock"}.Network())
	// Output:
	// tcp 10.0.0.1:80 10.0.0.1:8080
	// unix
}

// Merge applies the settings of a delivered secret on top of the settings of a cluster.
func ExampleValidation_Merge() {
	cluster := &config.Validation{SPKI: []string{"a"}, MaxVerifyDepth: config.DefaultVerifyDepth}
	secret := &config.Validation{TrustedCA: config.Data{Kind: config.DataFile, Name: "/etc/ca.pem"}, SPKI: []string{"b"}, MaxVerifyDepth: 2}
	v := cluster.Merge(secret)
	fmt.Println(v.TrustedCA, v.SPKI, v.MaxVerifyDepth)
	// Output:
	// /etc/ca.pem [a b] 2
}
