package outlier_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/outlier"
)

func Example() {
	d := outlier.New(outlier.Config{Settings: &config.Outlier{
		Interval: 10 * time.Second, BaseEjectionTime: 30 * time.Second, MaxEjectionTime: 300 * time.Second,
		MaxEjectionPercent: 100, Consecutive5xx: 3, EnforcingConsecutive5xx: 100,
	}})
	defer d.Close()
	h := host.New(host.Spec{Address: config.Address{IP: netip.MustParseAddrPort("10.0.0.1:80")}})
	d.Add(h)
	for range 3 {
		h.ReportCode(503)
	}
	fmt.Println(h.Flags())
	d.Tick(time.Now().Add(time.Minute))
	fmt.Println(h.Flags())
	// Output:
	// /failed_outlier_check
	// healthy
}
