//go:build !linux

package main

// dropStartPages does nothing: other systems manage this memory themselves.
func dropStartPages() {}
