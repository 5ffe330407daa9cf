package decode_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

func TestStaticCluster(t *testing.T) {
	p, err := decode.StaticCluster("backend", "10.0.0.1:80", "[::1]:81")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range p.Config().Assignment.Localities {
		for _, e := range l.Endpoints {
			got = append(got, netip.AddrPortFrom(e.Address.IP, e.Address.Port).String())
		}
	}
	if strings.Join(got, " ") != "10.0.0.1:80 [::1]:81" || p.Config().Name != "backend" || p.Config().ConnectTimeout <= 0 {
		t.Errorf("hosts %q of %q with a timeout of %v", got, p.Config().Name, p.Config().ConnectTimeout)
	}
	if p, err := decode.StaticCluster("empty"); err != nil || p.Config().Name != "empty" {
		t.Errorf("without hosts: %v", err)
	}
	for _, host := range []string{"", "localhost:80", "10.0.0.1", "10.0.0.1:0", "10.0.0.1:http"} {
		_, err := decode.StaticCluster("backend", host)
		if want := `decode: host "` + host + `" of cluster "backend" is not an IP address and a port; Decoder.ClusterText takes names`; err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %s", host, err, want)
		}
	}
	if _, err := decode.StaticCluster("", "10.0.0.1:80"); err == nil || err.Error() != "decode: a cluster needs a name" {
		t.Errorf("without a name: %v", err)
	}
}

// TestStaticSettings sets each setting, expects the defaults of the
// documentation, and errors that name the place of a bad value.
func TestStaticSettings(t *testing.T) {
	p, err := decode.Static{
		Name: "backend", Hosts: []string{"10.0.0.1:80"}, Policy: "LEAST_REQUEST", ConnectTimeout: 250 * time.Millisecond, EjectAfter: 3,
		Check: &decode.StaticCheck{Path: "/healthz", Interval: 1500 * time.Millisecond, Timeout: 2 * time.Second, Unhealthy: 4, Healthy: 5},
	}.Cluster()
	if err != nil {
		t.Fatal(err)
	}
	c := p.Config()
	if c.LB.Policy != config.LeastRequestPolicy || c.ConnectTimeout != 250*time.Millisecond || c.Outlier.Consecutive5xx != 3 || c.Outlier.MaxEjectionPercent != 50 {
		t.Errorf("got policy %v, timeout %v, outlier detection %+v", c.LB.Policy, c.ConnectTimeout, c.Outlier)
	}
	h := c.HealthChecks[0]
	if h.Kind != config.HTTPCheck || h.HTTP.Path != "/healthz" || h.Interval != 1500*time.Millisecond || h.NoTrafficInterval != h.Interval ||
		h.Timeout != 2*time.Second || h.UnhealthyThreshold != 4 || h.HealthyThreshold != 5 {
		t.Errorf("health check %+v", h)
	}

	if p, err = (decode.Static{Name: "backend", Check: new(decode.StaticCheck)}).Cluster(); err != nil {
		t.Fatal(err)
	}
	c = p.Config()
	h = c.HealthChecks[0]
	if c.LB.Policy != config.RoundRobinPolicy || c.ConnectTimeout != 5*time.Second || c.Outlier != nil {
		t.Errorf("by default: policy %v, timeout %v, outlier detection %v", c.LB.Policy, c.ConnectTimeout, c.Outlier)
	}
	if h.Kind != config.TCPCheck || h.Interval != 5*time.Second || h.NoTrafficInterval != h.Interval || h.Timeout != time.Second || h.UnhealthyThreshold != 2 || h.HealthyThreshold != 2 {
		t.Errorf("health check by default %+v", h)
	}

	if b := c.CircuitBreakers.Default; b.MaxConnections != 1024 || b.MaxRetries != 3 {
		t.Errorf("circuit breakers by default %+v", b)
	}
	p, err = decode.Static{Name: "backend", Breakers: decode.StaticBreakers{Connections: 10, Pending: 20, Requests: 30}}.Cluster()
	if err != nil {
		t.Fatal(err)
	}
	if b := p.Config().CircuitBreakers.Default; b.MaxConnections != 10 || b.MaxPendingRequests != 20 || b.MaxRequests != 30 || b.MaxRetries != 3 {
		t.Errorf("circuit breakers %+v", b)
	}

	for place, s := range map[string]decode.Static{
		`path "healthz" of the health check of cluster "backend" does not begin with /`: {Check: &decode.StaticCheck{Path: "healthz"}},
		"connect_timeout":          {ConnectTimeout: -time.Second / 2},
		"lb_policy":                {Policy: "FASTEST"},
		"health_checks[0].timeout": {Check: &decode.StaticCheck{Timeout: -1}},
	} {
		s.Name = "backend"
		if _, err := s.Cluster(); err == nil || !strings.Contains(err.Error(), place) {
			t.Errorf("%s: error %v", place, err)
		}
	}
}
