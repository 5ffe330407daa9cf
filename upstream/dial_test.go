package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/statsd-admin/statsd-admin/internal/certtest"
	"github.com/statsd-admin/statsd-admin/internal/closedport"
	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

// listener accepts connections, by TLS if cfg is set, until the test ends.
func listener(t *testing.T, cfg *tls.Config) *net.TCPAddr {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
				if cfg != nil {
					conn = tls.Server(conn, cfg)
				}
				_, _ = io.Copy(io.Discard, conn) // until the other side ends
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		running.Wait()
	})
	return ln.Addr().(*net.TCPAddr)
}

// at is a cluster with one host.
func at(a *net.TCPAddr, more string) string {
	return fmt.Sprintf("name: c\nconnect_timeout: 30s\n%s\nload_assignment: {cluster_name: c, endpoints: [{lb_endpoints: "+
		"[{endpoint: {address: {socket_address: {address: %s, port_value: %d}}}}]}]}\n", more, a.IP, a.Port)
}

func TestConnectCounts(t *testing.T) {
	a := listener(t, nil)
	r := newRig(t, nil)
	r.add(at(a, ""))
	r.Start()
	c := r.Cluster("c").Current()
	h := c.Sets()[0].Hosts[0]
	conn, err := c.Connect(context.Background(), h, DefaultPriority, transport.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.check("cluster.c.", map[string]uint64{
		"upstream_cx_total": 1, "upstream_cx_active": 1, "upstream_cx_connect_fail": 0, "default.total_match_count": 1,
	})
	conn.Close()

	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Connect(gone, h, DefaultPriority, transport.Options{}); err == nil {
		t.Error("a cancelled dial succeeded")
	}
	r.check("cluster.c.", map[string]uint64{
		"upstream_cx_total": 2, "upstream_cx_active": 0, "upstream_cx_connect_fail": 1, "upstream_cx_connect_timeout": 0,
	})
	if h.Stats.CxTotal.Value() != 2 || h.Stats.CxConnectFail.Value() != 1 || h.Stats.CxActive.Value() != 0 {
		t.Errorf("the host counts %v", h.Stats.All())
	}
}

// wildContext panics when it is asked how much time there is.
type wildContext struct{ context.Context }

func (wildContext) Deadline() (time.Time, bool) { panic(guardtest.Canary) }

// TestConnectPanics: a panic while a connection is made leaves no place
// taken.
func TestConnectPanics(t *testing.T) {
	r := newRig(t, nil)
	r.add(at(listener(t, nil), "circuit_breakers: {thresholds: [{max_connections: 1}]}"))
	r.Start()
	c := r.Cluster("c").Current()
	h := c.Sets()[0].Hosts[0]
	func() {
		defer func() {
			if v := recover(); v != guardtest.Canary {
				t.Errorf("recovered %v", v)
			}
		}()
		_, _ = c.Connect(wildContext{t.Context()}, h, DefaultPriority, transport.Options{})
	}()
	if v := h.InPool[DefaultPriority&1].Value(); v != 0 || !c.Breakers(DefaultPriority).Connections.CanTake() {
		t.Errorf("%d connections in the pool, a place in the breaker: %v", v, c.Breakers(DefaultPriority).Connections.CanTake())
	}
	r.check("cluster.c.", map[string]uint64{"upstream_cx_total": 1, "upstream_cx_active": 0, "upstream_cx_connect_fail": 1})
}

func TestConnectTimeoutIsCounted(t *testing.T) {
	a := listener(t, nil) // never shakes hands
	r := newRig(t, nil)
	r.add(strings.Replace(at(a, "transport_socket: {name: tls, typed_config: {'@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext}}"), "30s", "0.01s", 1))
	r.Start()
	c := r.Cluster("c").Current()
	_, err := c.Connect(context.Background(), c.Sets()[0].Hosts[0], DefaultPriority, transport.Options{})
	if err == nil || !strings.Contains(err.Error(), "not connected in 10ms") {
		t.Fatalf("dial: %v, want a timeout", err)
	}
	r.check("cluster.c.", map[string]uint64{"upstream_cx_connect_fail": 1, "upstream_cx_connect_timeout": 1, "upstream_cx_active": 0})
}

func TestBindErrorsAreCountedOnce(t *testing.T) {
	a := listener(t, nil)
	r := newRig(t, nil)
	r.add(at(a, "upstream_bind_config: {source_address: {address: '::1', port_value: 0}}"))
	r.Start()
	c := r.Cluster("c").Current()
	if _, err := c.Connect(context.Background(), c.Sets()[0].Hosts[0], DefaultPriority, transport.Options{}); err == nil {
		t.Fatal("a connection was made from an address of the other family")
	}
	r.check("cluster.c.", map[string]uint64{"bind_errors": 1, "upstream_cx_connect_fail": 1})
}

// TestLackOfThisMachineEjectsNoHost fails to connect once without a source address, once
// because the caller gives up, and once because the port is closed.
func TestLackOfThisMachineEjectsNoHost(t *testing.T) {
	a := closedport.TCP(t)
	const strict = "outlier_detection: {consecutive_5xx: 1, max_ejection_percent: 100}\n"
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for more, tt := range map[string]struct {
		ctx   context.Context
		local bool
	}{
		"upstream_bind_config: {source_address: {address: 192.0.2.1, port_value: 0}}": {context.Background(), true},
		"": {context.Background(), false}, "# given up": {gone, true},
	} {
		local := tt.local
		r := newRig(t, nil)
		r.add(at(a, strict+more))
		r.Start()
		c := r.Cluster("c").Current()
		h := c.Sets()[0].Hosts[0]
		_, err := c.Connect(tt.ctx, h, DefaultPriority, transport.Options{})
		var failed *transport.Error
		if !errors.As(err, &failed) || failed.Local != local || failed.Timeout {
			t.Errorf("%q: error %v, want one that is local: %t", more, err, local)
		}
		want := uint64(1)
		if local {
			want = 0
		}
		r.check("cluster.c.", map[string]uint64{
			"upstream_cx_total": 1, "upstream_cx_active": 0, "upstream_cx_connect_fail": 1, "upstream_cx_connect_timeout": 0,
			"outlier_detection.ejections_enforced_total": want,
		})
		if s := &h.Stats; s.CxConnectFail.Value() != 1 || s.CxActive.Value() != 0 {
			t.Errorf("%q: the host counts %v", more, s.All())
		}
		if ejected := h.Flags()&status.FailedOutlierCheck != 0; ejected == local {
			t.Errorf("%q: ejected %t", more, ejected)
		}
		if n := c.Breakers(DefaultPriority).Connections.Current(); n != 0 {
			t.Errorf("%q: %d connections are held", more, n)
		}
	}
}

// TestLackOfThisMachineFailsNoCheck checks a host once without a source address, and
// once with a closed port. The cluster becomes ready in both cases.
func TestLackOfThisMachineFailsNoCheck(t *testing.T) {
	a := closedport.TCP(t)
	const checked = `common_lb_config: {ignore_new_hosts_until_first_hc: true}
health_checks: [{timeout: 30s, interval: 600s, no_traffic_interval: 600s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]
`
	for more, want := range map[string]struct {
		flags  status.Flags
		result string
	}{
		"upstream_bind_config: {source_address: {address: 192.0.2.1, port_value: 0}}": {status.FailedActiveHC | status.PendingActiveHC, "could not run"},
		"": {status.FailedActiveHC, "no connection"},
	} {
		r := newRig(t, nil)
		r.add(at(a, checked+more))
		r.Start()
		select {
		case <-r.Ready():
		case <-time.After(30 * time.Second):
			t.Fatalf("%q: the cluster never gets ready", more)
		}
		r.Statuses(func(c *status.Cluster) bool {
			c.Hosts(func(h *status.Host) bool {
				if h.Health != want.flags || h.Check == nil || h.Check.Result != want.result {
					t.Errorf("%q: flags %s, last check %+v; want %s and %q", more, h.Health, h.Check, want.flags, want.result)
				}
				return true
			})
			return true
		})
		r.check("cluster.c.health_check.", map[string]uint64{"attempt": 1, "success": 0, "failure": 1, "network_failure": 1})
	}
}

// TestChecksAreNoTraffic checks hosts that accept and refuse connections. The checks
// must not change the statistics of traffic.
func TestChecksAreNoTraffic(t *testing.T) {
	bad := closedport.TCP(t)
	for a, passed := range map[*net.TCPAddr]bool{listener(t, nil): true, bad: false} {
		r := newRig(t, nil)
		r.add(at(a, "outlier_detection: {consecutive_5xx: 1, max_ejection_percent: 100}\n"+
			"health_checks: [{timeout: 30s, interval: 600s, no_traffic_interval: 600s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]"))
		r.Start()
		select {
		case <-r.Ready():
		case <-time.After(30 * time.Second):
			t.Fatal("not checked")
		}
		h := r.Cluster("c").Current().Sets()[0].Hosts[0]
		if healthy := h.Flags() == 0; healthy != passed {
			t.Errorf("flags %s", h.Flags())
		}
		for _, s := range h.Stats.All() {
			if s.Value != 0 {
				t.Errorf("the host counts %s %d", s.Name, s.Value)
			}
		}
		v := r.st.View()
		for c := v.ByName(store.Scalars); c.Next(); {
			if strings.Contains(c.Name(), ".upstream_") && c.Uint() != 0 {
				t.Errorf("%s is %d", c.Name(), c.Uint())
			}
		}
		v.Close()
		r.check("cluster.c.", map[string]uint64{"health_check.attempt": 1, "outlier_detection.ejections_enforced_total": 0})
	}
}

func TestClusterThatCannotConnectIsRefused(t *testing.T) {
	r := newRig(t, nil)
	_, err := r.AddOrUpdate(parse(t, static("c", 1, `transport_socket: {name: tls, typed_config: {'@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext,
  common_tls_context: {validation_context: {trusted_ca: {filename: /none/ca.pem}}}}}`)), "")
	want := `upstream: cluster "c": transport: cluster "c": transport_socket.typed_config.common_tls_context.validation_context.trusted_ca: "/none/ca.pem": no such file or directory`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	v := r.st.View()
	defer v.Close()
	if _, ok := v.Find("cluster.c.upstream_cx_total"); ok {
		t.Error("statistics of the refused cluster are left")
	}
}

func TestHealthChecksUseTheSocketOfTheHost(t *testing.T) {
	cert := selfSigned(t)
	a := listener(t, &tls.Config{Certificates: []tls.Certificate{cert.Certificate}})
	for ca, want := range map[*certtest.Pair]string{cert: "cluster.c.health_check.success", selfSigned(t): "cluster.c.health_check.network_failure"} {
		r := newRig(t, nil)
		r.add(at(a, `transport_socket: {name: tls, typed_config: {'@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext,
  common_tls_context: {validation_context: {trusted_ca: {inline_string: `+fmt.Sprintf("%q", ca.Chain)+`}}}}}
health_checks: [{timeout: 30s, interval: 60s, no_traffic_interval: 60s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]`))
		r.Start()
		waittest.Until(t, want+" rises", func() bool { return r.value(want) > 0 })
	}
}

// selfSigned returns a certificate for the host "one".
func selfSigned(t *testing.T) *certtest.Pair {
	return certtest.Issue(t, &x509.Certificate{DNSNames: []string{"one"}, IsCA: true}, nil)
}

func TestSocketFollowsMetadataOfHosts(t *testing.T) {
	r := newRig(t, nil)
	r.Start()
	r.add(byEDS("c", `transport_socket_matches:
- {name: secure, match: {mtls: true}, transport_socket: {name: tls, typed_config: {'@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext}}}`))
	c := r.source("c")
	labelled := func(s *host.Spec) {
		s.Metadata = config.Metadata{"proxy.transport_socket_match": {"mtls": true}}
	}
	c.UpdateHosts(0, hosts(spec(1), spec(2, labelled)))
	secure := func() (out []bool) {
		for _, h := range c.Sets()[0].Hosts {
			out = append(out, c.Dialer().Secure(h))
		}
		return out
	}
	if diff := cmp.Diff(secure(), []bool{false, true}); diff != "" {
		t.Errorf("TLS (-got +want):\n%s", diff)
	}
	c.UpdateHosts(0, hosts(spec(1, labelled), spec(2, labelled)))
	if diff := cmp.Diff(secure(), []bool{true, true}); diff != "" {
		t.Errorf("TLS after a change of metadata (-got +want):\n%s", diff)
	}
	r.check("cluster.c.", map[string]uint64{"secure.total_match_count": 2, "default.total_match_count": 1, "defaulttotal_match_count": 1})
}

func TestLocalityChoosesTheSocketOfSilentEndpoints(t *testing.T) {
	l := &config.LocalityEndpoints{Metadata: config.Metadata{"proxy.transport_socket_match": {"a": 1.0}, "other": {"b": 2.0}}}
	own := config.Metadata{"proxy.transport_socket_match": {"c": 3.0}}
	for _, tt := range []struct {
		endpoint config.Metadata
		want     config.Metadata
	}{
		{nil, config.Metadata{"proxy.transport_socket_match": {"a": 1.0}}},
		{config.Metadata{"proxy.lb": {"d": 4.0}}, config.Metadata{"proxy.lb": {"d": 4.0}, "proxy.transport_socket_match": {"a": 1.0}}},
		{own, own},
	} {
		before := len(tt.endpoint)
		if diff := cmp.Diff(EndpointSpec(l, &config.Endpoint{Metadata: tt.endpoint}).Metadata, tt.want); diff != "" {
			t.Errorf("metadata (-got +want):\n%s", diff)
		}
		if len(tt.endpoint) != before {
			t.Error("the configuration was changed")
		}
	}
}
