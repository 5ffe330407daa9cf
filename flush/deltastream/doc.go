// Package deltastream sends the stats that changed, about every second, to any
// number of clients as server-sent events.
//
//	stream := deltastream.New(deltastream.Config{Store: st})
//	go stream.Run(ctx)
//	client, err := stream.Subscribe(deltastream.Request{})
//	defer client.Close()
//	err = client.Serve(w, closing) // until closing is closed or w fails
//
// All clients share one watch of the store and one ring of recent changes,
// within a budget of bytes; a client is a position in the ring. A slow client
// gets several changes merged into one event. A client that falls behind the
// ring gets an event "reset" and starts over. Neither delays other clients.
// Without clients nothing runs.
//
// docs/live.md has the format of the events.
package deltastream
