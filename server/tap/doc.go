// Package tap streams the traffic of registered sources to a client. One stream,
// configured by a request, can be attached at a time.
//
//	t := tap.New(tap.Config{})
//	lines := t.Register("statsd")
//	...
//	if s := lines.Session(); s != nil { // one atomic load
//		s.Socket(tap.Read{Data: line})
//	}
//
// Sources never wait: traces that do not fit in the bounded queue of the stream are
// dropped and counted. Traces are Envoy's tap messages, so existing tools can read
// them.
package tap
