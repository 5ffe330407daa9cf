// Package discovery finds the hosts of clusters: by DNS names, by delivered
// assignments, or by custom cluster types.
//
//	d := discovery.New(discovery.Config{})
//	m := upstream.New(upstream.Config{Store: st, Source: d.Source})
//
// [Sources] selects the source for each cluster type. The types STATIC and
// ORIGINAL_DST need no source: the cluster manager creates their hosts itself.
//
// Names are looked up through a [Resolver]. [Client] uses DNS; it reads the
// hosts file and the resolver configuration of the system and follows their
// changes. Every name has its own goroutine with at most one lookup in
// progress, which ends when the cluster is closed.
package discovery
