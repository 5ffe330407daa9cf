// Package exposition checks the exposition formats with parsers that others
// wrote: those of the Prometheus server and of its client libraries.
package exposition
