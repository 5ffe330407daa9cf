// Package xds holds tests of the library against a control plane made with
// go-control-plane.
package xds
