//go:build !schedule

package schedule

import "sync"

// Enabled reports whether Point does anything.
const Enabled = false

// Point is a place where an explored program can be preempted.
func Point() {}

// Mutex is a lock for which an explored program can wait.
type Mutex = sync.Mutex
