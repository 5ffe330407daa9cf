// Package life runs the binary as an operator does: starts, signals, rotated
// logs, wrong files, taken ports, and what is left after a crash.
package life
