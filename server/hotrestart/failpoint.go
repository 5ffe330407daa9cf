//go:build !failpoint || !linux

package hotrestart

import "time"

const defaultTimeout = 10 * time.Second

// point does nothing: see failpoint_on.go.
func (l *link) point(kind, string) {}

// copies returns how often a message is written: see failpoint_on.go.
func (l *link) copies(_ kind, b []byte) [][]byte { return [][]byte{b} }
