// Package exposition checks the exposition formats with the parsers of the Prometheus
// server and of its client libraries.
package exposition
