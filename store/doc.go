// Package store holds the statistics of a server: counters, gauges, text
// readouts and histograms, each known by one dotted name.
//
//	st := store.New(store.Options{})
//	in := st.Scope("http.ingress")
//	total := in.Counter("downstream_rq_total")
//	total.Inc() // nanoseconds: no lock, no lookup, no allocation
//
// Handles (*Counter, *Gauge, *FloatGauge, *TextReadout, *Histogram) are fast:
// get them from a [Scope] at startup, keep the pointer, and use it from any
// number of goroutines. Looking up a name in a scope takes some tens of
// nanoseconds, or the time to create the stat.
//
// A refused stat (by a limit, the stats matcher, or because the name has another
// kind) is a null stat: it accepts writes, its value is 0 and no output shows
// it, so callers need no error path. The Try methods return the reason, and a name
// used with another kind is logged once; see [Store.SetLogger].
//
// Readers open a [View], an immutable list of the ordered names, and read values
// live. Walking a view holds no lock.
//
// All types are safe for concurrent use unless their comment says otherwise.
// Handles and scopes must not be copied.
package store
