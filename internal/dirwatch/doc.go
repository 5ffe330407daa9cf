// Package dirwatch tells of changes in directories, and goes on when a directory
// is removed and made again, is not there yet, or is reached over a link that
// points elsewhere later.
//
//	w := dirwatch.Start(logger, func(e dirwatch.Event) { ... })
//	defer w.Close()
//	err := w.Add("/etc/proxy") // looked for again and again if it cannot be watched yet
package dirwatch
