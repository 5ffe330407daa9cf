package eventstream

import (
	"bytes"
	"strings"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/store"
)

// feed is a stat of a cluster that the stream shows.
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

// feedNames are the last parts of the names, by feed. A name that ends like
// another follows it.
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

// parseName splits the full name of a stat into its cluster and its feed, which
// is noFeed if the stream does not show the stat.
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

// series are the counts over the window.
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

// cluster is the state of one cluster while there are clients.
type cluster struct {
	name   string // in the names of stats
	shown  string // in events
	quoted []byte // shown as a JSON string

	// Of the flush that is under way.
	seen   uint64 // the flush's number
	values [feedMembers]uint64
	hosts  uint64
	listed bool // it has a membership_total
	times  *histogram.Stats

	ring []sample // the last samples; ring[next] is the oldest
	next int
}

// visible reports whether c is a cluster. The first part of a stat's name is the
// name of a cluster if that has a membership_total or is a single word.
// Otherwise it can include a part of a cluster's stats, such as a zone.
func (c *cluster) visible() bool { return c.listed || !strings.Contains(c.name, ".") }

// take stores the value at the cursor.
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

// sum returns the counts since the start. The stream shows differences of these
// sums, so failures can be below zero here.
func (c *cluster) sum() (s sample) {
	v := &c.values
	s[timeouts] = v[feedTimeout] + v[feedPerTryTimeout]
	s[failures] = v[feed5xx] + v[feedRetry5xx] + v[feed4xx] + v[feedRetry4xx] - v[feedTimeout]
	s[success] = v[feed2xx]
	s[rejected] = v[feedPendingOverflow]
	s[total] = s[failures] + s[timeouts] + s[success] + s[rejected]
	return s
}

// roll replaces the oldest sums in the ring with the present ones and returns
// the growth of each series over the window, 0 if counters were reset.
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
