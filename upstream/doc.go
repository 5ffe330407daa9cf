// Package upstream runs clusters of upstream hosts: who belongs to them, who is
// healthy, who gets the next request, how much they may take, and what became
// of it.
//
//	m := upstream.New(upstream.Config{Store: st})
//	m.AddStatic(parsed)
//	m.Start()
//	defer m.Close()
//
//	c := m.Cluster("backend")       // once: the handle survives updates
//	cl := c.Current()
//	h, err := cl.Pick(nil)          // per request: nanoseconds, no lock
//
// A [Manager] holds the clusters of a process by name. A [Handle] is one name;
// it leads to the active [Cluster] of that name, which an update replaces in one
// step once the new one is ready. A [Source] finds the hosts of a cluster and
// tells them by [Cluster.UpdateHosts].
//
// Picks, breakers and counts are for the data path: they take no lock and may be
// called by any number of goroutines. Everything else is the slow side and safe
// for concurrent use too. What callbacks may do is said at [Hooks].
package upstream
