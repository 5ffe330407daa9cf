// Package health checks hosts actively: by HTTP, TCP and the gRPC health service.
//
// A [Checker] runs the checks of one cluster, with one session per host. Sessions wait
// in timers; a goroutine exists only while a check runs. Results change the flags of
// the hosts and are reported to one callback.
//
// Checks use their own connections, so they do not change the statistics of requests.
package health
