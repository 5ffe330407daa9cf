// Package tap shows what a server takes in while somebody looks: one stream at
// a time, set up by a request, fed by the sources that are registered.
//
//	t := tap.New(tap.Config{})
//	lines := t.Register("statsd")
//	...
//	if s := lines.Session(); s != nil { // one atomic load
//		s.Socket(tap.Read{Data: line})
//	}
//
// Sources never wait: what does not fit in the bounded queue of the stream is
// dropped and counted. Traces are the messages that tools for taps know.
package tap
