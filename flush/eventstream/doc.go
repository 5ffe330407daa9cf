// Package eventstream shows the requests of clusters to circuit breaker
// dashboards: one stream of server-sent events for each client, fed by the
// flushes of a store.
//
//	stream := eventstream.New(eventstream.Config{Interval: 5 * time.Second})
//	... // a sink of package flush
//	client, err := stream.Subscribe()
//	defer client.Close()
//	err = client.Serve(w, closing) // until closing is closed or w fails
//
// Without clients a flush costs one lock. Otherwise its cost grows with the
// number of clusters, not of other stats. A client that does not keep up is
// dropped; it never blocks a flush or another client.
package eventstream
