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
// pool or makes one, and retries on another host as configured. Circuit breakers
// of the cluster bound connections, pools, waiting requests, requests and retries.
// The transport updates upstream_cx_*, upstream_rq_*, retry.* and the statistics of
// the host, and reports results to the outlier detector. Bodies are
// streamed in both directions. An HTTP/1 server takes the rest of a request when it
// begins to answer: a handler that forwards requests should call
// [http.ResponseController.EnableFullDuplex] first.
//
// Hosts are charged for their failures: refused and lost connections, timeouts,
// errors by status, and answers that are not HTTP or exceed the cluster's limits
// of headers. Invalid requests are refused with status 400 before a host is picked,
// and a client that goes away or breaks off its body charges no host.
//
// Transports speak HTTP/1.1. All types are safe for concurrent use.
package httptransport
