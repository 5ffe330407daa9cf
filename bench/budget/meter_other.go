//go:build !unix

package budget

import "time"

// ProcessTime returns 0, because this system does not report process times.
func ProcessTime() time.Duration { return 0 }
