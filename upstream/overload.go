package upstream

import "math"

// DropOverload returns the percentage of requests, 0 to 100, that
// [Cluster.DropRequest] drops according to the last assignment.
func (c *Cluster) DropOverload() float64 { return math.Float64frombits(c.dropOverload.Load()) }

// DropRequest decides at random whether to refuse a request because the assignment
// of the cluster asks to shed load, and counts the refusal.
func (c *Cluster) DropRequest() bool {
	percent := c.DropOverload()
	if percent <= 0 || float64(c.env.Rand()%1_000_000) >= percent*10_000 {
		return false
	}
	c.dropped.Add(1)
	return true
}

// DroppedRequests returns how many requests [Cluster.DropRequest] has refused, for
// load reports.
func (c *Cluster) DroppedRequests() uint64 { return c.dropped.Load() }
