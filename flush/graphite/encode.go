package graphite

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/store"
)

// The first byte of a packet is the kind of its lines. It is not sent.
const (
	markCounts = "c" // increments of counters
	markTimers = "t" // fields of histograms
	markValues = "v" // gauges and rates
)

// paths are the paths of a layout, around the name of a stat.
type paths struct {
	count, countEnd string
	rate, rateEnd   string // both empty: no rates
	gauge           string
	timer           string
}

var layouts = map[Layout]paths{
	Plain:  {},
	Modern: {count: "stats.counters.", countEnd: ".count", rate: "stats.counters.", rateEnd: ".rate", gauge: "stats.gauges.", timer: "stats.timers."},
	Legacy: {count: "stats_counts.", rate: "stats.", gauge: "stats.gauges.", timer: "stats.timers."},
}

// describe reads the name and the tags of the stat under c into s. It returns false,
// and counts, if the stat has no name.
func (s *Sink) describe(c *store.Cursor) bool {
	s.tags = append(s.tags[:0], s.fixed...)
	if family := c.Family(); family != nil && s.cfg.Tagged {
		s.name = s.paths.Name(family)
	} else {
		s.full = c.AppendName(s.full[:0])
		s.paths.Clean(s.full)
		s.name = s.full
	}
	if len(s.name) == 0 {
		s.queue.Skipped()
		return false
	}
	if s.cfg.Tagged {
		for _, l := range c.Labels() {
			s.tags = s.appendTag(s.tags, s.paths.Name(l.Name), l.Value)
		}
	}
	return true
}

// appendTag appends a tag, whose name is cleaned. Graphite has no tags without a value,
// and it overwrites the tag name.
func (s *Sink) appendTag(dst, name, value []byte) []byte {
	if len(value) == 0 {
		value = []byte("true")
	}
	dst = append(dst, ';')
	if string(name) == "name" {
		dst = append(dst, '_')
	}
	return s.paths.Append(append(append(dst, name...), '='), value)
}

// appendPath appends the path of the described stat with the parts of its layout.
func (s *Sink) appendPath(dst []byte, begin, end string) []byte {
	dst = append(append(append(dst, s.prefix...), begin...), s.name...)
	return append(append(dst, end...), s.tags...)
}

// appendValue appends a space and a value.
func appendValue(dst []byte, x float64) []byte {
	return strconv.AppendFloat(append(dst, ' '), x, 'f', -1, 64)
}

// fields calls yield with the fields of a histogram, as StatsD's daemon names them.
// Extremes, count, sum and mean are exact, the others are as exact as the bins.
func (s *Sink) fields(h *histogram.Stats, seconds float64, yield func(field string, x float64)) {
	n := h.Count()
	if n == 0 {
		return
	}
	mean := h.Sum() / float64(n)
	var squares, deviations float64
	bins(h, func(value float64, count uint64) {
		squares += value * value * float64(count)
		deviations += (value - mean) * (value - mean) * float64(count)
	})
	yield(".count", float64(n))
	if seconds > 0 {
		yield(".count_ps", float64(n)/seconds)
	}
	yield(".lower", h.Min())
	yield(".upper", h.Max())
	yield(".mean", mean)
	yield(".median", h.Quantile(0.5))
	yield(".std", math.Sqrt(deviations/float64(n)))
	yield(".sum", h.Sum())
	yield(".sum_squares", squares)
	for _, p := range s.percentiles {
		p.fields(h, yield)
	}
}

// percentile is a share of the smallest values of a histogram.
type percentile struct {
	share                                 float64 // in (0, 1)
	count, mean, upper, sum, sumOfSquares string  // names of the fields
}

func newPercentile(p float64) percentile {
	name := strings.ReplaceAll(strconv.FormatFloat(p, 'f', -1, 64), ".", "_")
	return percentile{p / 100, ".count_" + name, ".mean_" + name, ".upper_" + name, ".sum_" + name, ".sum_squares_" + name}
}

func (p *percentile) fields(h *histogram.Stats, yield func(field string, x float64)) {
	total := h.Count()
	n := uint64(math.Round(p.share * float64(total)))
	if total == 1 {
		n = 1
	}
	if n == 0 {
		return
	}
	var upper, sum, squares float64
	left := n
	bins(h, func(value float64, count uint64) {
		if left == 0 {
			return
		}
		count = min(count, left)
		left -= count
		upper = value
		sum += value * float64(count)
		squares += value * value * float64(count)
	})
	yield(p.count, float64(n))
	yield(p.mean, sum/float64(n))
	yield(p.upper, upper)
	yield(p.sum, sum)
	yield(p.sumOfSquares, squares)
}

// bins calls yield with the middle and the count of each bin, in ascending order. The
// middle does not exceed the extremes of the values.
func bins(h *histogram.Stats, yield func(value float64, count uint64)) {
	divide, low, high := h.Layout().Divisor(), h.Min(), h.Max()
	h.FixedBins(func(lowest, highest int64, count uint64) bool {
		middle := float64(lowest) + float64(uint64(highest-lowest))/2
		yield(min(max(middle/divide, low), high), count)
		return true
	})
}

// increments calls yield for each increment in a packet, with the path as the key.
func increments(packet []byte, yield func(key []byte, n uint64)) {
	if !bytes.HasPrefix(packet, []byte(markCounts)) {
		return
	}
	for line := range bytes.Lines(packet[1:]) {
		path, rest, _ := bytes.Cut(line, []byte(" "))
		value, _, _ := bytes.Cut(rest, []byte(" "))
		if n, err := strconv.ParseUint(string(value), 10, 64); err == nil && n > 0 {
			yield(path, n)
		}
	}
}

// observations returns the number of values of the histograms in a packet.
func observations(packet []byte) (n uint64) {
	if !bytes.HasPrefix(packet, []byte(markTimers)) {
		return 0
	}
	for line := range bytes.Lines(packet[1:]) {
		path, rest, _ := bytes.Cut(line, []byte(" "))
		path, _, _ = bytes.Cut(path, []byte(";"))
		if !bytes.HasSuffix(path, []byte(".count")) {
			continue
		}
		value, _, _ := bytes.Cut(rest, []byte(" "))
		if count, err := strconv.ParseUint(string(value), 10, 64); err == nil {
			n += count
		}
	}
	return n
}
