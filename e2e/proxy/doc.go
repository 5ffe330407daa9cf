// Package proxy holds tests of the reverse proxy among the examples, as a process
// of its own, against a real control plane.
package proxy
