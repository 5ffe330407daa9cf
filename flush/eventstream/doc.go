// Package eventstream shows the requests of clusters to circuit breaker
// dashboards: one stream of server-sent events for each that listens, fed by
// the flushes of a store.
//
//	stream := eventstream.New(eventstream.Config{Interval: 5 * time.Second})
//	... // a sink of package flush
//	client, err := stream.Subscribe()
//	defer client.Close()
//	err = client.Serve(w, closing) // until closing is closed or w fails
//
// While nobody listens a flush costs one lock. Otherwise its cost grows with
// the number of clusters, not with that of other stats. A client that does not
// keep up is dropped; it never holds up a flush or another client.
package eventstream
