// Package hotrestart lets a new process take over from a running one: its
// sockets, its connections and its counters, without a gap for clients.
//
// Each server listens on a unix socket ([Listen]). The server of the next epoch
// connects to it ([Dial]) and takes over in steps: it gets duplicates of the
// sockets, a copy of the stats, and, once it is ready to serve, the duty to flush
// them ([Child.Commit]). Then the old server stops accepting ([Child.Drain]), and
// in the end it hands over its connections and ends ([Child.Terminate]).
//
// If the successor dies before the end, the old server serves again and
// continues with everything that the successor has not acknowledged. If the old
// server dies, the successor continues alone. The socket of the other process
// shows whether it is dead, and not merely silent.
//
// Both sides accept only processes of the same user or of root. Messages are
// bounded and numbered, their version is checked, and no side waits for the other
// without a time limit.
package hotrestart
