// Package sinks lets the running daemon send its stats to programs that we did not
// write, and checks what arrives there.
package sinks
