// Package store holds the statistics of a server: counters, gauges, text
// readouts and histograms, each known by one dotted name.
//
//	st := store.New(store.Options{})
//	in := st.Scope("http.ingress")
//	total := in.Counter("downstream_rq_total")
//	total.Inc() // nanoseconds: no lock, no look-up, no allocation
//
// There is a fast side and a slow side. Handles (*Counter, *Gauge,
// *FloatGauge, *TextReadout, *Histogram) are the fast side: ask a [Scope] for
// one when things are set up, keep the pointer, and call it from any number of
// goroutines. Asking a scope for a name is the slow side: a look-up of some
// tens of nanoseconds, or the creation of the stat.
//
// A stat that is refused (a limit, the stats matcher, a name that already has
// another kind) is a null stat: it takes writes, its value is 0 and it shows
// nowhere, so callers need no error path. The Try forms say why.
//
// Readers take a [View]: an immutable picture of the ordered names. Values are
// read live through it. No lock is held while a view is walked.
//
// All types are safe for concurrent use unless their comment says otherwise.
// Handles and scopes must not be copied.
package store
