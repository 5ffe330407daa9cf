// Package process keeps metrics of the process and the Go runtime in a store.
//
//	st := store.New(store.Options{Naming: naming.Rules{Bare: process.Segments()}})
//	remove, err := process.Register(st)
//
// Names are as in Prometheus' client libraries with a dot after the first
// word, such as process.cpu_seconds_total and go.memstats.alloc_bytes. The
// exposition shows process_cpu_seconds_total and go_memstats_alloc_bytes if the
// store's naming has [Segments] in Bare. Values are read whenever a view is
// opened or the store is flushed.
package process
