package jsonlines

import (
	"bytes"
	"strconv"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/internal/jsontext"
	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
)

// The parts of lines after the time. Inside of strings, quotes have a backslash before
// them, so the parts do not occur there.
const (
	typeCounter   = `"type":"counter",`
	typeGauge     = `"type":"gauge",`
	typeHistogram = `"type":"histogram",`
	keyIncrement  = `,"increment":`
	keyCount      = `,"count":`
)

// describe writes the members with the name and the tags of the stat under c to s.stat.
// It returns false, and counts, if the stat has no name.
func (s *Sink) describe(c *store.Cursor) bool {
	s.name = s.cfg.AppendName(s.name[:0], c)
	if len(s.name) == 0 {
		s.queue.Skipped()
		return false
	}
	b := jsontext.AppendString(append(s.stat[:0], `"name":`...), s.name)
	before := len(b)
	s.cfg.EachTag(c, func(name string, value []byte) {
		if len(b) == before {
			b = append(b, `,"tags":{`...)
		} else {
			b = append(b, ',')
		}
		b = jsontext.AppendString(append(jsontext.AppendString(b, name), ':'), value)
	})
	if len(b) > before {
		b = append(b, '}')
	}
	s.stat = b
	return true
}

// begin begins a line of the described stat.
func (s *Sink) begin(typ string) []byte {
	return append(append(append(s.line[:0], s.time...), typ...), s.stat...)
}

// end adds a line without its last bytes.
func (s *Sink) end(line []byte) {
	s.line = append(line, '}', '\n')
	s.batch.Add(s.line)
}

func (s *Sink) counter(n uint64) {
	s.end(strconv.AppendUint(append(s.begin(typeCounter), keyIncrement...), n, 10))
}

func (s *Sink) histogram(h *histogram.Stats) {
	b := strconv.AppendUint(append(s.begin(typeHistogram), keyCount...), h.Count(), 10)
	b = render.AppendJSONFloat(append(b, `,"sum":`...), h.Sum())
	b = render.AppendJSONFloat(append(b, `,"min":`...), h.Min())
	b = render.AppendJSONFloat(append(b, `,"max":`...), h.Max())
	for i, p := range s.percentiles {
		if i == 0 {
			b = append(b, `,"percentiles":{`...)
		} else {
			b = append(b, ',')
		}
		b = render.AppendJSONFloat(append(b, p.key...), h.Quantile(p.share))
	}
	if len(s.percentiles) > 0 {
		b = append(b, '}')
	}
	s.end(b)
}

// increments calls yield for each increment in a packet. The key has the members that
// identify the counter.
func increments(packet []byte, yield func(key []byte, n uint64)) {
	for line := range bytes.Lines(packet) {
		_, rest, _ := bytes.Cut(line, []byte(typeCounter))
		at := bytes.LastIndex(rest, []byte(keyIncrement))
		if at < 0 {
			continue
		}
		if n := leading(rest[at+len(keyIncrement):]); n > 0 {
			yield(rest[:at], n)
		}
	}
}

// observations returns the number of values of the histograms in a packet.
func observations(packet []byte) (n uint64) {
	for line := range bytes.Lines(packet) {
		_, rest, _ := bytes.Cut(line, []byte(typeHistogram))
		if at := bytes.LastIndex(rest, []byte(keyCount)); at >= 0 {
			n += leading(rest[at+len(keyCount):])
		}
	}
	return n
}

// leading returns the number at the begin of b.
func leading(b []byte) (n uint64) {
	for _, c := range b {
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + uint64(c-'0')
	}
	return n
}
