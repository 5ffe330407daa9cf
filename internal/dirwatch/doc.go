// Package dirwatch reports changes in directories. It continues when a directory is
// removed and recreated, does not exist yet, or is reached over a link whose target
// changes.
//
//	w := dirwatch.Start(logger, func(e dirwatch.Event) { ... })
//	defer w.Close()
//	err := w.Add("/etc/proxy") // retried until it can be watched
package dirwatch
