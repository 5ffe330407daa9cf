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
	guard     guard    // passes every name that the expression matches
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
		{tag: "response_code", code: responseCode, guard: guard{kind: codeSuffix},
			regex: `_rq(_(\d{3}))$`},
		{tag: "response_code_class", code: responseCodeClass, guard: guard{kind: codeSuffix},
			regex: `_rq_((\d))xx$`},
		{tag: "dynamo_partition_id", code: dynamoPartitionID, guard: guard{tokenLength, 8, 2, uint8(len("dynamodb"))}, first: "http",
			regex: `^http\.` + reToken + `\.dynamodb\.table\.` + reToken + `\.capacity\.` + reToken + `(\.__partition_id=(\w{7}))$`},
		{tag: "dynamo_operation", code: dynamoOperation, guard: guard{min: 4}, first: "http",
			regex: `^http\.` + reToken + `\.dynamodb.(?:operation|table\.` + reToken + `\.capacity)(\.(` + reToken + `))(?:\.|$)`},
		{tag: "dynamo_table", code: dynamoTable, guard: guard{min: 5}, first: "http",
			regex: `^http\.` + reToken + `\.dynamodb.(?:table|error)\.((` + reToken + `)\.)`},
		{tag: "ssl_cipher", code: sslCipher, guard: guard{lengthFromEnd, 5, 2, uint8(len("ciphers"))}, first: "listener",
			regex: `^listener\..*?\.ssl\.ciphers(\.([\w-]+))$`},
		{tag: "ssl_curve", code: sslCurve, guard: guard{lengthFromEnd, 5, 2, uint8(len("curves"))}, firsts: sslFirsts,
			regex: reEither + `curves(\.([\w-]+))$`},
		{tag: "ssl_sigalg", code: sslSigalg, guard: guard{lengthFromEnd, 5, 2, uint8(len("sigalgs"))}, firsts: sslFirsts,
			regex: reEither + `sigalgs(\.([\w-]+))$`},
		{tag: "ssl_version", code: sslVersion, guard: guard{lengthFromEnd, 6, 3, uint8(len("versions"))}, firsts: sslFirsts,
			regex: reEither + `versions(\.(TLSv\d\.\d))$`},
		{tag: cipherSuite, code: clusterCipher, guard: guard{tokenLength, 5, 2, uint8(len("ssl"))}, first: "cluster",
			regex: `^cluster\.` + reToken + `\.ssl\.ciphers(\.([\w-]+))$`},
		{tag: "tls_certificate", code: tlsCertificate, guard: guard{lengthFromEnd, 6, 3, uint8(len("certificate"))}, firsts: sslFirsts,
			regex: reEither + `certificate\.((` + reToken + `)\.)\w+$`},
		{tag: "http_conn_manager_prefix", code: listenerHTTP, guard: guard{min: 5}, first: "listener",
			regex: `^listener\..*?\.http\.((` + reToken + `)\.)`},
		{tag: "worker_id", code: workerID, guard: guard{min: 3}, firsts: []string{"listener", "server", "listener_manager"},
			regex: `^(?:listener\.(?:` + reAddress + `|` + reToken + `)\.|server\.|listener_manager\.)worker_((\d+)\.)`},
		{tag: "listener_address", code: listenerAddress, guard: guard{min: 3}, first: "listener", forbidden: "admin",
			regex: `^listener\.((` + reAddress + `|` + reToken + `)\.)`},
		{tag: "rds_route_config", code: rdsRouteConfig, guard: guard{tokenLength, 5, 2, uint8(len("rds"))}, first: "http",
			regex: `^http\.` + reToken + `\.rds\.(([\w\-\./]+)\.)\w+?$`},
		{tag: "scoped_rds_config", code: scopedRDSConfig, guard: guard{tokenLength, 5, 2, uint8(len("scoped_rds"))}, first: "http",
			regex: `^http\.` + reToken + `\.scoped_rds\.(([\w\-\./]+)\.)\w+?$`},
		{tag: "rbac_http_prefix", code: rbacHTTPPrefix, guard: guard{tokenLength, 5, 2, uint8(len("rbac"))}, first: "http", forbidden: "policy",
			regex: `^http\.` + reToken + `\.rbac\.((` + reToken + `)\.)`},
		{tag: "proxy_protocol_prefix", code: proxyProtocolPrefix, guard: guard{min: 3}, first: "proxy_proto", forbidden: "versions",
			regex: `^proxy_proto\.((` + reToken + `)\.).+$`},
		{tag: "proxy_protocol_version", code: proxyProtocolVersion, guard: guard{min: 4}, first: "proxy_proto",
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
			tag: name, kind: byHand, text: row.regex, code: row.code, passes: row.guard,
			first: row.first, firsts: row.firsts, forbidden: row.forbidden,
		})
	}
	return rules
}
