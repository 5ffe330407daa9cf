// Package statsd receives statistics from the network: lines of StatsD and its
// dialects over UDP, TCP and unix sockets become stats of a store.
//
//	srv, err := statsd.New(statsd.Config{
//		Store:     st,
//		Listeners: []statsd.ListenerConfig{{Address: "udp://127.0.0.1:8125"}},
//	})
//	if err := srv.Listen(); err != nil { ... } // binds everything
//	err = srv.Run(ctx)                          // until ctx ends
//
// Each datagram socket has one goroutine that reads, parses and applies lines;
// no line moves between goroutines. Stream connections have a goroutine each
// and share a few workers, which own the state for parsing. The series cache of
// a worker maps the raw bytes of a name and its tags to the stat, so that
// applying a line with a known name takes no store lookup and no allocation.
//
// Every loss is counted: a line is either applied or counted under one reason
// or limit. Datagrams that the kernel dropped are counted too.
package statsd
