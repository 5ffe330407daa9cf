// Package graphite sends stats to Graphite in its plaintext protocol over TCP.
//
// Counters are sent as increments, gauges as values, and histograms as the fields of
// StatsD's timers. Each line has the time of its flush, also after the clock was set back.
// Text readouts are not sent.
// Package sinkqueue describes what happens to increments while the receiver is down.
package graphite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/store"
)

// Layout is the position of stats in the tree of paths.
type Layout string

// The layouts. Fields of histograms follow the name in all of them.
const (
	Plain  Layout = "plain"  // the name
	Modern Layout = "modern" // stats.counters.NAME.count and .rate, stats.gauges.NAME, stats.timers.NAME
	Legacy Layout = "legacy" // stats_counts.NAME and the rate in stats.NAME, stats.gauges.NAME, stats.timers.NAME
)

// packetBytes limits the size of a packet.
const packetBytes = 64 << 10

// The percentile and the limit of the number of percentiles of a [Config].
const (
	DefaultPercentile = 90
	MaxPercentiles    = 32
)

// Config are the settings of a [Sink].
type Config struct {
	// Options are the settings that all sinks share. The default name is
	// "graphite". Tags need Tagged.
	sinkqueue.Options
	// Address is the host:port of the receiver, usually with port 2003.
	// Required.
	Address string
	// Layout is the position of stats in the tree. Default Plain.
	Layout Layout
	// Tagged sends tags after the path, as ;name=value. Default: names contain
	// them.
	Tagged bool
	// Percentiles of histograms, above 0 and below 100: for each, count, mean,
	// upper, sum and sum_squares of the smallest values of that share are sent.
	// Nil means 90, as in StatsD's daemon; empty means none.
	Percentiles []float64
	// ZeroDeltas sends 0 for counters that did not grow, as StatsD's daemon does.
	ZeroDeltas bool
	// Timeout limits an attempt to connect or send. Default 2 s.
	Timeout time.Duration

	dial func(context.Context) (net.Conn, error) // of tests
}

// Sink is a [flush.Sink] that sends lines to Graphite. Create it with [New].
type Sink struct {
	sinkqueue.Sender
	cfg         Config
	queue       *sinkqueue.Queue
	conn        *sinkqueue.Conn
	paths       *sinkqueue.Alphabet
	prefix      string // cleaned, with a dot at its end
	fixed       []byte // Tags
	percentiles []percentile

	// Of Flush.
	last                   int64 // time of the flush before, in seconds
	counts, timers, values sinkqueue.Batch
	name, tags, path       []byte
	full, end              []byte
}

var _ flush.Runner = (*Sink)(nil)

// New checks cfg and returns a sink. Nothing is sent before Run.
func New(cfg Config) (*Sink, error) {
	if err := cfg.Check("graphite", "graphite"); err != nil {
		return nil, err
	}
	if _, _, err := net.SplitHostPort(cfg.Address); err != nil {
		return nil, fmt.Errorf("graphite: address %q is not host:port", cfg.Address)
	}
	cfg.Layout = cmp.Or(cfg.Layout, Plain)
	if _, ok := layouts[cfg.Layout]; !ok {
		return nil, fmt.Errorf("graphite: layout %q is not one of plain, modern, legacy", cfg.Layout)
	}
	if len(cfg.Tags) > 0 && !cfg.Tagged {
		return nil, errors.New("graphite: constant tags need Tagged")
	}
	if cfg.Percentiles == nil {
		cfg.Percentiles = []float64{DefaultPercentile}
	}
	if len(cfg.Percentiles) > MaxPercentiles {
		return nil, fmt.Errorf("graphite: %d percentiles, at most %d are allowed", len(cfg.Percentiles), MaxPercentiles)
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 2 * time.Second
	}
	s := &Sink{cfg: cfg, paths: sinkqueue.GraphiteAlphabet(), conn: sinkqueue.NewConn(sinkqueue.ConnConfig{
		Network: sinkqueue.TCP, Address: cfg.Address, Timeout: cfg.Timeout, PacketBytes: packetBytes, Dial: cfg.dial,
	})}
	for _, p := range cfg.Percentiles {
		if !(p > 0 && p < 100) {
			return nil, fmt.Errorf("graphite: percentile %v is not above 0 and below 100", p)
		}
		s.percentiles = append(s.percentiles, newPercentile(p))
	}
	if cfg.Prefix != "" {
		s.prefix = string(s.paths.Append(nil, []byte(cfg.Prefix))) + "."
	}
	for _, t := range cfg.Tags {
		s.fixed = s.appendTag(s.fixed, s.paths.Append(nil, []byte(t.Name)), []byte(t.Value))
	}
	s.use(sinkqueue.New(sinkqueue.Config{
		Options: cfg.Options, Kind: "graphite", Target: "tcp://" + cfg.Address,
		Send: s.send, Ended: s.conn.Close, Increments: increments, Observations: observations,
	}))
	return s, nil
}

// use makes q the queue of s.
func (s *Sink) use(q *sinkqueue.Queue) {
	s.queue, s.Sender = q, q.Sender()
	s.counts = sinkqueue.Batch{Queue: q, Limit: packetBytes, Head: markCounts}
	s.timers = sinkqueue.Batch{Queue: q, Limit: packetBytes, Head: markTimers}
	s.values = sinkqueue.Batch{Queue: q, Limit: packetBytes, Head: markValues}
}

// send makes one attempt to send a packet without its mark; see [sinkqueue.Config].
func (s *Sink) send(ctx context.Context, data []byte) (int, error) {
	if n, err := s.conn.Send(ctx, data[1:]); err != nil {
		return n, err
	}
	return len(data), nil
}

// mostAhead is by how many seconds the time of lines can be ahead of the clock, which
// more than one flush a second causes. A greater difference is a clock that was set back.
const mostAhead = 10

// Flush queues the lines of a flush. It does not wait for the network.
func (s *Sink) Flush(snap *store.Snapshot) error {
	at, l := snap.Time.Unix(), layouts[s.cfg.Layout]
	if ahead := s.last - at; ahead >= 0 && ahead < mostAhead { // its points would replace those of earlier flushes
		at = s.last + 1
	}
	s.last = at
	s.end = append(strconv.AppendInt(append(s.end[:0], ' '), at, 10), '\n')
	s.sendCounters(snap, l)
	s.sendGauges(l)
	s.sendTimers(snap, l)
	s.counts.End()
	s.values.End()
	s.timers.End()
	return nil
}

// sendCounters adds increments, including the owed ones. Rates are of the interval
// only.
func (s *Sink) sendCounters(snap *store.Snapshot, l paths) {
	owed, seconds := s.queue.Owed(), snap.Interval.Seconds()
	var sent map[string]struct{} // paths of counts
	if s.cfg.ZeroDeltas {
		sent = map[string]struct{}{}
	}
	s.cfg.Filter.Counters(snap, func(c *store.Cursor, delta uint64) {
		if !s.describe(c) {
			return
		}
		if l.rate != "" && seconds > 0 {
			s.path = s.appendPath(s.path[:0], l.rate, l.rateEnd)
			s.put(&s.values, appendValue(s.path, float64(delta)/seconds))
		}
		s.path = s.appendPath(s.path[:0], l.count, l.countEnd)
		if sent != nil {
			sent[string(s.path)] = struct{}{}
		}
		s.count(delta + owed.Take(s.path))
	})
	for path, n := range owed {
		s.path = append(s.path[:0], path...)
		if sent != nil {
			sent[path] = struct{}{}
		}
		s.count(n)
	}
	if sent != nil {
		s.sendIdle(sent, l)
	}
}

// sendIdle adds 0 for the used counters whose counts were not sent.
func (s *Sink) sendIdle(sent map[string]struct{}, l paths) {
	v := s.cfg.Store.View()
	defer v.Close()
	s.cfg.Filter.Used(v, store.KindCounter, func(c *store.Cursor) {
		if !s.describe(c) {
			return
		}
		s.path = s.appendPath(s.path[:0], l.count, l.countEnd)
		if _, ok := sent[string(s.path)]; ok {
			return
		}
		s.count(0)
		if l.rate != "" {
			s.path = s.appendPath(s.path[:0], l.rate, l.rateEnd)
			s.put(&s.values, appendValue(s.path, 0))
		}
	})
}

// count adds the increment n of s.path.
func (s *Sink) count(n uint64) {
	s.put(&s.counts, strconv.AppendUint(append(s.path, ' '), n, 10))
}

// sendGauges adds all gauges that were ever set.
func (s *Sink) sendGauges(l paths) {
	v := s.cfg.Store.View()
	defer v.Close()
	s.cfg.Filter.Used(v, store.KindGauge, func(c *store.Cursor) {
		if s.describe(c) {
			s.path = append(s.appendPath(s.path[:0], l.gauge, ""), ' ')
			s.put(&s.values, c.AppendInterval(s.path))
		}
	})
}

func (s *Sink) sendTimers(snap *store.Snapshot, l paths) {
	seconds := snap.Interval.Seconds()
	s.cfg.Filter.Histograms(snap, func(c *store.Cursor, h *histogram.Snapshot) {
		if s.describe(c) {
			s.fields(h.Interval, seconds, func(field string, x float64) {
				s.path = s.appendPath(s.path[:0], l.timer, field)
				s.put(&s.timers, appendValue(s.path, x))
			})
		}
	})
}

// put adds a line without its end and keeps its memory for the next path.
func (s *Sink) put(b *sinkqueue.Batch, line []byte) {
	line = append(line, s.end...)
	b.Add(line)
	s.path = line
}
