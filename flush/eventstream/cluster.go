package eventstream

import (
	"bytes"
	"strings"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/store"
)

// feed is one of the stats of a cluster that the stream shows.
type feed uint8

const (
	feedTimeout feed = iota
	feedPerTryTimeout
	feed5xx
	feedRetry5xx
	feed4xx
	feedRetry4xx
	feed2xx
	feedPendingOverflow
	feedMembers // gauge
	feedTime    // histogram

	feeds     = 10
	noFeed    = feed(feeds)
	namePlace = "cluster." // what the names of all of them begin with
)

// feedNames are the last parts of the names, by feed. One that ends like
// another comes after it.
var feedNames = [feeds]string{
	feedTimeout:         ".upstream_rq_timeout",
	feedPerTryTimeout:   ".upstream_rq_per_try_timeout",
	feed5xx:             ".upstream_rq_5xx",
	feedRetry5xx:        ".retry.upstream_rq_5xx",
	feed4xx:             ".upstream_rq_4xx",
	feedRetry4xx:        ".retry.upstream_rq_4xx",
	feed2xx:             ".upstream_rq_2xx",
	feedPendingOverflow: ".upstream_rq_pending_overflow",
	feedMembers:         ".membership_total",
	feedTime:            ".upstream_rq_time",
}

// parseName splits the full name of a stat into the cluster it belongs to and
// what it tells about it, noFeed if that is nothing for the stream.
func parseName(name []byte) (cluster []byte, f feed) {
	rest, ok := bytes.CutPrefix(name, []byte(namePlace))
	if !ok {
		return nil, noFeed
	}
	f = noFeed
	for i, end := range feedNames {
		if n := len(rest) - len(end); n > 0 && string(rest[n:]) == end {
			cluster, f = rest[:n], feed(i)
		}
	}
	return cluster, f
}

// series are what is counted over the window.
type series uint8

const (
	timeouts series = iota
	failures
	success
	rejected
	total

	allSeries = 5
)

type sample [allSeries]uint64

// cluster is what is known about one cluster while somebody listens.
type cluster struct {
	name   string
	quoted []byte // the name as a JSON string

	// Of the flush that is under way.
	seen   uint64 // the flush's number
	values [feedMembers]uint64
	hosts  uint64
	listed bool // it has a membership_total
	times  *histogram.Stats

	ring []sample // the last samples; ring[next] is the oldest
	next int
}

// visible reports whether the cluster is one. What stands before the last part
// of a name is the name of a cluster if there are members of it. Without that
// it may be a part of a cluster's stats, such as those of a zone, unless it is
// a single word.
func (c *cluster) visible() bool { return c.listed || !strings.Contains(c.name, ".") }

// take notes the value that the cursor stands on.
func (c *cluster) take(f feed, cur *store.Cursor) {
	switch f {
	case feedMembers:
		c.hosts, c.listed = cur.Uint(), true
	case feedTime:
		c.times = cur.Histogram().Snapshot().Interval
	default:
		c.values[f] = cur.Uint()
	}
}

// sum returns what was counted since the start. Differences of these sums are
// what is shown, so it does no harm that failures may be below zero.
func (c *cluster) sum() (s sample) {
	v := &c.values
	s[timeouts] = v[feedTimeout] + v[feedPerTryTimeout]
	s[failures] = v[feed5xx] + v[feedRetry5xx] + v[feed4xx] + v[feedRetry4xx] - v[feedTimeout]
	s[success] = v[feed2xx]
	s[rejected] = v[feedPendingOverflow]
	s[total] = s[failures] + s[timeouts] + s[success] + s[rejected]
	return s
}

// roll adds the present sums to the ring, in the place of the oldest ones, and
// returns how much each series grew over the window. What shrank, because
// counters were reset, is 0.
func (c *cluster) roll(buckets int) (grown sample) {
	newest := c.sum()
	if c.ring == nil {
		c.ring = make([]sample, buckets+1)
		for i := range c.ring {
			c.ring[i] = newest
		}
	}
	c.ring[c.next] = newest
	c.next = (c.next + 1) % len(c.ring)
	oldest := &c.ring[c.next]
	for i := range grown {
		grown[i] = uint64(max(int64(newest[i]-oldest[i]), 0))
	}
	return grown
}
