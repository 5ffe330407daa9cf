//go:build !linux

package process

// readOS returns nothing.
func readOS() map[string]float64 { return make(map[string]float64) }
