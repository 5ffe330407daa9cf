// Package hotrestart lets a new process take over from a running one: its
// sockets, its connections and its counters, so that nobody who talks to it
// notices.
//
// Each server listens on a unix socket of its own ([Listen]); the server of the
// next epoch connects to it ([Dial]) and asks, in this order, for duplicates of
// the sockets, for the administration port to be closed, for the stats, for the
// end of accepting, and in the end for the end of the process.
//
// Both sides trust only processes of the same user, or of root. Messages are
// bounded, their version is checked, and neither side waits for the other
// longer than a time limit: a peer that is broken is left.
package hotrestart
