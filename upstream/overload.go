package upstream

import "math"

// DropOverload returns the percentage of requests that the last assignment asks
// to drop, 0 to 100. [Cluster.DropRequest] draws them.
func (c *Cluster) DropOverload() float64 { return math.Float64frombits(c.dropOverload.Load()) }

// DropRequest draws whether a request is to be refused because the assignment of
// the cluster asks to shed load, to the millionth, and counts it then.
func (c *Cluster) DropRequest() bool {
	percent := c.DropOverload()
	if percent <= 0 || float64(c.env.rand()%1_000_000) >= percent*10_000 {
		return false
	}
	c.dropped.Add(1)
	return true
}

// DroppedRequests returns how many requests [Cluster.DropRequest] has refused. It
// is for reports of load and no statistic.
func (c *Cluster) DroppedRequests() uint64 { return c.dropped.Load() }
