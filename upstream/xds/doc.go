// Package xds follows control planes: it keeps the clusters of a manager, the
// hosts of its EDS clusters, the secrets of its TLS contexts and layers of runtime
// values as a management server or a file wants them.
//
//	x, err := xds.New(xds.Config{Store: st, Decoder: d, Node: node, ADS: ads, CDS: cds})
//	if err != nil {
//		return err
//	}
//	f := transport.New(transport.Config{Secrets: x.Secrets()})
//	m := upstream.New(upstream.Config{Store: st, Source: x.Source, Transport: f})
//	x.Attach(m)
//	// add the static clusters, then
//	if err := x.Check(); err != nil {
//		return err
//	}
//	go x.Run(ctx)
//	m.Start()
//
// Servers are spoken to over gRPC, in the state-of-the-world and in the delta
// variant, on one aggregated stream or on one stream per subscription. Files
// hold one discovery response as YAML, JSON or, if their names end in .pb, as
// wire bytes; they are read again when a file is moved into place.
//
// What is good in a response is put in force, what is bad is refused with an
// error that names every mistake, and what was in force before stays. All of it
// is safe for concurrent use.
package xds
