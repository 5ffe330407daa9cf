// Package soak runs the daemon for a long time under hostile input, with
// scrapes, event streams and mutations, and looks whether anything grows, is
// lost or breaks. SOAKTIME says for how long; by default it is seconds.
package soak
