// Package statsdadmin is the root of a module with the stats engine and the administration
// interface of network proxies. It has no code; the packages below it do:
//
//   - store: counters, gauges, text readouts and histograms with scopes and tags
//   - flush: intervals, and the sinks that receive them
//   - render: plain text, JSON, HTML and the Prometheus exposition formats
//   - admin: the administration port, also as an http.Handler
//   - server: all of it assembled, with life cycle, runtime values and hot restarts
//   - statsd: StatsD and DogStatsD input
//   - upstream: clusters with discovery, health checks, outlier detection and load
//     balancing; upstream/httptransport is an http.RoundTripper over a cluster
//   - bootstrap: configuration files
//   - bridge/prometheus, bridge/otel, bridge/expvar: other metrics libraries, as separate modules
//
// A program with counters and a port that shows them:
//
//	st := store.New(store.Options{})
//	total := st.Scope("http.ingress").Counter("downstream_rq_total")
//	srv, err := server.New(server.Config{Store: st, Admin: admin.Config{Address: "127.0.0.1:9901"}})
//	if err != nil {
//		return err
//	}
//	go srv.Run(ctx)
//	total.Inc()
package statsdadmin
