module github.com/statsd-admin/statsd-admin/bridge/expvar

go 1.26.0

replace github.com/statsd-admin/statsd-admin => ../..

require github.com/statsd-admin/statsd-admin v0.0.0

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dlclark/regexp2/v2 v2.13.0 // indirect
	github.com/grafana/regexp v0.0.0-20250905101755-5eb4f3acbf71 // indirect
	golang.org/x/sys v0.50.0 // indirect
)
