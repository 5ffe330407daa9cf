// Package soak runs the daemon for a long time under hostile input, with scrapes,
// event streams and mutations, and checks that nothing grows, is lost or breaks.
// SOAKTIME sets the duration; the default is seconds.
package soak
