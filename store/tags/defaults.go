package tags

// cipherSuite is the only default tag without the product name as a prefix.
const cipherSuite = "cipher_suite"

// defaultRow is a line of the default table: either a token pattern or a
// regular expression together with the code that replaces it.
type defaultRow struct {
	tag       string
	tokens    string
	regex     string
	code      handCode
	first     string   // see rule.first; token rows state it in the pattern
	firsts    []string // see rule.firsts
	forbidden string
}

// Pieces of the expressions below.
const (
	reToken   = `[^\.]+`
	reAddress = `(?:\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[[a-fA-F_\d]+\])_\d+`
	reEither  = `^(?:listener|cluster)\..*?\.ssl\.`
)

// defaultTable lists the default rules in the order in which they are
// registered: regular expressions, then token patterns. It is a function, not
// a variable, so that it cannot be modified.
func defaultTable() []defaultRow {
	sslFirsts := []string{"listener", "cluster"}
	return []defaultRow{
		{tag: "response_code", regex: `_rq(_(\d{3}))$`, code: responseCode},
		{tag: "response_code_class", regex: `_rq_((\d))xx$`, code: responseCodeClass},
		{tag: "dynamo_partition_id", code: dynamoPartitionID, first: "http",
			regex: `^http\.` + reToken + `\.dynamodb\.table\.` + reToken + `\.capacity\.` + reToken + `(\.__partition_id=(\w{7}))$`},
		{tag: "dynamo_operation", code: dynamoOperation, first: "http",
			regex: `^http\.` + reToken + `\.dynamodb.(?:operation|table\.` + reToken + `\.capacity)(\.(` + reToken + `))(?:\.|$)`},
		{tag: "dynamo_table", code: dynamoTable, first: "http",
			regex: `^http\.` + reToken + `\.dynamodb.(?:table|error)\.((` + reToken + `)\.)`},
		{tag: "ssl_cipher", regex: `^listener\..*?\.ssl\.ciphers(\.([\w-]+))$`, code: sslCipher, first: "listener"},
		{tag: "ssl_curve", regex: reEither + `curves(\.([\w-]+))$`, code: sslCurve, firsts: sslFirsts},
		{tag: "ssl_sigalg", regex: reEither + `sigalgs(\.([\w-]+))$`, code: sslSigalg, firsts: sslFirsts},
		{tag: "ssl_version", regex: reEither + `versions(\.(TLSv\d\.\d))$`, code: sslVersion, firsts: sslFirsts},
		{tag: cipherSuite, code: clusterCipher, first: "cluster",
			regex: `^cluster\.` + reToken + `\.ssl\.ciphers(\.([\w-]+))$`},
		{tag: "tls_certificate", code: tlsCertificate, firsts: sslFirsts,
			regex: reEither + `certificate\.((` + reToken + `)\.)\w+$`},
		{tag: "http_conn_manager_prefix", code: listenerHTTP, first: "listener",
			regex: `^listener\..*?\.http\.((` + reToken + `)\.)`},
		{tag: "worker_id", code: workerID, firsts: []string{"listener", "server", "listener_manager"},
			regex: `^(?:listener\.(?:` + reAddress + `|` + reToken + `)\.|server\.|listener_manager\.)worker_((\d+)\.)`},
		{tag: "listener_address", code: listenerAddress, first: "listener", forbidden: "admin",
			regex: `^listener\.((` + reAddress + `|` + reToken + `)\.)`},
		{tag: "rds_route_config", code: rdsRouteConfig, first: "http",
			regex: `^http\.` + reToken + `\.rds\.(([\w\-\./]+)\.)\w+?$`},
		{tag: "scoped_rds_config", code: scopedRDSConfig, first: "http",
			regex: `^http\.` + reToken + `\.scoped_rds\.(([\w\-\./]+)\.)\w+?$`},
		{tag: "rbac_http_prefix", code: rbacHTTPPrefix, first: "http", forbidden: "policy",
			regex: `^http\.` + reToken + `\.rbac\.((` + reToken + `)\.)`},
		{tag: "proxy_protocol_prefix", code: proxyProtocolPrefix, first: "proxy_proto", forbidden: "versions",
			regex: `^proxy_proto\.((` + reToken + `)\.).+$`},
		{tag: "proxy_protocol_version", code: proxyProtocolVersion, first: "proxy_proto",
			regex: `^proxy_proto\.((?:` + reToken + `\.)?versions\.v(\d)\.)\w+$`},

		{tag: "mongo_callsite", tokens: "mongo.*.collection.*.callsite.$.query.**"},
		{tag: "mongo_collection", tokens: "mongo.*.collection.$.**.query.*"},
		{tag: "mongo_cmd", tokens: "mongo.*.cmd.$.**"},
		{tag: "grpc_bridge_method", tokens: "cluster.*.grpc.*.$.**"},
		{tag: "http_user_agent", tokens: "http.*.user_agent.$.**"},
		{tag: "virtual_cluster", tokens: "vhost.*.vcluster.$.**"},
		{tag: "fault_downstream_cluster", tokens: "http.*.fault.$.**"},
		{tag: "grpc_bridge_service", tokens: "cluster.*.grpc.$.**"},
		{tag: "tcp_prefix", tokens: "tcp.$.**"},
		{tag: "udp_prefix", tokens: "udp.$.**"},
		{tag: "clientssl_prefix", tokens: "auth.clientssl.$.**"},
		{tag: "ratelimit_prefix", tokens: "ratelimit.$.**"},
		{tag: "cluster_name", tokens: "cluster.$.**"},
		{tag: "ext_authz_prefix", tokens: "cluster.*.ext_authz.$.**"},
		{tag: "ext_authz_prefix", tokens: "http.*.ext_authz.$.**"},
		{tag: "http_conn_manager_prefix", tokens: "http.$.**"},
		{tag: "virtual_host", tokens: "vhost.$.**"},
		{tag: "mongo_prefix", tokens: "mongo.$.**"},
		{tag: "route", tokens: "vhost.*.route.$.**"},
		{tag: "thrift_prefix", tokens: "thrift.$.**"},
		{tag: "redis_prefix", tokens: "redis.$.**"},
		{tag: "local_http_ratelimit_prefix", tokens: "$.http_local_rate_limit.**"},
		{tag: "local_network_ratelimit_prefix", tokens: "local_rate_limit.$.**"},
		{tag: "local_listener_ratelimit_prefix", tokens: "listener_local_ratelimit.$.**"},
		{tag: "dns_filter_prefix", tokens: "dns_filter.$.**"},
		{tag: "connection_limit_prefix", tokens: "connection_limit.$.**"},
		{tag: "rbac_prefix", tokens: "$.rbac.**"},
		{tag: "rbac_policy_name", tokens: "http.*.rbac.policy.$.**"},
		{tag: "rbac_policy_name", tokens: "http.*.rbac.*.policy.$.**"},
	}
}

// defaultRules returns the default table as rules for product.
func defaultRules(product string) []rule {
	var rules []rule
	for _, row := range defaultTable() {
		name := row.tag
		if name != cipherSuite {
			name = product + "." + name
		}
		if row.tokens != "" {
			rules = append(rules, tokenRule(name, row.tokens))
			continue
		}
		rules = append(rules, rule{
			tag: name, kind: byHand, text: row.regex, code: row.code,
			first: row.first, firsts: row.firsts, forbidden: row.forbidden,
		})
	}
	return rules
}
