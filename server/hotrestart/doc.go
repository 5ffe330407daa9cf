// Package hotrestart lets a new process take over from a running one: its
// sockets, its connections and its counters, without a gap for clients.
//
// Each server listens on a unix socket ([Listen]). The server of the next epoch
// connects to it ([Dial]) and takes over in steps: it gets duplicates of the
// sockets, a copy of the stats, and, once it is ready to serve, the duty to flush
// them ([Child.Commit]). Then the old server stops accepting ([Child.Drain]), and
// in the end it hands over its connections and ends ([Child.Terminate]).
//
// A successor that dies before the end leaves no trace: the old server continues
// with everything that the successor has not acknowledged, and serves again. An
// old server that dies leaves a successor that continues alone. Whether the other
// process is dead, and not merely silent, is decided by its socket.
//
// Both sides accept only processes of the same user or of root. Messages are
// bounded and numbered, their version is checked, and no side waits for the other
// without a time limit.
package hotrestart
