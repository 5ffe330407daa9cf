// Package jsonlines writes stats to a file or to standard output, one JSON
// object per line.
//
// Counters are written as increments, gauges as values, and histograms as count, sum,
// extremes and percentiles of the interval. Text readouts are not written. Package
// sinkqueue describes what happens to increments while the file cannot be written.
package jsonlines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/internal/logfile"
	"github.com/statsd-admin/statsd-admin/store"
)

// packetBytes limits the size of a packet.
const packetBytes = 64 << 10

const timeFormat = "2006-01-02T15:04:05.000Z"

// MaxPercentiles is how many percentiles a [Config] can have.
const MaxPercentiles = 32

// Config are the settings of a [Sink].
type Config struct {
	// Options are the settings that all sinks share. The default name is
	// "json_lines". Tags are added to every stat that has no tag of the name.
	sinkqueue.Options
	// Path is the file to append to, which is created if it does not exist.
	// /dev/stdout and /dev/stderr are the streams of the process. Required.
	Path string
	// Percentiles of histograms, from 0 to 100. Nil means 50, 90 and 99; empty means
	// none.
	Percentiles []float64

	write func([]byte) (int, error) // of tests, in place of the file's
}

// Sink is a [flush.Sink] that writes lines. Create it with [New].
type Sink struct {
	sinkqueue.Sender
	cfg         Config
	queue       *sinkqueue.Queue
	percentiles []percentile

	mu   sync.Mutex    // guards file
	file *logfile.File // nil before the first packet

	// Of Flush.
	batch sinkqueue.Batch
	time  []byte // the begin of all lines
	name  []byte
	stat  []byte // the members of a line that identify a stat
	line  []byte
}

type percentile struct {
	key   string // with the punctuation of a member
	share float64
}

var _ flush.Runner = (*Sink)(nil)

// New checks the path and returns a sink. The first packet opens the file, so that a sink
// that does not run leaves nothing behind.
func New(cfg Config) (*Sink, error) {
	if err := cfg.Check("jsonlines", "json_lines"); err != nil {
		return nil, err
	}
	if cfg.Path == "" {
		return nil, errors.New("jsonlines: no path")
	}
	if cfg.Percentiles == nil {
		cfg.Percentiles = []float64{50, 90, 99}
	}
	if len(cfg.Percentiles) > MaxPercentiles {
		return nil, fmt.Errorf("jsonlines: %d percentiles, at most %d are allowed", len(cfg.Percentiles), MaxPercentiles)
	}
	s := &Sink{cfg: cfg}
	for _, p := range cfg.Percentiles {
		if !(p >= 0 && p <= 100) {
			return nil, fmt.Errorf("jsonlines: percentile %v is not in [0,100]", p)
		}
		s.percentiles = append(s.percentiles, percentile{`"` + strconv.FormatFloat(p, 'f', -1, 64) + `":`, p / 100})
	}
	if err := logfile.Check(cfg.Path); err != nil {
		return nil, fmt.Errorf("jsonlines: %q: %w", cfg.Path, err)
	}
	write := s.write
	if cfg.write != nil {
		write = cfg.write
	}
	s.queue = sinkqueue.New(sinkqueue.Config{
		Options: cfg.Options, Kind: "json_lines", Target: cfg.Path,
		Send:  func(_ context.Context, data []byte) (int, error) { return write(data) },
		Ended: s.closeFile,
		Count: func(b []byte) int { return bytes.Count(b, []byte("\n")) }, Increments: increments, Observations: observations,
	})
	s.Sender = s.queue.Sender()
	s.batch = sinkqueue.Batch{Queue: s.queue, Limit: packetBytes}
	return s, nil
}

// write writes a packet to the file, which it opens if necessary.
func (s *Sink) write(packet []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		var err error
		if s.file, err = logfile.Open(s.cfg.Path, logfile.Options{}); err != nil {
			return 0, err
		}
	}
	return s.file.Write(packet)
}

// closeFile closes the file, after the last packet. Nothing is buffered.
func (s *Sink) closeFile() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		_ = s.file.Close()
	}
}

// Reopen opens the path again, as after a rotation. If that fails, the open file stays
// in use.
func (s *Sink) Reopen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	return s.file.Reopen()
}

// Flush queues the lines of a flush. It does not wait for the file.
func (s *Sink) Flush(snap *store.Snapshot) error {
	s.time = append(snap.Time.UTC().AppendFormat(append(s.time[:0], `{"time":"`...), timeFormat), '"', ',')
	f, owed := &s.cfg.Filter, s.queue.Owed()
	f.Counters(snap, func(c *store.Cursor, delta uint64) {
		if s.describe(c) {
			s.counter(delta + owed.Take(s.stat))
		}
	})
	for stat, n := range owed {
		s.stat = append(s.stat[:0], stat...)
		s.counter(n)
	}
	v := s.cfg.Store.View()
	defer v.Close()
	f.Used(v, store.KindGauge, func(c *store.Cursor) {
		if s.describe(c) {
			s.end(c.AppendValue(append(s.begin(typeGauge), `,"value":`...)))
		}
	})
	f.Histograms(snap, func(c *store.Cursor, h *histogram.Snapshot) {
		if s.describe(c) {
			s.histogram(h.Interval)
		}
	})
	s.batch.End()
	return nil
}
