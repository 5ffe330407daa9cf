package statsdsink

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/store"
)

// series is how the lines of a stat begin and end, around ":value|type".
type series struct {
	head, tail []byte
	name       int // length of the name in head, before tags
}

// describe returns the series of the stat under c. It returns false, and counts, if
// nothing is left of its name.
func (s *Sink) describe(c *store.Cursor) (sr series, ok bool) {
	s.head, sr.name = s.appendHead(s.head[:0], c)
	s.tail = s.appendTail(s.tail[:0], c)
	sr.head, sr.tail = s.head, s.tail
	return sr, sr.name > 0
}

// appendHead appends how the lines of the stat under c begin, and returns the length of
// the name, before tags. It is 0, and counted, if nothing is left of the name.
func (s *Sink) appendHead(dst []byte, c *store.Cursor) (head []byte, name int) {
	start := len(dst)
	head = append(dst, s.prefix...)
	if family := c.Family(); family != nil && s.cfg.Format != Plain {
		head = append(head, s.names.Name(family)...)
	} else {
		head = c.AppendName(head)
		s.names.Clean(head[start+len(s.prefix):])
	}
	name = len(head) - start
	if name == len(s.prefix) {
		s.queue.Skipped()
		return dst, 0
	}
	if s.inName() {
		head = s.appendTags(append(head, s.fixed.head...), c.Labels())
		if s.cfg.Format == SignalFX && len(head) > start+name {
			head = append(head, ']')
		}
	}
	return head, name
}

// appendTail appends how the lines of the stat under c end.
func (s *Sink) appendTail(dst []byte, c *store.Cursor) []byte {
	if s.inName() || s.cfg.Format == Plain {
		return dst
	}
	return s.appendTags(append(dst, s.fixed.tail...), c.Labels())
}

// fix sets the parts that all series have.
func (s *Sink) fix() {
	s.names, s.values = sinkqueue.StatsDAlphabet(), sinkqueue.ValueAlphabet()
	switch s.cfg.Format {
	case Graphite:
		s.names = sinkqueue.GraphiteAlphabet()
		s.values = s.names
	case Influx, Librato, SignalFX:
		s.names = sinkqueue.LabelAlphabet()
		s.values = s.names
	}
	if s.cfg.Prefix != "" {
		s.prefix = append(s.names.Append(nil, []byte(s.cfg.Prefix)), '.')
	}
	s.before, s.between, s.equals = s.cfg.Format.separators()
	tags := &s.fixed.tail
	if s.inName() {
		tags = &s.fixed.head
	}
	for i, t := range s.cfg.Tags {
		*tags = s.appendTag(*tags, s.appendKey(nil, i == 0, s.names.Append(nil, []byte(t.Name))), []byte(t.Value))
	}
}

// inName reports whether tags stand in the name.
func (s *Sink) inName() bool { return s.equals == '=' }

func (s *Sink) appendTags(dst []byte, labels []store.Label) []byte {
	for i, l := range labels {
		dst = s.appendTag(dst, s.key(i, l.Name), l.Value)
	}
	return dst
}

// tagKey is the begin of a tag in lines.
type tagKey struct {
	name *store.Name
	text []byte // a separator, the name, and what separates the value
}

// key returns the begin of tag i of a stat. Most stats have the tags of the one before.
func (s *Sink) key(i int, name *store.Name) []byte {
	if i == len(s.keys) {
		s.keys = append(s.keys, tagKey{})
	}
	k := &s.keys[i]
	if k.name != name {
		k.name, k.text = name, s.appendKey(k.text[:0], i+len(s.cfg.Tags) == 0, s.names.Name(name))
	}
	return k.text
}

// appendKey appends the begin of a tag, whose name is cleaned.
func (s *Sink) appendKey(dst []byte, first bool, name []byte) []byte {
	if first {
		dst = append(dst, s.before...)
	} else {
		dst = append(dst, s.between)
	}
	return append(append(dst, name...), s.equals)
}

func (s *Sink) appendTag(dst, key, value []byte) []byte {
	if len(value) == 0 {
		if !s.inName() {
			return append(dst, key[:len(key)-1]...)
		}
		value = []byte("true") // these formats have no tags without value
	}
	return s.values.Append(append(dst, key...), value)
}

// separators returns the bytes before the first and before each other tag, and those
// before values.
func (f Format) separators() (before string, between, equals byte) {
	switch f {
	case Graphite:
		return ";", ';', '='
	case Influx:
		return ",", ',', '='
	case Librato:
		return "#", ',', '='
	case SignalFX:
		return "[", ',', '='
	}
	return "|#", ',', ':'
}

// appendCounter appends the line of an increment.
func appendCounter(dst []byte, sr series, n uint64) []byte {
	return append(appendIncrement(append(dst, sr.head...), n), sr.tail...)
}

// appendIncrement appends the part of the line between head and tail of the series.
func appendIncrement(dst []byte, n uint64) []byte {
	return append(strconv.AppendUint(append(dst, ':'), n, 10), "|c"...)
}

// appendGauge appends the line of a gauge. Receivers take a sign for a change, so a
// negative value needs a line before it that sets the gauge to 0.
func (s *Sink) appendGauge(dst []byte, sr series, value []byte) []byte {
	if value[0] == '-' && !s.cfg.AbsoluteGauges {
		dst = append(append(append(append(dst, sr.head...), ":0|g"...), sr.tail...), '\n')
	}
	dst = append(append(dst, sr.head...), ':')
	return append(append(append(dst, value...), "|g"...), sr.tail...)
}

// appendTimer appends the line of count values in a bin.
func appendTimer(dst []byte, sr series, value float64, unit store.Unit, count uint64) []byte {
	dst = append(append(dst, sr.head...), ':')
	dst = strconv.AppendFloat(dst, value, 'f', -1, 64)
	if unit == store.Percent {
		dst = append(dst, "|h"...)
	} else {
		dst = append(dst, "|ms"...)
	}
	if count > 1 {
		dst = appendRate(append(dst, "|@"...), count)
	}
	return append(dst, sr.tail...)
}

// appendRate appends a sample rate r whose inverse, rounded down, is count, as
// some receivers do. The inverse is close enough to count for receivers that do
// not.
func appendRate(dst []byte, count uint64) []byte {
	n := float64(count)
	start := len(dst)
	for digits := 1; digits <= 17; digits++ {
		r, _ := strconv.ParseFloat(strconv.FormatFloat(1/n, 'e', digits-1, 64), 64)
		for range 2 {
			dst = strconv.AppendFloat(dst[:start], r, 'f', -1, 64)
			if inverse := 1 / r; inverse >= n && inverse-n < max(1e-9, n*1e-15) {
				return dst
			}
			r -= math.Pow10(int(math.Floor(math.Log10(r))) - digits + 1) // the next lower decimal
			r, _ = strconv.ParseFloat(strconv.FormatFloat(r, 'e', digits-1, 64), 64)
		}
	}
	return dst
}

// bins calls yield with a value in the unit of lines and a count for each bin of the
// interval. Timers are in milliseconds.
func bins(h *histogram.Stats, unit store.Unit, yield func(value float64, count uint64)) {
	divide, factor := h.Layout().Divisor(), 1.0
	if unit == store.Seconds {
		factor = 1000
	}
	low, high := math.Round(h.Min()*divide), math.Round(h.Max()*divide)
	h.FixedBins(func(lowest, highest int64, count uint64) bool {
		value := lowest
		if highest > lowest { // the bin holds more than one value
			value += int64((uint64(highest-lowest) + 1) / 2)
		}
		// A single division of a whole number has the fewest digits.
		yield(min(max(float64(value), low), high)*factor/divide, count)
		return true
	})
}

// summaryQuantiles are the quantiles of summaries.
var summaryQuantiles = [...]float64{0.5, 0.9, 0.95, 0.99}

// increments calls yield for each counter line in data. The key of a series is its
// line without the value, which a line feed replaces.
func increments(data []byte, yield func(key []byte, n uint64)) {
	var key []byte
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		head, rest, ok := bytes.Cut(line, []byte(":"))
		value, tail, ok2 := bytes.Cut(rest, []byte("|"))
		if !ok || !ok2 || isEvent(line) || len(tail) == 0 || tail[0] != 'c' {
			continue
		}
		n, err := strconv.ParseUint(string(value), 10, 64)
		if err != nil || n == 0 {
			continue
		}
		key = append(append(append(key[:0], head...), '\n'), tail[1:]...)
		yield(key, n)
	}
}

// observations returns the number of values that the timer lines in data stand for.
func observations(data []byte) (n uint64) {
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		head, rest, _ := bytes.Cut(line, []byte("|"))
		kind, rest, _ := bytes.Cut(rest, []byte("|"))
		if len(head) == 0 || string(kind) != "ms" && string(kind) != "h" || isEvent(line) {
			continue
		}
		rate, _, _ := bytes.Cut(rest, []byte("|"))
		if len(rate) == 0 || rate[0] != '@' {
			n++
			continue
		}
		if r, err := strconv.ParseFloat(string(rate[1:]), 64); err == nil && r > 0 {
			n += uint64(1 / r)
		}
	}
	return n
}

// isEvent reports whether a line is that of an event or a service check.
func isEvent(line []byte) bool {
	return bytes.HasPrefix(line, []byte("_e{")) || bytes.HasPrefix(line, []byte("_sc|"))
}

// keyOf appends the key of a series, in the form of increments.
func keyOf(dst []byte, sr series) []byte {
	return append(append(append(dst, sr.head...), '\n'), sr.tail...)
}

// seriesOf is the inverse of keyOf.
func seriesOf(key string) series {
	head, tail, _ := strings.Cut(key, "\n")
	return series{head: []byte(head), tail: []byte(tail)}
}
