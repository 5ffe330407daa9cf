module github.com/statsd-admin/statsd-admin/bridge/nats

go 1.26.0

replace github.com/statsd-admin/statsd-admin => ../..

require (
	github.com/nats-io/nats.go v1.55.0
	github.com/statsd-admin/statsd-admin v0.0.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/grafana/regexp v0.0.0-20250905101755-5eb4f3acbf71 // indirect
	github.com/klauspost/compress v1.20.4 // indirect
	github.com/nats-io/nkeys v0.4.17 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	golang.org/x/crypto v0.59.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
)
