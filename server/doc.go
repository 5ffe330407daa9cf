// Package server assembles a server: a store and its flushes, StatsD input, runtime
// values, loggers, the life cycle, and the admin port that shows and changes all of
// them.
//
//	st := store.New(store.Options{})
//	srv, err := server.New(server.Config{Store: st, Admin: admin.Config{Address: "127.0.0.1:9901"}})
//	...
//	err = srv.Run(ctx) // until ctx ends or a client asks it to quit
//
// A proxy embeds it and adds its own listeners, clusters and endpoints through the
// fields of [Config]; [Listener] has an example. There is no global state: any number
// of servers can run in one process.
package server
