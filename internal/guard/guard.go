// Package guard keeps a panic in a goroutine of its own from ending the process.
package guard

// Told is told of a panic that was caught: where, and its value. It must not
// panic. A nil one tells nobody.
type Told func(where string, v any)

// Run runs f. A panic ends f and is told; Run then reports false.
func (t Told) Run(where string, f func()) (ok bool) {
	defer func() {
		if v := recover(); v != nil && t != nil {
			t(where, v)
		}
	}()
	f()
	return true
}
