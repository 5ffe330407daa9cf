package tags

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// extraction is what a name has to be split into. Tag names of the default
// rules are written without the product.
type extraction struct {
	name, base string
	tags       string // "tag=value tag=value" in order
}

// defaultExtractions has an example for every default rule, the rule named in
// front, and the corner cases.
var defaultExtractions = []extraction{
	{"cluster.checkout.upstream_rq_404", "cluster.upstream_rq", "response_code=404 cluster_name=checkout"},
	{"http.edge_in.downstream_rq_2xx", "http.downstream_rq_xx", "response_code_class=2 http_conn_manager_prefix=edge_in"},
	{"http.edge_in.dynamodb.table.users.capacity.GetItem.__partition_id=0f3a9zz", "http.dynamodb.table.capacity",
		"dynamo_partition_id=0f3a9zz dynamo_operation=GetItem dynamo_table=users http_conn_manager_prefix=edge_in"},
	{"http.edge_in.dynamodb.operation.PutItem.upstream_rq_time", "http.dynamodb.operation.upstream_rq_time",
		"dynamo_operation=PutItem http_conn_manager_prefix=edge_in"},
	{"http.edge_in.dynamodb.error.users.Throttled", "http.dynamodb.error.Throttled", "dynamo_table=users http_conn_manager_prefix=edge_in"},
	{"listener.0.0.0.0_8443.ssl.ciphers.AES128-SHA", "listener.ssl.ciphers", "ssl_cipher=AES128-SHA listener_address=0.0.0.0_8443"},
	{"cluster.checkout.ssl.curves.X25519", "cluster.ssl.curves", "ssl_curve=X25519 cluster_name=checkout"},
	{"listener.pub.ssl.sigalgs.rsa_pss_rsae_sha256", "listener.ssl.sigalgs", "ssl_sigalg=rsa_pss_rsae_sha256 listener_address=pub"},
	{"listener.pub.ssl.versions.TLSv1.3", "listener.ssl.versions", "ssl_version=TLSv1.3 listener_address=pub"},
	{"cluster.checkout.ssl.ciphers.TLS_AES_128_GCM_SHA256", "cluster.ssl.ciphers", "cipher_suite=TLS_AES_128_GCM_SHA256 cluster_name=checkout"},
	{"listener.0.0.0.0_8443.ssl.certificate.edge.expiration_unix_time_seconds", "listener.ssl.certificate.expiration_unix_time_seconds", "tls_certificate=edge listener_address=0.0.0.0_8443"},
	{"cluster.checkout.ssl.certificate.edge.expiration_unix_time_seconds", "cluster.ssl.certificate.expiration_unix_time_seconds", "tls_certificate=edge cluster_name=checkout"},
	{"listener.pub.http.edge_in.downstream_rq_3xx", "listener.http.downstream_rq_xx",
		"response_code_class=3 http_conn_manager_prefix=edge_in listener_address=pub"},
	{"server.worker_3.watchdog_miss", "server.worker_watchdog_miss", "worker_id=3"},
	{"listener_manager.worker_11.dispatcher.loop_duration_us", "listener_manager.worker_dispatcher.loop_duration_us", "worker_id=11"},
	{"listener.127.0.0.1_80.worker_2.downstream_cx_total", "listener.worker_downstream_cx_total", "worker_id=2 listener_address=127.0.0.1_80"},
	{"listener.pub.worker_2.downstream_cx_total", "listener.worker_downstream_cx_total", "worker_id=2 listener_address=pub"},
	{"listener.[2001_db8__17]_443.downstream_cx_total", "listener.downstream_cx_total", "listener_address=[2001_db8__17]_443"},
	{"http.edge_in.rds.a.b-c.update_attempt", "http.rds.update_attempt", "rds_route_config=a.b-c http_conn_manager_prefix=edge_in"},
	{"http.edge_in.rds.a/b.c.update_attempt", "http.rds.update_attempt", "rds_route_config=a/b.c http_conn_manager_prefix=edge_in"},
	{"mongo.orders.collection.items.callsite.listItems.query.total", "mongo.collection.callsite.query.total",
		"mongo_callsite=listItems mongo_collection=items mongo_prefix=orders"},
	{"mongo.orders.collection.items.query.total", "mongo.collection.query.total", "mongo_collection=items mongo_prefix=orders"},
	{"mongo.orders.cmd.find.total", "mongo.cmd.total", "mongo_cmd=find mongo_prefix=orders"},
	{"cluster.checkout.grpc.CartSvc.Add.success", "cluster.grpc.success",
		"grpc_bridge_method=Add grpc_bridge_service=CartSvc cluster_name=checkout"},
	{"http.edge_in.user_agent.android.downstream_cx_total", "http.user_agent.downstream_cx_total",
		"http_user_agent=android http_conn_manager_prefix=edge_in"},
	{"vhost.shop.vcluster.cart.upstream_rq_503", "vhost.vcluster.upstream_rq", "response_code=503 virtual_cluster=cart virtual_host=shop"},
	{"http.edge_in.fault.backend_a.delays_injected", "http.fault.delays_injected",
		"fault_downstream_cluster=backend_a http_conn_manager_prefix=edge_in"},
	{"tcp.pg.downstream_cx_total", "tcp.downstream_cx_total", "tcp_prefix=pg"},
	{"udp.dns.downstream_sess_total", "udp.downstream_sess_total", "udp_prefix=dns"},
	{"auth.clientssl.corp.update_success", "auth.clientssl.update_success", "clientssl_prefix=corp"},
	{"ratelimit.main.over_limit", "ratelimit.over_limit", "ratelimit_prefix=main"},
	{"cluster.checkout.membership_total", "cluster.membership_total", "cluster_name=checkout"},
	{"cluster.checkout.ext_authz.az.denied", "cluster.ext_authz.denied", "cluster_name=checkout ext_authz_prefix=az"},
	{"http.edge_in.ext_authz.az.ok", "http.ext_authz.ok", "ext_authz_prefix=az http_conn_manager_prefix=edge_in"},
	{"http.edge_in.downstream_cx_total", "http.downstream_cx_total", "http_conn_manager_prefix=edge_in"},
	{"mongo.orders.op_insert", "mongo.op_insert", "mongo_prefix=orders"},
	{"vhost.shop.route.pay.upstream_rq_time", "vhost.route.upstream_rq_time", "virtual_host=shop route=pay"},
	{"thrift.th1.request", "thrift.request", "thrift_prefix=th1"},
	{"redis.cache.downstream_rq_total", "redis.downstream_rq_total", "redis_prefix=cache"},
	{"edge_lim.http_local_rate_limit.enabled", "http_local_rate_limit.enabled", "local_http_ratelimit_prefix=edge_lim"},
	{"local_rate_limit.l4.rate_limited", "local_rate_limit.rate_limited", "local_network_ratelimit_prefix=l4"},
	{"listener_local_ratelimit.lst.rate_limited", "listener_local_ratelimit.rate_limited", "local_listener_ratelimit_prefix=lst"},
	{"dns_filter.d1.downstream_tx_responses", "dns_filter.downstream_tx_responses", "dns_filter_prefix=d1"},

	{"http.edge_in.scoped_rds.a.b.update_success", "http.scoped_rds.update_success", "scoped_rds_config=a.b http_conn_manager_prefix=edge_in"},
	{"connection_limit.p.active_connections", "connection_limit.active_connections", "connection_limit_prefix=p"},
	{"tcpp.rbac.allowed", "rbac.allowed", "rbac_prefix=tcpp"},
	{"http.edge_in.rbac.p.allowed", "http.rbac.allowed", "rbac_http_prefix=p http_conn_manager_prefix=edge_in"},
	{"http.edge_in.rbac.allowed", "http.rbac.allowed", "http_conn_manager_prefix=edge_in"},
	{"http.edge_in.rbac.policy.n.allowed", "http.rbac.policy.allowed", "http_conn_manager_prefix=edge_in rbac_policy_name=n"},
	{"http.edge_in.rbac.p.policy.n.denied", "http.rbac.policy.denied", "rbac_http_prefix=p http_conn_manager_prefix=edge_in rbac_policy_name=n"},
	{"proxy_proto.p.not_found_allowed", "proxy_proto.not_found_allowed", "proxy_protocol_prefix=p"},
	{"proxy_proto.not_found_allowed", "proxy_proto.not_found_allowed", ""},
	{"proxy_proto.versions.v2.error", "proxy_proto.error", "proxy_protocol_version=2"},
	{"proxy_proto.p.versions.v2.error", "proxy_proto.error", "proxy_protocol_prefix=p proxy_protocol_version=2"},

	{"cluster.checkout", "cluster.checkout", ""},
	{"cluster.upstream_rq_200", "cluster.upstream_rq", "response_code=200"},
	{"upstream_rq_200", "upstream_rq", "response_code=200"},
	{"cluster_manager.cluster_added", "cluster_manager.cluster_added", ""},
	{"listener.admin.http.ops.downstream_rq_1xx", "listener.admin.http.downstream_rq_xx", "response_code_class=1 http_conn_manager_prefix=ops"},
	{"listener.admin.downstream_cx_total", "listener.admin.downstream_cx_total", ""},
	{"listener.a.b.ssl.curves.P-256", "listener.b.ssl.curves", "ssl_curve=P-256 listener_address=a"},

	{"", "", ""},
	{".", ".", ""},
	{"a..b", "a..b", ""},
	{"cluster..x", "cluster..x", ""},
	{"cluster.", "cluster.", ""},
	{"cluster.a.", "cluster.", "cluster_name=a"},
	{"rq_404", "rq_404", ""},
	{"_rq_404", "_rq", "response_code=404"},
	{"_rq_4xx", "_rq_xx", "response_code_class=4"},
	{"upstream_rq_4040", "upstream_rq_4040", ""},
	{"upstream_rq_40x", "upstream_rq_40x", ""},
	{"cluster.a.upstream_rq_xx", "cluster.upstream_rq_xx", "cluster_name=a"},
	{"server.worker_x.watchdog_miss", "server.worker_x.watchdog_miss", ""},
	{"server.worker_3", "server.worker_3", ""},
	{"listener.1.2.3.4.downstream_cx_total", "listener.2.3.4.downstream_cx_total", "listener_address=1"},
}

// render writes tags as the table above does.
func render(tags []Tag, product string) string {
	var parts []string
	for _, t := range tags {
		parts = append(parts, strings.TrimPrefix(t.Name, product+".")+"="+t.Value)
	}
	return strings.Join(parts, " ")
}

func mustNew(t testing.TB, c Config) *Extractor {
	t.Helper()
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// checkExtraction compares Extract and ExtractInto with want.
func checkExtraction(t *testing.T, e *Extractor, product string, want extraction) {
	t.Helper()
	base, got := e.Extract(want.name, nil)
	if base != want.base || render(got, product) != want.tags {
		t.Errorf("Extract(%q) = %q, %q\nwant %q, %q", want.name, base, render(got, product), want.base, want.tags)
	}
	buf, got := e.ExtractInto(want.name, []byte("keep "), []Tag{{"keep", "me"}})
	if string(buf) != "keep "+want.base || len(got) == 0 || got[0] != (Tag{"keep", "me"}) || render(got[1:], product) != want.tags {
		t.Errorf("ExtractInto(%q) = %q, %v\nwant %q, keep=me %s", want.name, buf, got, "keep "+want.base, want.tags)
	}
}

func TestDefaultRules(t *testing.T) {
	for _, product := range []string{"", "envoy"} {
		shown := product
		if shown == "" {
			shown = DefaultProduct
		}
		e := mustNew(t, Config{Product: product, UseDefaults: true})
		for _, tt := range defaultExtractions {
			checkExtraction(t, e, shown, tt)
		}
	}
}

func TestEveryDefaultRuleHasAnExample(t *testing.T) {
	for i, r := range defaultRules(DefaultProduct) {
		used := false
		for _, tt := range defaultExtractions {
			var bounds [boundsOnStack]int32
			n := tokenized{tt.name, appendBounds(bounds[:0], tt.name)}
			m := r.find(tt.name, n)
			used = used || m.cut != span{} && tt.name[m.value.start:m.value.end] != r.forbidden
		}
		if !used {
			t.Errorf("rule %d (%s) matches no example; add one to defaultExtractions", i+1, r.tag)
		}
	}
}

func TestExplainAgreesWithExtract(t *testing.T) {
	fixed := "eu"
	e := mustNew(t, Config{UseDefaults: true, Tags: []Spec{{Name: "region", Fixed: &fixed}, {Name: "any", Regex: `(_\w+)$`}, {Name: "any", Regex: `(\.\w+)`}}})
	for _, tt := range defaultExtractions {
		_, want := e.Extract(tt.name, nil)
		var got []Tag
		for _, s := range e.Explain(tt.name) {
			got = append(got, s.Tag)
			if !strings.HasPrefix(tt.name[s.Offset:], s.Removed) {
				t.Errorf("%s: %q is not removed at %d", tt.name, s.Removed, s.Offset)
			}
			if isFixed := s.Name == "region"; isFixed != (s.Removed == "") || isFixed != (s.Regex+s.Tokens == "") {
				t.Errorf("%s: step %+v", tt.name, s)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: steps have the tags %v, want %v", tt.name, got, want)
		}
	}
}

func TestDefaultTagNamesCarryTheProduct(t *testing.T) {
	for _, product := range []string{"proxy", "envoy"} {
		for _, r := range defaultRules(product) {
			if want := r.tag == cipherSuite; strings.HasPrefix(r.tag, product+".") == want {
				t.Errorf("product %s: tag %q, want the product before every name but %s", product, r.tag, cipherSuite)
			}
		}
	}
}

func ExampleExtractor_Extract() {
	e, err := New(Config{UseDefaults: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	base, labels := e.Extract("cluster.checkout.upstream_rq_404", nil)
	fmt.Println(base)
	fmt.Println(labels)
	// Output:
	// cluster.upstream_rq
	// [{proxy.response_code 404} {proxy.cluster_name checkout}]
}
