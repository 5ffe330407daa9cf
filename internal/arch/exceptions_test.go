package arch

// exception is a place that breaks a rule for a reason.
type exception struct {
	rule   string // the rule's name
	dir    string // of the package
	what   string // what the finding is about, as the failure shows it
	reason string
}

// exceptions is the one way to opt out of a rule. An entry that no longer
// excuses anything is an error too.
func exceptions() []exception {
	return []exception{
		{"imports", "cmd/statsd-admin", "server/logctl", "the log flags take the level and component names that logctl knows"},
		{"imports", "cmd/statsd-admin", "admin", "the flags of statsd_exporter add its paths, which are endpoints"},
		{"flags", "internal/golden", "flag", "-update is a flag of the test binaries, which have no cmd"},
		{"state", "internal/golden", "update", "the value of that flag"},
		{"state", "internal/schedule", "current", "explored programs find their explorer by it; exists only with the tag schedule"},
		{"state", "internal/percpu", "offset", "a property of the runtime, read once from its code; the fast path has no place to pass it"},

		{"failpoints", "admin", "nethttp.go HTTPHandler", "makes an error of http.ErrAbortHandler; TestHTTPHandlerAsEndpoint has a handler that panics with it"},
		{"failpoints", "admin", "panics.go call", "is at the path of each endpoint; TestPanics has some that panic"},
		{"failpoints", "internal/schedule", "explore.go run", "makes a test failure of a panic; exists only with the tag schedule"},
		{"failpoints", "internal/schedule", "check.go Check", "runs subtests; exists only with the tag schedule"},
		{"failpoints", "internal/schedule", "seeded.go CheckBugs", "runs subtests; exists only with the tags schedule and seeded"},
		{"testing", "internal/schedule", "testing", "checks tests of explored packages; exists only with the tag schedule"},
		{"failpoints", "server", "handshake of a listener", "runs crypto/tls with certificates that were loaded; nothing of this module can panic there"},
		{"failpoints", "server", "porthttp.go abort", "breaks the connection of a request after a panic; TestListenerHTTP has a handler that panics"},
		{"servers", "server", "http.Server", "serves a program's handler on a listener of the program"},
		{"failpoints", "server", "server.go serve", "is around each part of a server; TestPanicOfAPart has one that panics"},
		{"failpoints", "statsd", "worker.go leave", "recovers and unlocks at once; it is the place worker"},
		{"failpoints", "internal/conftree", "conftree.go parseYAML", "makes an error of a panic of the YAML parser"},

		{"panics", "admin", "conn.go close", "sets a flag and wakes who waits for it"},
		{"panics", "admin", "nethttp.go watch", "cancels a context"},
		{"panics", "cmd/statsd-admin", "daemon.go Run", "waits for a channel and cancels a context"},
		{"panics", "cmd/statsd-admin", "notify.go Run", "only sends datagrams to the service manager, and without them that restarts the process"},
		{"panics", "cmd/statsd-admin", "serve.go serve", "is the whole program: nothing is left that could go on without it"},
		{"panics", "flush", "scheduler.go Run", "waits for goroutines that are guarded and closes a channel"},
		{"panics", "flush/sinkqueue", "conn.go Send", "sets the deadline of a connection"},
		{"panics", "flush/sinkqueue", "move.go Hold", "wakes the caller of Hold"},
		{"panics", "flush/sinkgrpc", "client.go New", "what is called is guarded by dialCluster of the server"},
		{"panics", "flush/sinkhttp", "client.go New", "only dials with package net, in place of package net/http"},
		{"panics", "server", "hotrestart.go Lost", "closes a channel, once"},
		{"panics", "server", "port.go handle", "closes a connection"},
		{"panics", "server", "port.go runPort", "closes a socket"},
		{"panics", "upstream", "tunnel.go Tunnel", "closes connections"},
		{"panics", "server", "server.go Run", "waits for a channel and cancels a context"},
		{"panics", "server", "upstream.go runClusters", "cancels contexts of clusters"},
		{"environment", "server/hotrestart", "os.Getenv", "failpoints, in a file that only the build tag failpoint includes"},
		{"environment", "server/hotrestart", "os.Unsetenv", "failpoints, in a file that only the build tag failpoint includes"},
		{"panics", "server/healthlistener", "listener.go wait", "closes connections"},
		{"panics", "server/hotrestart", "parent.go Run", "closes a socket, once"},
		{"panics", "server/hotrestart", "parent.go Run 2", "ends reading from a socket"},
		{"panics", "server/lifecycle", "server.go withDefaults", "is the clock, which who calls it gives guarded functions"},
		{"panics", "statsd", "conns.go enter", "what is called in the end is guarded by Server.admit"},
		{"panics", "statsd/relay", "relay.go Start", "cancels a context"},
		{"panics", "upstream/discovery", "client.go send", "closes a connection"},
		{"panics", "upstream/health", "tcp.go exchange", "sets the deadline of a connection"},
		{"panics", "upstream/httptransport", "replay.go Close", "closes the body of a request"},
		{"panics", "upstream/httptransport", "pool.go tendLater", "closes idle connections"},
		{"panics", "upstream/httptransport", "transport.go connect", "sets the deadline of a connection"},
		{"panics", "upstream/httptransport", "transport.go exchange", "sets a deadline and closes a channel after the guarded part"},
	}
}
