// Package render writes the stats of a store as plain text, JSON, HTML and in
// the exposition formats: text, OpenMetrics and protobuf.
//
//	err := render.Text(w, st, render.Options{UsedOnly: true})
//
// Output is streamed: a renderer walks the ordered names, appends to one
// buffer of bounded size and hands that to the writer when it is full. Nothing
// grows with the number of stats, and no lock is held while the writer works,
// so a reader may be as slow as it likes. Values are read as they are when
// their line is written.
//
// The renderers know no HTTP. They may be used from any number of goroutines;
// a single call writes from the goroutine that made it.
package render
