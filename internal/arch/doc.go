// Package arch holds the house rules as tests: who may import whom, where
// servers, configuration formats, flags and goroutines may be, that panics of
// goroutines are caught and a test makes each of them panic, and what state packages
// may keep. It has no code of its own.
//
//	go test ./internal/arch
//
// Each failure says what to do instead. Where a rule has to be broken, the
// place and the reason go into the list in exceptions_test.go; where the house
// gets a new room, the room goes into the table in rooms_test.go.
package arch
