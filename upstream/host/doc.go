// Package host holds the hosts of upstream clusters and the immutable sets that load
// balancers use.
//
// A [Host] is one object shared by the whole process: the balancer reads its weight and
// its active requests, the health checker and the outlier detector set its flags, the
// proxy updates its [Stats], and the admin page shows it. Fields that change are
// atomic; the others are fixed when the host is made.
//
// A [Set] is a snapshot of the hosts of one priority, sorted into healthy, degraded and
// excluded hosts and grouped by locality. A relevant change of a host makes a new set.
package host
