// Package prometheus connects a store with the Prometheus client library, in both
// directions.
//
// A program that already has a Prometheus registry adds the stats of a store to it:
//
//	registry.MustRegister(prometheus.NewCollector(st))
//
// A program that shows its stats on the administration port adds the metrics of a
// registry to them:
//
//	in := prometheus.NewImporter(registry, st.Scope("app"))
//	flush.Config{Store: st, Before: []func(time.Time){in.Refresh}}
//
// The package is a separate module, so that users of the store do not depend on
// the client library.
package prometheus
