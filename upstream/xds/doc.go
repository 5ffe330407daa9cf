// Package xds follows control planes and files. They configure the clusters of a
// manager, the hosts of its EDS clusters, the secrets of its TLS contexts and layers
// of runtime values.
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
// The client speaks gRPC with servers, in the state-of-the-world and the delta
// variant, over one aggregated stream or one stream per subscription. A file holds
// one discovery response as YAML, JSON or, with the extension .pb, wire bytes. It is
// read again when a file is moved into place.
//
// Each resource of a response is accepted or rejected separately. A rejection
// reports every error in it, and the last valid version stays in effect. All
// methods are safe for concurrent use.
package xds
