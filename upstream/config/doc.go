// Package config declares the configuration of upstream clusters as immutable
// values: a [Cluster] with its [Assignment], and the [Secret] values that its TLS
// contexts refer to.
//
// Every default is filled in. Package decode makes such values from YAML, JSON
// and protobuf messages; a program can also build them itself. This package
// imports the standard library alone, so balancing, health checks and outlier
// detection need no message packages.
package config
