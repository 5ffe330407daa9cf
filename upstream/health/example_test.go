package health_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/health"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

func Example() {
	backend := httptest.NewServer(http.NotFoundHandler())
	defer backend.Close()
	reports := make(chan health.Report, 1)
	checker, err := health.New(health.Config{
		Check: config.HealthCheck{
			Kind: config.HTTPCheck, HTTP: config.HTTPHealthCheck{Path: "/healthy"},
			Timeout: 5 * time.Second, Interval: time.Hour, UnhealthyInterval: time.Hour, UnhealthyEdgeInterval: time.Hour,
			HealthyThreshold: 1, UnhealthyThreshold: 1,
		},
		Cluster: "backend",
		Done:    func(r health.Report) { reports <- r },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer checker.Close()
	h := host.New(host.Spec{Address: config.Address{IP: netip.MustParseAddrPort(backend.Listener.Addr().String())}})
	h.SetFlags(status.FailedActiveHC) // until the first check
	checker.Add(h)
	r := <-reports
	fmt.Println(r.Outcome.Kind == health.Active, h.Flags())
	// Output: true /failed_active_hc
}
