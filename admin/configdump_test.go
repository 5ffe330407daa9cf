package admin

import (
	"encoding/json"
	"iter"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	xdsv3 "github.com/cncf/xds/go/xds/type/v3"
	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/statsd-admin/statsd-admin/internal/wire"
	"github.com/statsd-admin/statsd-admin/server/configdump"
)

// configRows are requests for the configuration; see goldenRows.
var configRows = []goldenRow{
	{"config", "GET", "/config_dump", "", nil},
	{"config-none", "GET", "/config_dump?include_eds", "", func(w *world) { w.config = nil }},
	{"config-eds", "GET", "/config_dump?include_eds=false&mask=static_endpoint_configs,dynamic_endpoint_configs", "", nil},
	{"config-mask", "GET", "/config_dump?mask=bootstrap.node.id,bootstrap.admin", "", nil},
	{"config-mask-lists", "GET", "/config_dump?mask=version_info", "", nil},
	{"config-mask-list", "GET", "/config_dump?mask=static_clusters", "", nil},
	{"config-mask-of-two-sections", "GET", "/config_dump?mask=bootstrap.node,static_clusters", "", nil},
	{"config-mask-below-list", "GET", "/config_dump?mask=static_clusters.cluster", "", nil},
	{"config-mask-unknown", "GET", "/config_dump?mask=no%0Asuch<field>", "", nil},
	{"config-mask-empty", "GET", "/config_dump?mask=,&resource=static_listeners", "", nil},
	{"config-resource", "GET", "/config_dump?resource=dynamic_active_clusters", "", nil},
	{"config-resource-empty", "GET", "/config_dump?resource=dynamic_active_secrets", "", nil},
	{"config-resource-eds", "GET", "/config_dump?resource=static_endpoint_configs&include_eds", "", nil},
	{"config-resource-without-eds", "GET", "/config_dump?resource=static_endpoint_configs", "", nil},
	{"config-resource-not-repeated", "GET", "/config_dump?resource=version_info", "", nil},
	{"config-resource-unknown", "GET", "/config_dump?resource=no.such", "", nil},
	{"config-resource-mask", "GET", "/config_dump?resource=static_clusters&mask=cluster.name,cluster.connect_timeout", "", nil},
	{"config-resource-mask-outer", "GET", "/config_dump?resource=dynamic_active_clusters&mask=cluster.name,last_updated", "", nil},
	{"config-resource-mask-whole", "GET", "/config_dump?resource=static_clusters&mask=cluster", "", nil},
	{"config-resource-mask-unknown", "GET", "/config_dump?resource=static_clusters&mask=cluster.name,cluster.\"x\"", "", nil},
	{"config-resource-mask-two-packed", "GET", "/config_dump?resource=dynamic_listeners&mask=active_state.listener.name", "", nil},
	{"config-resource-mask-unknown-type", "GET", "/config_dump?resource=static_secrets&mask=secret.name", "", nil},
	{"config-resource-mask-of-nothing", "GET", "/config_dump?resource=dynamic_active_secrets&mask=x", "", nil},
	{"config-name", "GET", "/config_dump?name_regex=.*_a", "", nil},
	{"config-name-eds", "GET", "/config_dump?include_eds&mask=static_endpoint_configs,dynamic_endpoint_configs&name_regex=svc", "", nil},
	{"config-name-resource", "GET", "/config_dump?name_regex=backend_(a|x)&resource=static_clusters&mask=cluster.name", "", nil},
	{"config-name-is-whole", "GET", "/config_dump?name_regex=backend&resource=static_clusters", "", nil},
	{"config-name-invalid", "GET", "/config_dump?name_regex=(&resource=no-such", "", nil},
	{"config-name-quoted", "GET", `/config_dump?name_regex=backend_\Qa&resource=static_clusters&mask=cluster.name`, "", nil},
	{"config-name-brackets", "GET", "/config_dump?name_regex=a)|(b", "", nil},
	{"config-name-long", "GET", "/config_dump?name_regex=" + strings.Repeat("a", 1025), "", nil},
	{"config-empty-values", "GET", "/config_dump?name_regex=&resource=&mask=version_info", "", nil},
}

func (w *world) configDump(endpoints bool) []configdump.Section {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.config), func(s configdump.Section) bool { return s.Key == "endpoint" && !endpoints })
}

func packed(m proto.Message) *anypb.Any {
	a, err := anypb.New(m)
	if err != nil {
		panic(err)
	}
	return a
}

// canary is a secret that must not be shown.
const canary = "kanarienvogel"

func inline(s string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: s}}
}

// tlsSocket is a socket with two secrets: one by definition and one by name.
func tlsSocket() *corev3.TransportSocket {
	return &corev3.TransportSocket{Name: "tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: packed(&tlsv3.UpstreamTlsContext{
		Sni: "a.example.net",
		CommonTlsContext: &tlsv3.CommonTlsContext{TlsCertificates: []*tlsv3.TlsCertificate{{
			CertificateChain: inline("-----BEGIN CERTIFICATE-----"), PrivateKey: inline(canary), Password: inline(canary)}}},
	})}}
}

func freeForm(fields map[string]any) *structpb.Struct {
	s, err := structpb.NewStruct(fields)
	if err != nil {
		panic(err)
	}
	return s
}

func usualConfig() []configdump.Section {
	at := timestamppb.New(testTime().Truncate(time.Second).Add(89 * time.Millisecond))
	cluster := func(name string) *clusterv3.Cluster {
		return &clusterv3.Cluster{Name: name, ConnectTimeout: durationpb.New(250 * time.Millisecond), TransportSocket: tlsSocket(),
			ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STRICT_DNS},
			Metadata:             &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"net.example": freeForm(map[string]any{"api_key": canary, "tier": 1.0})}}}
	}
	endpoints := func(name string) *adminv3.EndpointsConfigDump_StaticEndpointConfig {
		return &adminv3.EndpointsConfigDump_StaticEndpointConfig{EndpointConfig: packed(&endpointv3.ClusterLoadAssignment{ClusterName: name})}
	}
	bearer := []*corev3.HeaderValue{{Key: "Authorization", Value: "Bearer " + canary}, {Key: "x-team", Value: "edge"}}
	own := freeForm(map[string]any{"mode": "full", "token": canary})
	// Unsorted, with some lists as sequences.
	return []configdump.Section{
		{Key: "settings", Message: own},
		{Key: "nothing"},
		{Key: "routes", Message: &adminv3.RoutesConfigDump{}},
		{Key: "route_scopes", Message: &adminv3.ScopedRoutesConfigDump{}},
		{Key: "listeners", Message: &adminv3.ListenersConfigDump{VersionInfo: "l1",
			StaticListeners: []*adminv3.ListenersConfigDump_StaticListener{{Listener: packed(&listenerv3.Listener{Name: "in_a"}), LastUpdated: at}},
			DynamicListeners: []*adminv3.ListenersConfigDump_DynamicListener{{Name: "out", ActiveState: &adminv3.ListenersConfigDump_DynamicListenerState{
				VersionInfo: "l1", Listener: packed(&listenerv3.Listener{Name: "out"})}}}}},
		{Key: "bootstrap", Message: &adminv3.BootstrapConfigDump{LastUpdated: at, Bootstrap: &bootstrapv3.Bootstrap{
			Node:            &corev3.Node{Id: "n-17", Cluster: "edge", Metadata: freeForm(map[string]any{"admin_token": canary, "team": "<edge>"})},
			Admin:           &bootstrapv3.Admin{ProfilePath: "/p"},
			StaticResources: &bootstrapv3.Bootstrap_StaticResources{Clusters: []*clusterv3.Cluster{cluster("backend_a")}},
			DynamicResources: &bootstrapv3.Bootstrap_DynamicResources{AdsConfig: &corev3.ApiConfigSource{
				ApiType: corev3.ApiConfigSource_GRPC, GrpcServices: []*corev3.GrpcService{{InitialMetadata: bearer}}}}}}},
		{Key: "clusters", Message: &adminv3.ClustersConfigDump{VersionInfo: "v7"}, Lists: map[string]iter.Seq2[string, proto.Message]{
			"static_clusters": func(yield func(string, proto.Message) bool) {
				for _, name := range []string{"backend_a", "backend_b"} {
					if !yield(name, &adminv3.ClustersConfigDump_StaticCluster{Cluster: packed(cluster(name)), LastUpdated: at}) {
						return
					}
				}
			},
			"dynamic_active_clusters": func(yield func(string, proto.Message) bool) {
				yield("many", &adminv3.ClustersConfigDump_DynamicCluster{VersionInfo: "v7", Cluster: packed(cluster("many")), LastUpdated: at,
					ErrorState: &adminv3.UpdateFailureState{LastUpdateAttempt: at, Details: `cluster "many": name: "" is empty`, VersionInfo: "v8",
						FailedConfiguration: packed(cluster(""))}})
			},
			"dynamic_warming_clusters": func(func(string, proto.Message) bool) {},
		}},
		{Key: "secrets", Message: &adminv3.SecretsConfigDump{StaticSecrets: []*adminv3.SecretsConfigDump_StaticSecret{
			{Name: "cert_a", LastUpdated: at, Secret: packed(&tlsv3.Secret{Name: "cert_a", Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
				CertificateChain: inline("/run/cert.pem"), PrivateKey: inline(canary)}}})},
			{Name: "odd", Secret: &anypb.Any{TypeUrl: "type.googleapis.com/no.such.Type", Value: []byte("-----BEGIN PRIVATE KEY-----\n" + canary)}},
			{Name: "typed", Secret: packed(&xdsv3.TypedStruct{TypeUrl: "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.GenericSecret",
				Value: freeForm(map[string]any{"secret": map[string]any{"inline_string": canary}})})},
		}}},
		{Key: "endpoint", Message: &adminv3.EndpointsConfigDump{
			StaticEndpointConfigs:  []*adminv3.EndpointsConfigDump_StaticEndpointConfig{endpoints("backend_a"), endpoints("backend_b")},
			DynamicEndpointConfigs: []*adminv3.EndpointsConfigDump_DynamicEndpointConfig{{EndpointConfig: endpoints("svc").EndpointConfig}}}},
	}
}

// configQueries returns all combinations of parameter values.
func configQueries() []string {
	var out []string
	for _, mask := range []string{"", "bootstrap", "bootstrap.node", "static_clusters", "cluster", "cluster.transport_socket", "cluster.metadata,last_updated",
		"secret", "secret.tls_certificate", "secret.tls_certificate.private_key", "error_state", "version_info", "endpoint_config.cluster_name", "nothing"} {
		for _, resource := range []string{"", "static_clusters", "dynamic_active_clusters", "static_secrets", "static_listeners", "static_endpoint_configs", "bootstrap", "nothing"} {
			for _, name := range []string{"", ".*", "backend_a", "("} {
				for _, eds := range []string{"", "&include_eds"} {
					out = append(out, "/config_dump?mask="+mask+"&resource="+resource+"&name_regex="+name+eds)
				}
			}
		}
	}
	return out
}

// TestConfigDumpShowsNoSecret sends all combinations of parameters. Each response is
// the message or a known error, and never contains a secret.
func TestConfigDumpShowsNoSecret(t *testing.T) {
	world := newWorld()
	s := newServer(t, Config{Sources: world.sources()})
	before := proto.Clone(world.config[5].Message)
	bodies := 0
	for _, target := range configQueries() {
		reply := s.Request("GET", target, nil)
		checkConfigReply(t, target, reply)
		if reply.Status == 200 && len(reply.Body) > len("{}\n") {
			bodies++
		}
	}
	if bodies < 90 {
		t.Errorf("%d answers with something in them, want more", bodies)
	}
	if !proto.Equal(before, world.config[5].Message) {
		t.Error("the original changed")
	}
}

// checkConfigReply checks a /config_dump response.
func checkConfigReply(t *testing.T, target string, reply *Reply) {
	t.Helper()
	body := string(reply.Body)
	if strings.Contains(body, canary) || strings.Contains(body, "a2FuYXJpZW52b2dlbA") {
		t.Errorf("%s shows a secret: %s", target, body)
	}
	switch reply.Status {
	case 200:
		if got := reply.header("content-type"); got != "application/json" {
			t.Errorf("%s: content type %q", target, got)
		}
		if strings.Contains(body, "no.such.Type") { // protojson knows no such message
			if !json.Valid(reply.Body) {
				t.Errorf("%s: not valid: %s", target, body)
			}
			return
		}
		checkMessage(t, target, reply.Body, &adminv3.ConfigDump{}, wire.OmitDefaults)
	case 400, 404:
		if got := reply.header("content-type"); got != "text/plain" {
			t.Errorf("%s: content type %q", target, got)
		}
		for _, known := range []string{"FieldMask ", " is not a repeated field. Use ?mask=", " not found in config dump", "INVALID_ARGUMENT: Error while parsing name_regex from "} {
			if strings.Contains(body, known) {
				return
			}
		}
		t.Errorf("%s: status %d with %q", target, reply.Status, body)
	default:
		t.Errorf("%s: status %d with %q", target, reply.Status, body)
	}
}

func (r *Reply) header(name string) string {
	for _, f := range r.Header {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// TestNoConfigDump checks that a server without a source answers as one whose sections
// are all absent.
func TestNoConfigDump(t *testing.T) {
	none := newServer(t, Config{})
	empty := newServer(t, Config{Sources: Sources{ConfigDump: configdump.Source(func(bool) []configdump.Section { return nil })}})
	for query, status := range map[string]int{
		"": 200, "?include_eds": 200, "?mask=,": 200, "?mask=bootstrap": 400, "?resource=static_clusters": 404, "?resource=a&mask=b": 404, "?name_regex=(": 400,
	} {
		got, want := none.Request("GET", "/config_dump"+query, nil), empty.Request("GET", "/config_dump"+query, nil)
		if got.Status != status || want.Status != status || string(got.Body) != string(want.Body) || got.header("content-type") != want.header("content-type") {
			t.Errorf("%s: without a source %d %q, without sections %d %q", query, got.Status, got.Body, want.Status, want.Body)
		}
	}
}

// TestShowUntyped checks that values that only look secret are shown on request, and
// values defined as secret never are.
func TestShowUntyped(t *testing.T) {
	s := newServer(t, Config{Sources: newWorld().sources(), ShowUntyped: true})
	body := string(s.Request("GET", "/config_dump?mask=bootstrap", nil).Body)
	for _, want := range []string{`"admin_token": "` + canary, `"api_key": "` + canary, `"Bearer ` + canary} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is not shown: %s", want, body)
		}
	}
	for _, bad := range []string{`"inline_string": "` + canary} {
		if strings.Contains(body, bad) {
			t.Errorf("%s is shown: %s", bad, body)
		}
	}
}

// TestServerInfoShowsNoSecret checks the options and the node.
func TestServerInfoShowsNoSecret(t *testing.T) {
	src := newWorld().sources()
	src.Info = func() ServerInfo {
		return ServerInfo{CommandLine: CommandLine{ConfigYAML: "statsd: {api_key: " + canary + "}"},
			Node: &Node{Metadata: map[string]any{"tokens": []any{canary}, "team": "edge"}}}
	}
	body := string(newServer(t, Config{Sources: src}).Request("GET", "/server_info", nil).Body)
	if strings.Contains(body, canary) || !strings.Contains(body, `"config_yaml": "[redacted]"`) || !strings.Contains(body, `"team": "edge"`) {
		t.Errorf("got %s", body)
	}
}

// TestConfigBudget uses a clock that advances for each name.
func TestConfigBudget(t *testing.T) {
	s := newServer(t, Config{Sources: newWorld().sources()})
	now := testTime()
	s.filters.limits.Now = func() time.Time { now = now.Add(time.Second); return now }
	for target, status := range map[string]int{
		"/config_dump?name_regex=.*":                                            400,
		"/config_dump?name_regex=.*&resource=static_clusters":                   200, // two names
		"/config_dump?name_regex=.*&resource=static_clusters&mask=cluster.name": 400, // looked at twice
		"/config_dump": 200,
	} {
		reply := s.Request("GET", target, nil)
		if reply.Status != status || status == 400 && !strings.HasPrefix(string(reply.Body), "name_regex too expensive\nadmin.limits.regex_budget allows ") {
			t.Errorf("%s: status %d, %q", target, reply.Status, reply.Body)
		}
	}
}

// TestExpressionsWithoutLimits disables the limits of expressions.
func TestExpressionsWithoutLimits(t *testing.T) {
	long := strings.Repeat("(backend_a)?", 1000)
	for _, target := range []string{"/stats?filter=" + long, "/config_dump?resource=static_clusters&name_regex=" + long} {
		limits := Limits{TargetBytes: -1, QueryValue: -1}
		if reply := newServer(t, Config{Sources: newWorld().sources(), Limits: limits}).Request("GET", target, nil); reply.Status != 400 {
			t.Errorf("%.40s with limits: status %d", target, reply.Status)
		}
		limits.RegexBytes, limits.RegexProgram, limits.RegexBudget = -1, -1, -1
		if reply := newServer(t, Config{Sources: newWorld().sources(), Limits: limits, Now: later()}).Request("GET", target, nil); reply.Status != 200 {
			t.Errorf("%.40s without limits: status %d, %.200s", target, reply.Status, reply.Body)
		}
	}
}

// TestConfigIsStreamed checks that elements are produced while the response is sent,
// and no more once the client stops reading.
func TestConfigIsStreamed(t *testing.T) {
	made := 0
	big := strings.Repeat("x", 10_000)
	section := configdump.Section{Key: "clusters", Message: &adminv3.ClustersConfigDump{}, Lists: map[string]iter.Seq2[string, proto.Message]{
		"static_clusters": func(yield func(string, proto.Message) bool) {
			for range 1000 {
				made++
				if !yield("c", &adminv3.ClustersConfigDump_StaticCluster{Cluster: packed(&clusterv3.Cluster{Name: big})}) {
					return
				}
			}
		}}}
	s := newServer(t, Config{Sources: Sources{ConfigDump: configdump.Source(func(bool) []configdump.Section { return []configdump.Section{section} })}})
	for _, gone := range []bool{false, true} {
		for _, query := range []Query{nil, {{"resource", "static_clusters"}}} {
			made = 0
			sink := discard{gone: gone}
			r := &Request{query: query}
			w := s.response(&sink, r)
			err := w.finish(s.configDump(w, r))
			switch {
			case gone && (err == nil || made > 50):
				t.Errorf("%v: %d elements for a client that is gone, %v", query, made, err)
			case !gone && (err != nil || made != 1000 || sink.n < 10_000_000 || sink.longest > 2*responseBuffer):
				t.Errorf("%v: %d elements, %d bytes in chunks of up to %d, %v", query, made, sink.n, sink.longest, err)
			}
		}
	}
}

// FuzzConfigQuery requests the configuration with arbitrary parameters.
func FuzzConfigQuery(f *testing.F) {
	for _, row := range configRows {
		_, query, _ := strings.Cut(row.target, "?")
		f.Add(query)
	}
	s := newServer(f, Config{Sources: newWorld().sources()})
	f.Fuzz(func(t *testing.T, query string) {
		if len(query) > 3000 || strings.ContainsFunc(query, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
			query = url.PathEscape(query[:min(len(query), 800)])
		}
		reply := s.Request("GET", "/config_dump?"+query, nil)
		if reply.Status == 400 && reply.header("content-type") == typeText {
			return // refused before the handler
		}
		checkConfigReply(t, query, reply)
	})
}
