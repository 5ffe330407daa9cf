// Package naming maps stat names to the metric and label names of the
// exposition formats.
//
//	r := naming.Rules{Product: "proxy"}
//	name, ok := r.AppendMetric(nil, "http.downstream_rq_total", false, true)
//	// proxy_http_downstream_rq_total, true
//
// [Rules] decides on names one by one and keeps no state. [Owners] records
// which family has which metric name, so that no two families write the same
// series.
package naming
