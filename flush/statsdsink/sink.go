// Package statsdsink sends stats as StatsD lines over UDP, TCP and unix sockets.
//
// Counters are sent as increments, gauges as values, and histograms as one line
// for each bin, whose sample rate represents the count, or as gauges that
// summarize the interval. Text readouts are not sent. Received events and
// service checks can be sent as they are. Lines are packed into packets;
// package sinkqueue describes what happens to increments while the receiver is
// down.
package statsdsink

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/store"
)

// Network is how packets travel.
type Network = sinkqueue.Network

// The networks.
const (
	UDP        = sinkqueue.UDP
	TCP        = sinkqueue.TCP
	Unixgram   = sinkqueue.Unixgram
	Unixstream = sinkqueue.Unixstream // packets with a length of 4 bytes before each
	Unixlines  = sinkqueue.Unixlines  // lines
)

// Format is the form of tags in lines.
type Format string

// The formats.
const (
	Plain     Format = "plain"     // no tags; names contain them
	DogStatsD Format = "dogstatsd" // |#name:value after the type
	Graphite  Format = "graphite"  // ;name=value after the name
	Influx    Format = "influx"    // ,name=value,name=value after the name
	Librato   Format = "librato"   // #name=value,name=value after the name
	SignalFX  Format = "signalfx"  // [name=value,name=value] after the name
)

// Timers is the form of histograms in lines.
type Timers string

// The forms of histograms.
const (
	Values  Timers = "values"  // a line for each bin, with a sample rate
	Summary Timers = "summary" // gauges: count, lower, upper, mean and quantiles of the interval
	None    Timers = "none"    // histograms are left out
)

// Config are the settings of a [Sink].
type Config struct {
	// Options are the settings that all sinks share. The default name is
	// "statsd". Plain lines cannot have Tags.
	sinkqueue.Options
	// Network is how packets travel. Default UDP.
	Network Network
	// Address is host:port, or the path of a unix socket, where a leading @
	// means an abstract one. Required.
	Address string
	// Format is the form of tags. Default Plain.
	Format Format
	// PacketBytes limits the size of a packet; a longer line is sent alone. 1
	// means one line per packet. Default 1432 for UDP, 8192 for unix sockets,
	// 64 KiB for TCP.
	PacketBytes int
	// FinalNewline ends datagrams with a line feed too.
	FinalNewline bool
	// ChangedGauges sends only gauges that were written in the interval.
	// Default: all that were ever set.
	ChangedGauges bool
	// ZeroDeltas sends used counters even if they did not grow.
	ZeroDeltas bool
	// AbsoluteGauges sends a negative gauge as one line, for receivers that do
	// not treat a signed value as a change.
	AbsoluteGauges bool
	// Timers is the form of histograms. Default Values.
	Timers Timers
	// Events also sends the lines of Sink.Event. Only with DogStatsD.
	Events bool
	// Timeout limits an attempt to connect or send. Default 2 s.
	Timeout time.Duration
	// Dial opens connections over TCP; Address is then only a name. Default: Address
	// is connected to.
	Dial func(ctx context.Context) (net.Conn, error)
}

// Sink is a [flush.Sink] that sends StatsD lines. Create it with [New].
type Sink struct {
	sinkqueue.Sender
	cfg   Config
	queue *sinkqueue.Queue
	conn  *sinkqueue.Conn

	names, values *sinkqueue.Alphabet
	prefix        []byte // of names, with a dot at its end
	fixed         series // Tags

	before          string // the first tag
	between, equals byte   // tags, and of the parts of a tag
	keys            []tagKey

	mu     sync.Mutex // guards events
	events []byte     // lines for the next flush, each with a line feed

	// Of Flush.
	packet      []byte
	lineStart   int // of the last line in packet
	lines       int
	packets     []sinkqueue.Packed // that are not queued yet, of UDP
	head, tail  []byte
	id, decimal []byte
	named       series // of summaries
	quantiles   []float64
}

var _ flush.Runner = (*Sink)(nil)

// New checks cfg and returns a sink. Nothing is sent before Run.
func New(cfg Config) (*Sink, error) {
	if err := cfg.Check("statsdsink", "statsd"); err != nil {
		return nil, err
	}
	cfg.Network = cmp.Or(cfg.Network, UDP)
	cfg.Format = cmp.Or(cfg.Format, Plain)
	cfg.Timers = cmp.Or(cfg.Timers, Values)
	if cfg.Timeout <= 0 {
		cfg.Timeout = 2 * time.Second
	}
	if cfg.Events && cfg.Format != DogStatsD {
		return nil, fmt.Errorf("statsdsink: lines of the format %s have no events", cfg.Format)
	}
	if cfg.Format == Plain && len(cfg.Tags) > 0 {
		return nil, errors.New("statsdsink: the plain format has no tags")
	}
	size := sinkqueue.DefaultTCPBytes
	switch {
	case cfg.Dial == nil:
		var err error
		if size, err = cfg.Network.CheckAddress(cfg.Address); err != nil {
			return nil, fmt.Errorf("statsdsink: %w", err)
		}
	case cfg.Network != TCP:
		return nil, fmt.Errorf("statsdsink: Dial requires network tcp, not %q", cfg.Network)
	}
	if cfg.PacketBytes <= 0 {
		cfg.PacketBytes = size
	}
	s := &Sink{cfg: cfg}
	s.fix()
	s.conn = sinkqueue.NewConn(sinkqueue.ConnConfig{
		Network: cfg.Network, Address: cfg.Address, Timeout: cfg.Timeout, PacketBytes: cfg.PacketBytes,
		Dial: cfg.Dial, Lost: func(packets int) { s.queue.Lost(packets) }, Shortened: s.shortened,
	})
	q := sinkqueue.Config{
		Options: cfg.Options, Kind: "statsd", Target: string(cfg.Network) + "://" + cfg.Address,
		Send: s.conn.Send, Ended: s.conn.Close, Increments: increments, Observations: observations,
	}
	if cfg.Network == UDP {
		q.SendAll = s.conn.SendAll
	}
	s.queue = sinkqueue.New(q)
	s.Sender = s.queue.Sender()
	return s, nil
}

// shortened logs the size of the longest datagram that the system has not refused.
func (s *Sink) shortened(bytes int) {
	if s.cfg.Logger != nil {
		s.cfg.Logger.Warn("sink: datagrams are too long for the network and are split", "sink", s.cfg.Name, "bytes", bytes)
	}
}

// maxEventBytes limits the lines of events that wait for a flush.
const maxEventBytes = 1 << 20

// Event adds the line of an event or a service check to the next flush, unchanged, if the
// sink sends events. It is safe for concurrent use and keeps a copy of line.
func (s *Sink) Event(line []byte) {
	if !s.cfg.Events || s.cfg.Filter.Origin == sinkqueue.Own {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.events)+len(line)+1 > maxEventBytes {
		s.queue.Dropped(1)
		return
	}
	s.events = append(append(s.events, line...), '\n')
}

// sendEvents puts the lines of events.
func (s *Sink) sendEvents() {
	s.mu.Lock()
	lines := s.events
	s.events = nil
	s.mu.Unlock()
	for text := range bytes.Lines(lines) {
		s.packet = append(s.begin(), text[:len(text)-1]...)
		s.put()
	}
}

// Flush queues the lines of a flush. It does not wait for the network.
func (s *Sink) Flush(snap *store.Snapshot) error {
	s.counters(snap)
	s.gauges(snap)
	s.timers(snap)
	s.sendEvents()
	s.end()
	s.queueAll()
	return nil
}

func (s *Sink) counters(snap *store.Snapshot) {
	owed := s.queue.Owed()
	var sent map[string]struct{}
	if s.cfg.ZeroDeltas {
		sent = map[string]struct{}{}
	}
	s.cfg.Filter.Counters(snap, func(c *store.Cursor, delta uint64) {
		if owed == nil && sent == nil { // no key of the series is needed
			if line, name := s.appendHead(s.begin(), c); name > 0 {
				s.packet = s.appendTail(appendIncrement(line, delta), c)
				s.put()
			} else {
				s.packet = s.packet[:max(s.lineStart-1, 0)]
			}
			return
		}
		sr, ok := s.describe(c)
		if !ok {
			return
		}
		s.id = keyOf(s.id[:0], sr)
		delta += owed.Take(s.id)
		if sent != nil {
			sent[string(s.id)] = struct{}{}
		}
		s.packet = appendCounter(s.begin(), sr, delta)
		s.put()
	})
	for key, n := range owed {
		s.packet = appendCounter(s.begin(), seriesOf(key), n)
		s.put()
	}
	if sent == nil {
		return
	}
	v := s.cfg.Store.View()
	defer v.Close()
	s.cfg.Filter.Used(v, store.KindCounter, func(c *store.Cursor) {
		sr, ok := s.describe(c)
		if !ok {
			return
		}
		s.id = keyOf(s.id[:0], sr)
		_, sentNow := sent[string(s.id)]
		_, wasOwed := owed[string(s.id)]
		if !sentNow && !wasOwed {
			s.packet = appendCounter(s.begin(), sr, 0)
			s.put()
		}
	})
}

func (s *Sink) gauges(snap *store.Snapshot) {
	gauge := func(c *store.Cursor) {
		if sr, ok := s.describe(c); ok {
			s.decimal = c.AppendInterval(s.decimal[:0])
			s.packet = s.appendGauge(s.begin(), sr, s.decimal)
			s.put()
		}
	}
	if s.cfg.ChangedGauges {
		s.cfg.Filter.ChangedGauges(snap, gauge)
		return
	}
	v := s.cfg.Store.View()
	defer v.Close()
	s.cfg.Filter.Used(v, store.KindGauge, gauge)
}

func (s *Sink) timers(snap *store.Snapshot) {
	if s.cfg.Timers == None {
		return
	}
	s.cfg.Filter.Histograms(snap, func(c *store.Cursor, h *histogram.Snapshot) {
		sr, ok := s.describe(c)
		if !ok {
			return
		}
		if s.cfg.Timers == Summary {
			s.summary(sr, h.Interval)
			return
		}
		unit := h.Interval.Layout().Unit()
		bins(h.Interval, unit, func(value float64, count uint64) {
			s.packet = appendTimer(s.begin(), sr, value, unit, count)
			s.put()
		})
	})
}

// summary puts gauges that summarize h, which is not empty. Their names are that of the
// series and a suffix.
func (s *Sink) summary(sr series, h *histogram.Stats) {
	gauge := func(suffix string, value float64) {
		s.named.head = append(append(append(s.named.head[:0], sr.head[:sr.name]...), suffix...), sr.head[sr.name:]...)
		s.named.tail = sr.tail
		s.decimal = strconv.AppendFloat(s.decimal[:0], value, 'f', -1, 64)
		s.packet = s.appendGauge(s.begin(), s.named, s.decimal)
		s.put()
	}
	gauge(".count", float64(h.Count()))
	gauge(".lower", h.Min())
	gauge(".upper", h.Max())
	gauge(".mean", h.Sum()/float64(h.Count()))
	s.quantiles = h.Quantiles(s.quantiles[:0], summaryQuantiles[:])
	for i, suffix := range [...]string{".p50", ".p90", ".p95", ".p99"} {
		gauge(suffix, s.quantiles[i])
	}
}

// begin returns the packet, to which the caller appends a line before it calls put.
func (s *Sink) begin() []byte {
	switch {
	case len(s.packet) > 0:
		s.packet = append(s.packet, '\n')
	case cap(s.packet) < s.cfg.PacketBytes:
		s.packet = make([]byte, 0, max(s.cfg.PacketBytes+lineBytes, slabBytes))
	}
	s.lineStart = len(s.packet)
	return s.packet
}

// put ends the last line of the packet. A line that does not fit starts the next packet,
// and the packet is queued without it.
func (s *Sink) put() {
	size := len(s.packet)
	if s.finalNewline() {
		size++
	}
	if s.lineStart > 0 && size > s.cfg.PacketBytes {
		line := s.packet[s.lineStart:]
		s.packet = s.packet[:s.lineStart-1]
		s.end()
		s.packet = append(s.begin(), line...)
	}
	s.lines++
}

// slabBytes is the size of the memory that packets of a flush share, so that small ones
// need no allocation each.
const slabBytes = 16 << 10

// lineBytes is room behind a packet for the line that does not fit in it.
const lineBytes = 512

// finalNewline reports whether packets end with a line feed.
func (s *Sink) finalNewline() bool { return s.cfg.FinalNewline || s.cfg.Network.Stream() }

// end queues the packet.
func (s *Sink) end() {
	if len(s.packet) == 0 {
		return
	}
	if s.finalNewline() {
		s.packet = append(s.packet, '\n')
	}
	packed := sinkqueue.Packed{Metrics: s.lines}
	packed.Data, s.packet = sinkqueue.Detach(s.packet, s.cfg.PacketBytes)
	s.lines = 0
	if s.cfg.Network != UDP {
		s.queue.Add(packed.Data, packed.Metrics)
		return
	}
	if s.packets = append(s.packets, packed); len(s.packets) == maxPackets {
		s.queueAll()
	}
}

// maxPackets is how many packets of a flush are queued together. The more there are, the
// more of them have the same size and are sent in one system call.
const maxPackets = 512

// queueAll queues the packets of UDP, in any order.
func (s *Sink) queueAll() {
	s.queue.AddAll(s.packets)
	clear(s.packets)
	s.packets = s.packets[:0]
}
