// Package render writes the stats of a store as plain text, JSON, HTML and in
// the exposition formats: text, OpenMetrics and protobuf.
//
//	err := render.Text(w, st, render.Options{UsedOnly: true})
//
// Output is streamed: a renderer walks the ordered names, appends to one buffer
// of bounded size and hands that to the writer when it is full. Memory does not
// grow with the number of stats, and no lock is held during a write, so a slow
// reader blocks nothing. Each value is read when its line is written.
//
// The renderers are independent of HTTP and safe for concurrent use. A call
// writes on the goroutine of its caller.
package render
