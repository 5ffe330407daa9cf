package tags

import (
	"strings"
	"unicode/utf8"
)

// handCode selects the code that does the work of one expression of the
// default table. The constants are in the order of that table.
type handCode uint8

const (
	responseCode handCode = iota + 1
	responseCodeClass
	dynamoPartitionID
	dynamoOperation
	dynamoTable
	sslCipher
	sslCurve
	sslSigalg
	sslVersion
	clusterCipher
	tlsCertificate
	listenerHTTP
	workerID
	listenerAddress
	rdsRouteConfig
	scopedRDSConfig
	rbacHTTPPrefix
	proxyProtocolPrefix
	proxyProtocolVersion
)

// find looks for the match that the expression of c would find. It does not
// apply the forbidden value.
func (c handCode) find(n tokenized) found {
	switch c {
	case responseCode:
		return n.responseCode()
	case responseCodeClass:
		return n.responseCodeClass()
	case dynamoPartitionID:
		return n.dynamoPartitionID()
	case dynamoOperation:
		return n.dynamoOperation()
	case dynamoTable:
		return n.dynamoTable()
	case sslCipher:
		if n.is(0, "listener") {
			return n.sslLast("ciphers")
		}
	case sslCurve:
		return n.sslLast("curves")
	case sslSigalg:
		return n.sslLast("sigalgs")
	case sslVersion:
		return n.sslVersion()
	case clusterCipher:
		return n.clusterCipher()
	case tlsCertificate:
		return n.tlsCertificate()
	case listenerHTTP:
		return n.listenerHTTP()
	case workerID:
		return n.workerID()
	case listenerAddress:
		return n.listenerAddress()
	case rdsRouteConfig:
		return n.routeConfig("rds")
	case scopedRDSConfig:
		return n.routeConfig("scoped_rds")
	case rbacHTTPPrefix:
		return n.rbacHTTPPrefix()
	case proxyProtocolPrefix:
		return n.proxyProtocolPrefix()
	case proxyProtocolVersion:
		return n.proxyProtocolVersion()
	}
	return found{}
}

// responseCode finds the status at the end of ..._rq_404.
func (n tokenized) responseCode() found {
	s := n.text
	i := len(s) - len("_404")
	if i < 0 || s[i] != '_' || !all(s[i+1:], isDigit) || !strings.HasSuffix(s[:i], "_rq") {
		return found{}
	}
	return found{span{i, len(s)}, span{i + 1, len(s)}}
}

// responseCodeClass finds the digit at the end of ..._rq_2xx.
func (n tokenized) responseCodeClass() found {
	s := n.text
	if !strings.HasSuffix(s, "xx") {
		return found{}
	}
	i := len(s) - len("2xx")
	if i < 0 || !isDigit(s[i]) || !strings.HasSuffix(s[:i], "_rq_") {
		return found{}
	}
	return found{span{i, i + 1}, span{i, i + 1}}
}

// dynamoPartitionID: http.V.dynamodb.table.V.capacity.V.(__partition_id=xxxxxxx)
func (n tokenized) dynamoPartitionID() found {
	if n.len() != 8 || !n.is(2, "dynamodb") || !n.is(3, "table") || !n.is(5, "capacity") ||
		!n.is(0, "http") || n.empty(1) || n.empty(4) || n.empty(6) {
		return found{}
	}
	id, ok := strings.CutPrefix(n.token(7), "__partition_id=")
	if !ok || len(id) != 7 || !all(id, isWord) {
		return found{}
	}
	m := n.withDotBefore(7)
	m.value.start = m.value.end - len(id)
	return m
}

// dynamo returns what follows http.V.dynamodb and the one character after it,
// which may be any but a newline, and where that begins.
func (n tokenized) dynamo() (rest string, at int) {
	if n.len() < 3 || !n.is(0, "http") || n.empty(1) {
		return "", 0
	}
	at = n.start(2)
	rest, ok := strings.CutPrefix(n.text[at:], "dynamodb")
	if !ok || rest == "" || rest[0] == '\n' {
		return "", 0
	}
	_, size := utf8.DecodeRuneInString(rest)
	return rest[size:], at + len("dynamodb") + size
}

// dynamoOperation: http.V.dynamodb.operation.($) or
// http.V.dynamodb.table.V.capacity.($), followed by a dot or the end.
func (n tokenized) dynamoOperation() found {
	rest, at := n.dynamo()
	after, ok := strings.CutPrefix(rest, "operation.")
	if !ok {
		if after, ok = strings.CutPrefix(rest, "table."); !ok {
			return found{}
		}
		dot := strings.IndexByte(after, '.')
		if dot < 1 {
			return found{}
		}
		if after, ok = strings.CutPrefix(after[dot:], ".capacity."); !ok {
			return found{}
		}
	}
	start := at + len(rest) - len(after)
	end := len(n.text)
	if dot := strings.IndexByte(after, '.'); dot >= 0 {
		end = start + dot
	}
	if start == end {
		return found{}
	}
	return found{span{start - 1, end}, span{start, end}}
}

// dynamoTable: http.V.dynamodb.table.($.) or http.V.dynamodb.error.($.)
func (n tokenized) dynamoTable() found {
	rest, at := n.dynamo()
	after, ok := strings.CutPrefix(rest, "table.")
	if !ok {
		if after, ok = strings.CutPrefix(rest, "error."); !ok {
			return found{}
		}
	}
	dot := strings.IndexByte(after, '.')
	if dot < 1 {
		return found{}
	}
	start := at + len(rest) - len(after)
	return found{span{start, start + dot + 1}, span{start, start + dot}}
}

// ssl reports whether n begins with listener or cluster, one token or more on one line,
// and then ssl.group, with the group at i.
func (n tokenized) ssl(i int, group string) bool {
	return i > 2 && n.is(i, group) && n.is(i-1, "ssl") && (n.is(0, "listener") || n.is(0, "cluster")) && n.oneLine(i-1)
}

// sslLast: ssl.group.($), see ssl
func (n tokenized) sslLast(group string) found {
	last := n.len() - 1
	if !n.ssl(last-1, group) || n.empty(last) || !all(n.token(last), isWordOrDash) {
		return found{}
	}
	return n.withDotBefore(last)
}

// sslVersion: ssl.versions.(TLSv1.3), see ssl
func (n tokenized) sslVersion() found {
	last := n.len() - 1
	if !n.ssl(last-2, "versions") {
		return found{}
	}
	v := n.text[n.start(last-1):]
	if len(v) != len("TLSv1.3") || v[:4] != "TLSv" || !isDigit(v[4]) || v[5] != '.' || !isDigit(v[6]) {
		return found{}
	}
	m := n.withDotBefore(last)
	m.cut.start, m.value.start = n.start(last-1)-1, n.start(last-1)
	return m
}

// clusterCipher: cluster.V.ssl.ciphers.($)
func (n tokenized) clusterCipher() found {
	if n.len() != 5 || !n.is(2, "ssl") || !n.is(3, "ciphers") || !n.is(0, "cluster") ||
		n.empty(1) || n.empty(4) || !all(n.token(4), isWordOrDash) {
		return found{}
	}
	return n.withDotBefore(4)
}

// tlsCertificate: ssl.certificate.($.)stat, see ssl
func (n tokenized) tlsCertificate() found {
	last := n.len() - 1
	if !n.ssl(last-2, "certificate") || n.empty(last-1) || n.empty(last) || !all(n.token(last), isWord) {
		return found{}
	}
	return n.withDotAfter(last - 1)
}

// listenerHTTP: listener.….http.($.), the first http that fits.
func (n tokenized) listenerHTTP() found {
	if !n.is(0, "listener") {
		return found{}
	}
	for i := 2; i+2 < n.len(); i++ {
		if n.is(i, "http") && !n.empty(i+1) {
			if !n.oneLine(i) {
				return found{}
			}
			return n.withDotAfter(i + 1)
		}
	}
	return found{}
}

// addressTokens returns how many tokens the address after the first token
// takes: four for an IPv4 address with a port (10.0.0.1_80), one for any other
// token that is not empty, 0 for none. A dot has to follow.
func (n tokenized) addressTokens() int {
	if n.len() > 5 && n.octet(1) && n.octet(2) && n.octet(3) {
		host, port, ok := strings.Cut(n.token(4), "_")
		if ok && isOctet(host) && port != "" && all(port, isDigit) {
			return 4
		}
	}
	if n.len() > 2 && !n.empty(1) {
		return 1
	}
	return 0
}

// workerID: listener.address.worker_($.), server.worker_($.) or
// listener_manager.worker_($.)
func (n tokenized) workerID() found {
	i := 1
	switch {
	case n.is(0, "listener"):
		tokens := n.addressTokens()
		if tokens == 0 {
			return found{}
		}
		i += tokens
	case n.is(0, "server"), n.is(0, "listener_manager"):
	default:
		return found{}
	}
	if i+1 >= n.len() {
		return found{}
	}
	id, ok := strings.CutPrefix(n.token(i), "worker_")
	if !ok || id == "" || !all(id, isDigit) {
		return found{}
	}
	m := n.withDotAfter(i)
	m.cut.start += len("worker_")
	m.value.start += len("worker_")
	return m
}

// listenerAddress: listener.(address.)
func (n tokenized) listenerAddress() found {
	if !n.is(0, "listener") {
		return found{}
	}
	tokens := n.addressTokens()
	if tokens == 0 {
		return found{}
	}
	m := n.withDotAfter(tokens)
	m.cut.start, m.value.start = n.start(1), n.start(1)
	return m
}

// routeConfig: http.V.kind.($.)stat, where the value may have dots in it.
func (n tokenized) routeConfig(kind string) found {
	last := n.len() - 1
	if last < 4 || !n.is(2, kind) || !n.is(0, "http") || n.empty(1) || n.empty(last) || !all(n.token(last), isWord) {
		return found{}
	}
	v := span{n.start(3), n.end(last - 1)}
	if v.start == v.end || !all(n.text[v.start:v.end], func(c byte) bool { return isWordOrDash(c) || c == '.' || c == '/' }) {
		return found{}
	}
	return found{span{v.start, v.end + 1}, v}
}

// rbacHTTPPrefix: http.V.rbac.($.)
func (n tokenized) rbacHTTPPrefix() found {
	if n.len() < 5 || !n.is(2, "rbac") || !n.is(0, "http") || n.empty(1) || n.empty(3) {
		return found{}
	}
	return n.withDotAfter(3)
}

// proxyProtocolPrefix: proxy_proto.($.) and something after it, on one line.
func (n tokenized) proxyProtocolPrefix() found {
	if n.len() < 3 || !n.is(0, "proxy_proto") || n.empty(1) {
		return found{}
	}
	m := n.withDotAfter(1)
	if rest := n.text[m.cut.end:]; rest == "" || strings.IndexByte(rest, '\n') >= 0 {
		return found{}
	}
	return m
}

// proxyProtocolVersion: proxy_proto.(versions.v$.)stat, also with a token
// before versions, which is removed with it.
func (n tokenized) proxyProtocolVersion() found {
	last := n.len() - 1
	if (last != 3 && last != 4) || !n.is(last-2, "versions") || !n.is(0, "proxy_proto") ||
		last == 4 && n.empty(1) || n.empty(last) || !all(n.token(last), isWord) {
		return found{}
	}
	v := n.token(last - 1)
	if len(v) != 2 || v[0] != 'v' || !isDigit(v[1]) {
		return found{}
	}
	end := n.end(last - 1)
	return found{span{n.start(1), end + 1}, span{end - 1, end}}
}

func (n tokenized) is(i int, text string) bool { return n.token(i) == text }

func (n tokenized) empty(i int) bool { return n.start(i) == n.end(i) }

// octet reports whether token i has one to three digits.
func (n tokenized) octet(i int) bool { return isOctet(n.token(i)) }

func isOctet(s string) bool { return 1 <= len(s) && len(s) <= 3 && all(s, isDigit) }

// oneLine reports whether no newline is in the tokens from 1 up to, not
// including, end. The dot of an expression does not match a newline.
func (n tokenized) oneLine(end int) bool {
	return strings.IndexByte(n.text[n.start(1):n.start(end)], '\n') < 0
}

// all reports whether each byte of s is ok.
func all(s string, ok func(byte) bool) bool {
	for i := range len(s) {
		if !ok(s[i]) {
			return false
		}
	}
	return true
}

func isWordOrDash(c byte) bool { return isWord(c) || c == '-' }
