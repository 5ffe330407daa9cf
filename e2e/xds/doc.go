// Package xds tests the library against a control plane built with go-control-plane.
package xds
