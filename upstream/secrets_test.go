package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

// agent delivers secrets when a test wants it to.
type agent struct {
	user    transport.SecretUser
	stopped bool
}

func (a *agent) Check(*config.SecretSource) error { return nil }

func (a *agent) Follow(_ *config.SecretSource, _ config.SecretKind, u transport.SecretUser) func() {
	a.user = u
	return func() { a.stopped = true }
}

// secureWith are the lines of a cluster that trusts what a secret says.
func secureWith(source string) string {
	return `transport_socket: {name: tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, common_tls_context: ` +
		`{validation_context_sds_secret_config: {name: ca, sds_config: ` + source + `}}}}`
}

const checked = "\nhealth_checks: [{timeout: 1s, interval: 60s, healthy_threshold: 1, unhealthy_threshold: 1, tcp_health_check: {}}]\n"

func newAgentRig(t *testing.T) (*rig, *agent) {
	a := new(agent)
	return newRig(t, func(c *Config) { c.Transport = transport.New(transport.Config{Secrets: a}) }), a
}

// TestHostsAreLookedForOnceSecretsAreThere lets a cluster wait, so that no host fails
// its first check for the lack of a secret.
func TestHostsAreLookedForOnceSecretsAreThere(t *testing.T) {
	address := listener(t, nil)
	r, a := newAgentRig(t)
	if err := r.AddStatic(parse(t, at(address, secureWith("{path_config_source: {path: /x}}")+checked))); err != nil {
		t.Fatal(err)
	}
	r.Start()
	c := r.Cluster("c").Current()
	if got := fmt.Sprint(c.AwaitedSecrets(), c.Discovered()) + shown(c); got != "[ca] false" {
		t.Errorf("before the secret: %q", got)
	}
	r.check("cluster.c.", map[string]uint64{"warming_state": 1, "health_check.attempt": 0})
	a.user.Answered() // as if it did not come in time
	<-r.Ready()
	if got := fmt.Sprint(c.AwaitedSecrets(), c.Discovered()); got != "[] true" {
		t.Errorf("after it: %q", got)
	}
	r.check("cluster.c.", map[string]uint64{"warming_state": 0, "health_check.attempt": 1, "upstream_cx_total": 0})

	// Connections fail here, not at the host.
	_, err := c.Connect(context.Background(), c.Sets()[0].Hosts[0], DefaultPriority, transport.Options{})
	var failed *transport.Error
	if !errors.As(err, &failed) || !failed.Local || !strings.Contains(err.Error(), `secret "ca" has not been delivered yet`) {
		t.Errorf("error %v", err)
	}
	r.Close()
	if !a.stopped {
		t.Error("the secret is still followed")
	}
}

// TestSecretsFromControlPlanesComeAfterTheirClusters starts clusters whose secrets
// come from a file first, then those whose secrets come over another cluster.
func TestSecretsFromControlPlanesComeAfterTheirClusters(t *testing.T) {
	for source, primary := range map[string]bool{
		"{path_config_source: {path: /x}}": true, "{ads: {}}": false,
		"{api_config_source: {api_type: GRPC, grpc_services: [{envoy_grpc: {cluster_name: agent}}]}}": false,
	} {
		r, a := newAgentRig(t)
		for _, text := range []string{at(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, secureWith(source)), byDNS("first")} {
			if err := r.AddStatic(parse(t, text)); err != nil {
				t.Fatal(err)
			}
		}
		r.Start()
		if (a.user != nil) != primary {
			t.Errorf("%s: asked for at once: %v, want %v", source, a.user != nil, primary)
		}
		r.source("first").DiscoveryDone()
		if a.user == nil || isClosed(r.PrimaryReady()) == primary {
			t.Errorf("%s: after the first cluster: asked for %v, primary clusters ready %v", source, a.user != nil, isClosed(r.PrimaryReady()))
		}
		a.user.Answered()
		<-r.Ready()
	}
}

// TestRemovedWhileItWaits removes a cluster that waits for a secret, which comes later.
func TestRemovedWhileItWaits(t *testing.T) {
	r, a := newAgentRig(t)
	r.Start()
	r.add(at(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, secureWith("{ads: {}}")))
	if !r.Remove("c") || !a.stopped {
		t.Error("still there, or followed")
	}
	a.user.Answered()
	if got := strings.Join(clusterNames(r.Unready()), " "); got != "" {
		t.Errorf("unready: %s", got)
	}
	if strings.Contains(r.events(), "ready") {
		t.Error("a cluster became ready after its end")
	}
}
