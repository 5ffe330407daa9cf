//lint:file-ignore SA1019 fields that the resource calls deprecated are still in use

package decode

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// members checks the static endpoints of the cluster.
func (k *clusterCheck) members() {
	a := k.c.GetLoadAssignment()
	n := 0
	for _, l := range a.GetEndpoints() {
		n += len(l.GetLbEndpoints())
	}
	switch {
	case k.isType(clusterv3.Cluster_LOGICAL_DNS):
		if n != 1 || len(a.GetEndpoints()) != 1 {
			k.conflict("load_assignment", "type LOGICAL_DNS takes exactly one endpoint, got %d", n)
		}
	case k.isType(clusterv3.Cluster_STATIC, clusterv3.Cluster_STRICT_DNS) && n == 0:
		k.warnf("load_assignment", "type %s without endpoints", k.typeName())
	}
	if k.isType(clusterv3.Cluster_EDS, clusterv3.Cluster_ORIGINAL_DST) {
		return // the endpoints are not used
	}
	e := endpointCheck{report: k.report, strict: k.d.opts.Strict, typeName: k.typeName()}
	switch {
	case k.isType(clusterv3.Cluster_STATIC):
		e.addresses = literal
	case k.isType(clusterv3.Cluster_STRICT_DNS, clusterv3.Cluster_LOGICAL_DNS):
		e.addresses = byName
	}
	e.at.field("load_assignment")
	e.assignment(a)
}

// checkAssignment validates a, which is in the v3 form, and compiles it if there are
// no errors.
func (d *Decoder) checkAssignment(a *endpointv3.ClusterLoadAssignment, l *upgraded, r *report) *config.Assignment {
	e := endpointCheck{report: r, strict: d.opts.Strict, typeName: "EDS", addresses: literal}
	e.assignment(a)
	if len(r.errs) > 0 {
		return nil
	}
	return (&compiler{product: d.opts.Product, form: l.form}).assignment(a)
}

// addressRule is the kind of addresses that endpoints can have.
type addressRule uint8

const (
	anyAddress addressRule = iota
	literal                // IP addresses and pipes
	byName                 // socket addresses
)

// maxPipePath is what fits in the address of a unix socket on Linux, in bytes.
const maxPipePath = 107

// endpointCheck checks a load assignment beyond the rules of its fields.
type endpointCheck struct {
	*report
	strict    bool
	typeName  string
	addresses addressRule
	at        trail
}

// fault adds an error about a field below the current path.
func (e *endpointCheck) fault(kind Kind, field, format string, args ...any) {
	if field == "" {
		e.errorf(kind, e.at.path(), format, args...)
		return
	}
	e.errorf(kind, e.at.path(field), format, args...)
}

func (e *endpointCheck) assignment(a *endpointv3.ClusterLoadAssignment) {
	hosts := make(map[uint32]uint64)      // sum of weights by priority
	localities := make(map[uint32]uint64) // the same for localities
	e.at.field("endpoints")
	for i, l := range a.GetEndpoints() {
		e.at.item(i)
		p := l.GetPriority()
		localities[p] += uint64(l.GetLoadBalancingWeight().GetValue())
		e.at.field("lb_endpoints")
		for j, h := range l.GetLbEndpoints() {
			hosts[p] += uint64(max(1, given(h.GetLoadBalancingWeight(), 1)))
			e.at.item(j)
			e.endpoint(h, a.GetNamedEndpoints())
			e.at.back()
		}
		e.at.back()
		if hosts[p] > maxWeights {
			e.fault(BadValue, "lb_endpoints", "sum of weights exceeds %d", uint64(maxWeights))
			hosts[p] = 0
		}
		if localities[p] > maxWeights {
			e.fault(BadValue, "load_balancing_weight", "sum of weights exceeds %d", uint64(maxWeights))
			localities[p] = 0
		}
		e.at.back()
	}
	e.at.back()
	drops := a.GetPolicy().GetDropOverloads()
	if len(drops) > 1 {
		e.fault(BadValue, "policy.drop_overloads", "%d entries exceeds 1", len(drops))
	}
	for i, drop := range drops {
		if v := fractionalPercent(drop.GetDropPercentage()); v > 100 {
			e.fault(BadValue, fmt.Sprintf("policy.drop_overloads[%d].drop_percentage", i), "%v%% exceeds 100%%", v)
		}
	}
}

func (e *endpointCheck) endpoint(h *endpointv3.LbEndpoint, named map[string]*endpointv3.Endpoint) {
	if w := given(h.GetLoadBalancingWeight(), 1); w > maxWeight {
		if e.strict {
			e.fault(BadValue, "load_balancing_weight", "%d exceeds %d", w, maxWeight)
		} else {
			e.warnf(e.at.path("load_balancing_weight"), "%d exceeds %d", w, maxWeight)
		}
	}
	host := hostOf(h, named)
	if host == nil {
		if name := h.GetEndpointName(); name != "" {
			e.fault(Conflict, "endpoint_name", "%s is not one of named_endpoints", quote(name, false))
		} else {
			e.fault(BadValue, "", "needs one of endpoint, endpoint_name")
		}
		return
	}
	e.at.field("endpoint")
	defer e.at.back()
	if host.GetAddress() == nil {
		e.fault(BadValue, "address", "must be set")
	}
	e.at.field("address")
	e.address(host.GetAddress())
	e.at.back()
	for i, a := range host.GetAdditionalAddresses() {
		e.at.field(fmt.Sprintf("additional_addresses[%d].address", i))
		e.address(a.GetAddress())
		e.at.back()
	}
	if port := host.GetHealthCheckConfig().GetPortValue(); port != 0 && host.GetAddress().GetSocketAddress() == nil {
		e.fault(Conflict, "health_check_config.port_value", "%d needs a socket address", port)
	}
	if a := host.GetHealthCheckConfig().GetAddress(); a != nil {
		if _, ok := address(a).AddrPort(); !ok && a.GetSocketAddress().GetAddress() != "" {
			e.fault(BadValue, "health_check_config.address.socket_address.address", "%s is not an IP address", quote(a.GetSocketAddress().GetAddress(), false))
		}
		if a.GetSocketAddress().GetNamedPort() != "" {
			e.fault(Conflict, "health_check_config.address.socket_address.named_port", "not supported; set port_value")
		}
		e.pipe("health_check_config.address.pipe.path", a.GetPipe().GetPath())
	}
}

// pipe checks the length of the path of a unix socket.
func (e *endpointCheck) pipe(field, path string) {
	if len(path) > maxPipePath {
		e.fault(BadValue, field, "%d bytes exceeds %d", len(path), maxPipePath)
	}
}

func (e *endpointCheck) address(m *corev3.Address) {
	if e.addresses == anyAddress {
		return
	}
	a := address(m)
	if a.NamedPort != "" {
		e.fault(Conflict, "socket_address.named_port", "not supported for type %s; set port_value", e.typeName)
	}
	if a.Resolver != "" {
		e.fault(Conflict, "socket_address.resolver_name", "not supported for type %s", e.typeName)
	}
	switch e.addresses {
	case literal:
		if a.Kind == config.SocketAddress && a.Host != "" && !a.IP.IsValid() {
			e.fault(Conflict, "socket_address.address", "%s is not an IP address; use type STRICT_DNS or LOGICAL_DNS for host names", quote(a.Host, false))
		}
		e.pipe("pipe.path", a.Path)
	case byName:
		if a.Kind != config.SocketAddress && a.Kind != config.NoAddress {
			e.fault(Conflict, "", "type %s needs a socket address", e.typeName)
		}
	}
}

func (k *clusterCheck) health() {
	for i, h := range k.c.GetHealthChecks() {
		path := fmt.Sprintf("health_checks[%d]", i)
		switch {
		case h.GetHttpHealthCheck() != nil:
			k.httpCheck(h.GetHttpHealthCheck(), path+".http_health_check")
		case h.GetTcpHealthCheck() != nil:
			t := h.GetTcpHealthCheck()
			k.payload(t.GetSend(), path+".tcp_health_check.send")
			for j, p := range t.GetReceive() {
				k.payload(p, fmt.Sprintf("%s.tcp_health_check.receive[%d]", path, j))
			}
		case h.GetGrpcHealthCheck() != nil:
			if p := protocolOf(k.c); p.protocol == config.HTTP1 || p.protocol == config.HTTP3 || p.http2 == nil {
				k.conflict(path+".grpc_health_check", "needs http2_protocol_options")
			}
		case h.GetCustomHealthCheck().GetName() != "":
			name := h.GetCustomHealthCheck().GetName()
			if !slices.Contains(k.d.opts.HealthCheckers, name) {
				k.errorf(BadValue, path+".custom_health_check.name", "%s is not a known health checker; known: %s", quote(name, false), nameList(k.d.opts.HealthCheckers))
			}
		}
		if port := h.GetAltPort().GetValue(); port > 65535 {
			k.errorf(BadValue, path+".alt_port", "%d exceeds 65535", port)
		}
	}
}

func (k *clusterCheck) httpCheck(h *corev3.HealthCheck_HttpHealthCheck, path string) {
	k.payload(h.GetSend(), path+".send")
	for i, p := range h.GetReceive() {
		k.payload(p, fmt.Sprintf("%s.receive[%d]", path, i))
	}
	k.statuses(h.GetExpectedStatuses(), path+".expected_statuses")
	k.statuses(h.GetRetriableStatuses(), path+".retriable_statuses")
	k.matcher(h.GetServiceNameMatcher(), path+".service_name_matcher")
}

func (k *clusterCheck) statuses(list []*typev3.Int64Range, path string) {
	for i, r := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		if r.GetStart() >= r.GetEnd() {
			k.errorf(BadValue, at, "start %d must be less than end %d", r.GetStart(), r.GetEnd())
		}
		if r.GetStart() < 100 {
			k.errorf(BadValue, at+".start", "%d is below 100", r.GetStart())
		}
		if r.GetEnd() > 600 {
			k.errorf(BadValue, at+".end", "%d exceeds 600", r.GetEnd())
		}
	}
}

func (k *clusterCheck) payload(p *corev3.HealthCheck_Payload, path string) {
	if text := p.GetText(); text != "" {
		if _, err := hex.DecodeString(text); err != nil {
			k.errorf(BadValue, path+".text", "%s is not hexadecimal", quote(text, false))
		}
	}
}

// matcher checks that a regular expression is valid and within its limits.
func (k *clusterCheck) matcher(m *matcherv3.StringMatcher, path string) {
	re := m.GetSafeRegex().GetRegex()
	if re == "" {
		return
	}
	at := path + ".safe_regex.regex"
	if _, err := regexp.Compile(re); err != nil {
		k.errorf(BadValue, at, "%s is not a regular expression", quote(re, false))
		return
	}
	if _, err := match.Compile(re); err == nil || k.said(at) { // the v2 form has its own limit
		return
	}
	if len(re) > match.MaxPatternBytes {
		k.errorf(BadValue, at, "%s is longer than %d bytes", quote(re, false), match.MaxPatternBytes)
		return
	}
	k.errorf(BadValue, at, "%s compiles to more than %d instructions", quote(re, false), match.MaxProgramLength)
}

func (k *clusterCheck) sans(path string, v *tlsv3.CertificateValidationContext) {
	for i, m := range v.GetMatchTypedSubjectAltNames() {
		k.matcher(m.GetMatcher(), fmt.Sprintf("%s.match_typed_subject_alt_names[%d].matcher", path, i))
	}
	for i, m := range v.GetMatchSubjectAltNames() {
		k.matcher(m, fmt.Sprintf("%s.match_subject_alt_names[%d]", path, i))
	}
}

// CheckNames returns an [*Errors] with an error for each cluster whose name is
// already used by an earlier cluster, or nil if names are unique.
func CheckNames(clusters []*ParsedCluster) error {
	seen := make(map[string]bool, len(clusters))
	var out report
	for _, c := range clusters {
		name := c.Cluster.Name
		if seen[name] {
			out.errs = append(out.errs, &Error{
				Position: c.namePosition, Kind: Conflict, Resource: clusterKind().label(name, 0),
				Field: "name", Message: fmt.Sprintf("%s is already used by another cluster", quote(name, false)),
			})
		}
		seen[name] = true
	}
	return out.err()
}

// CheckLocalCluster checks that the local cluster is a static one whose endpoints all
// have priority 0.
func CheckLocalCluster(name string, static []*ParsedCluster) error {
	if name == "" {
		return nil
	}
	i := slices.IndexFunc(static, func(c *ParsedCluster) bool { return c.Cluster.Name == name })
	if i < 0 {
		return &Errors{List: []*Error{{
			Kind: Conflict, Field: "cluster_manager.local_cluster_name",
			Message: quote(name, false) + " is not a static cluster",
		}}}
	}
	return CheckLocalAssignment(name, static[i].Cluster.Assignment)
}

// CheckLocalAssignment checks that all endpoints of the local cluster have priority
// 0.
func CheckLocalAssignment(name string, a *config.Assignment) error {
	if a == nil {
		return nil
	}
	var out report
	for i, l := range a.Localities {
		if l.Priority > 0 && len(l.Endpoints) > 0 {
			out.errs = append(out.errs, &Error{
				Kind: Conflict, Resource: clusterKind().label(name, 0),
				Field: fmt.Sprintf("load_assignment.endpoints[%d].priority", i), Message: "must be 0 in the local cluster",
			})
		}
	}
	return out.err()
}
