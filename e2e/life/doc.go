// Package life runs the binary as an operator does: starts, signals, log rotation,
// invalid files, ports in use, and restarts after a crash.
package life
