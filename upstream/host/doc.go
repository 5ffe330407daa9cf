// Package host holds the hosts of upstream clusters and the immutable sets
// they are balanced over.
//
// A [Host] is one object shared by everybody that deals with it: the balancer
// reads its weight and its active requests, the health checker and the outlier
// detector set its flags, the proxy counts on its [Stats], the admin page shows
// it all. What may change in place is atomic; everything else is fixed when the
// host is made.
//
// A [Set] is a picture of the hosts of one priority, sorted into healthy,
// degraded and excluded ones and grouped by locality. It never changes; a
// change of any host that matters makes a new one.
package host
