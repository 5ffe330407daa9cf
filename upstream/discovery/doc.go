// Package discovery finds the hosts of clusters: by DNS names, by assignments
// that somebody delivers, or by a cluster type of the user's own.
//
//	d := discovery.New(discovery.Config{})
//	m := upstream.New(upstream.Config{Store: st, Source: d.Source})
//
// [Sources] is the one place that knows which type is served by what. The types
// STATIC and ORIGINAL_DST need no source: the manager of clusters has what they
// say, and sweeps hosts that are no longer used.
//
// Names are looked up through a [Resolver]. [Client] is the one for DNS; it
// reads the hosts file and the resolver configuration of the system and follows
// their changes. Every name has a goroutine of its own with at most one lookup
// under way; they end when the cluster is closed.
package discovery
