// Package httptransport sends HTTP requests to the hosts of a cluster: a
// [Transport] is an [http.RoundTripper] for [http.Client] and for
// [httputil.ReverseProxy].
//
//	pools := new(httptransport.Pools)
//	m := upstream.New(upstream.Config{Store: st, Hooks: pools.Hooks(upstream.Hooks{})})
//	...
//	client := &http.Client{Transport: &httptransport.Transport{
//		Pools:   pools,
//		Cluster: func() *upstream.Handle { return m.Cluster("backend") },
//		Retries: 2,
//	}}
//
// For each request a transport picks a host, takes a connection from the host's
// pool or opens one, and retries on another host as configured. The circuit
// breakers of the cluster limit connections, pools, pending requests, requests
// and retries. The transport updates upstream_cx_*, upstream_rq_*, retry.* and
// the statistics of the host, and reports results to the outlier detector.
// Bodies are streamed in both directions. An HTTP/1 server consumes the rest of
// a request when its handler starts to respond: a handler that forwards
// requests should call [http.ResponseController.EnableFullDuplex] first.
//
// Failures count against the host: refused and lost connections, timeouts,
// error statuses, and answers that are not HTTP or exceed the cluster's limits
// on headers. Invalid requests are refused with status 400 before a host is
// picked. A client that disconnects or aborts its body does not count against
// any host.
//
// Transports speak HTTP/1.1. All types are safe for concurrent use.
package httptransport
