// Package upstream manages clusters of upstream hosts: membership, health, load
// balancing, circuit breaking, outlier detection and their statistics.
//
//	parsed, err := decode.StaticCluster("backend", "10.0.0.1:80", "10.0.0.2:80")
//	...
//	m := upstream.New(upstream.Config{Store: st}) // or the manager of a server: srv.Clusters()
//	err = m.AddStatic(parsed)
//	m.Start()
//	defer m.Close()
//
//	handle := m.Cluster("backend")  // once: the handle survives updates
//	c := handle.Acquire()           // per request
//	defer c.Release()
//	h, err := c.Pick(nil)           // nanoseconds, no lock
//	conn, err := c.Connect(ctx, h, upstream.DefaultPriority, transport.Options{})
//
// A [Manager] holds the clusters of a process by name. A [Handle] stands for one
// name and leads to its active [Cluster], which an update replaces in one step once
// the new version is ready. Versions share their statistics. A [Source] finds the
// hosts of a cluster and passes them to [Cluster.UpdateHosts].
//
// Picks, breakers and counts are made for the data path: they take no lock. All
// methods are safe for concurrent use. [Hooks] documents the rules for callbacks.
package upstream
