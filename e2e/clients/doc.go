// Package clients sends to the daemon with public StatsD clients.
package clients
