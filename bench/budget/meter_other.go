//go:build !unix

package budget

import "time"

// processTime returns 0, because this system does not report process times.
func processTime() time.Duration { return 0 }
