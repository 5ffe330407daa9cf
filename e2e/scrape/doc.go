// Package scrape reads the exposition of the running daemon with the programs
// and libraries of Prometheus.
package scrape
