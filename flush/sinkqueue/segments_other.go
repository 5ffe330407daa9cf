//go:build !linux

package sinkqueue

// segmentSize returns dst: the system cannot cut data into datagrams.
func segmentSize(dst []byte, _ int) []byte { return dst }
