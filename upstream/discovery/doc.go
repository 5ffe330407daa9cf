// Package discovery finds the hosts of clusters: by DNS names, by delivered
// assignments, or by custom cluster types.
package discovery
