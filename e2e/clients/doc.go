// Package clients sends to the daemon with StatsD clients that others wrote, as
// their users do.
package clients
