// Package statsd takes in statistics from the network: lines of StatsD and its
// dialects over UDP, TCP and unix sockets become stats of a store.
//
//	srv, err := statsd.New(statsd.Config{
//		Store:     st,
//		Listeners: []statsd.ListenerConfig{{Address: "udp://127.0.0.1:8125"}},
//	})
//	if err := srv.Listen(); err != nil { ... } // binds everything
//	err = srv.Run(ctx)                          // until ctx ends
//
// Each datagram socket has one goroutine that reads, parses and applies; no
// line is handed from one goroutine to another. Stream connections have a
// goroutine each and share a few workers, which hold what parsing needs. A worker's
// table leads from the raw bytes of a name and its tags to the stat, so that a
// line whose name is known is applied without look-up and allocation.
//
// Nothing is lost without a number: every line is applied, or counted under
// one reason or limit, and what the kernel dropped is counted too.
package statsd
