// Package arch checks the rules that this module keeps: the import table, the
// packages that may run servers, read configuration formats, parse flags or start
// goroutines, the guards around goroutines and the tests that make each of them
// panic, package state, and prose. It consists of tests.
//
//	go test ./internal/arch
//
// Each failure names the alternative. To break a rule for a reason, add the place
// and the reason to exceptions_test.go. A new package needs a row in the table of
// imports_test.go.
package arch
