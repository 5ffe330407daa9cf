// Package scrape reads the exposition of the running daemon with Prometheus' programs
// and libraries.
package scrape
