// Package health checks hosts actively: by HTTP, by TCP and by the gRPC health
// service.
//
// A [Checker] runs the checks of one cluster, one session per host. Sessions
// sleep in timers; a goroutine exists only while a check is under way. What the
// checks find out is written into the flags of the hosts and reported through
// one callback.
//
// Checks use connections of their own, so they move no statistics of requests.
package health
