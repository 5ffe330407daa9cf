package relay

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/store"
)

// Defaults and limits of the settings.
const (
	DefaultQueueBytes  = 4 << 20
	DefaultUDPBytes    = 1400
	DefaultDelay       = 200 * time.Millisecond
	DefaultInterval    = 5 * time.Second
	DefaultTimeout     = 2 * time.Second
	DefaultLoopCheck   = time.Minute
	MaxTargets         = 256   // of a route
	maxDatagram        = 65507 // the longest payload of UDP over IPv4
	linger             = 5 * time.Second
	misses             = 3 // failures in a row after which a target is down
	minPacketBytes     = 64
	maxPacketBytes     = 16 << 20
	healthAnswerBytes  = 4 << 10
	healthQuestion     = "health\n"
	invalidAddressHint = "want udp://host:port, tcp://host:port, unixgram:///path, unixstream:///path or unixlines:///path"
)

// Config are the settings of a [Relay].
type Config struct {
	// Store receives the metrics of the relay, under "relay.". Required.
	Store *store.Store
	// Parser is the parser of the lines. Required.
	Parser *line.Parser
	Routes []Route
	// Delay is how long a line waits for others that fill its packet. Default
	// 200 ms.
	Delay time.Duration
	// Timeout limits an attempt to connect, to send or to check a target. Default
	// 2 s.
	Timeout time.Duration
	// LoopCheck is the interval at which targets are sent a tracer gauge, which
	// lets a relay detect that lines come back to it. Default 1 minute;
	// negative means never.
	LoopCheck time.Duration
	// Logger logs targets that go down and come back. If nil, nothing is logged.
	Logger *slog.Logger
}

// Key is the part of a line that selects its target.
type Key uint8

// The keys.
const (
	None   Key = iota // each target gets every line
	Name              // the name without tags: all series of a name meet
	Series            // the name and the tags, in any order and style
)

// Route sends lines to targets.
type Route struct {
	// Hash is the key of a rendezvous hash that selects one target for each line.
	// Default: all targets get every line.
	Hash Key
	// Prefixes selects metrics by the beginning of the name. Default:
	// all lines, and also events and service checks.
	Prefixes []string
	// Invalid also sends lines that the parser rejects.
	Invalid bool
	// Targets are the servers. At least one is required.
	Targets []Target
}

// Target is a server that gets lines.
type Target struct {
	// Address is udp://host:port, tcp://host:port, unixgram:///path,
	// unixstream:///path (frames with a length) or unixlines:///path. Required.
	Address string
	// Name identifies the target in metrics and in the hash: a server that
	// replaces another under the same name gets the same lines. Default: the
	// address.
	Name string
	// PacketBytes is the size to which lines are packed. A longer line is sent
	// alone. Default 1400 for UDP, 8192 for unix sockets, 64 KiB for TCP.
	PacketBytes int
	// QueueBytes limits the packets that wait. Default 4 MiB.
	QueueBytes int
	// Health checks the target actively. Default: a target is down if it cannot
	// be connected or written to, which UDP cannot detect.
	Health HealthCheck
}

// HealthCheck connects to a TCP port.
type HealthCheck struct {
	Address string // host:port; "" means no check
	// Expect is a text in the answer to the line "health", such as "up" for the
	// management port of statsd. Default: connecting is enough.
	Expect   string
	Interval time.Duration // default 5 s
}

// withDefaults checks c and returns it with the defaults filled in.
func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Store == nil:
		return c, errors.New("relay: no store")
	case c.Parser == nil:
		return c, errors.New("relay: no parser")
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Delay <= 0 {
		c.Delay = DefaultDelay
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	c.LoopCheck = cmp.Or(c.LoopCheck, DefaultLoopCheck)
	names := map[string]bool{}
	routes := c.Routes
	c.Routes = nil
	for i, rt := range routes {
		if len(rt.Targets) == 0 || len(rt.Targets) > MaxTargets {
			return c, fmt.Errorf("relay: route %d: %d targets, not in [1,%d]", i, len(rt.Targets), MaxTargets)
		}
		rt.Targets = append([]Target(nil), rt.Targets...)
		for j := range rt.Targets {
			t := &rt.Targets[j]
			if err := t.setDefaults(); err != nil {
				return c, fmt.Errorf("relay: route %d, target %d: %w", i, j, err)
			}
			if names[t.Name] {
				return c, fmt.Errorf("relay: route %d, target %d: second target named %q", i, j, t.Name)
			}
			names[t.Name] = true
		}
		c.Routes = append(c.Routes, rt)
	}
	return c, nil
}

// SplitAddress splits the address of a target into the network and the location
// there. It returns the default size of packets.
func SplitAddress(address string) (network sinkqueue.Network, location string, packetBytes int, err error) {
	scheme, location, ok := strings.Cut(address, "://")
	network = sinkqueue.Network(scheme)
	if ok {
		packetBytes, err = network.CheckAddress(location)
	}
	if !ok || err != nil {
		return "", "", 0, errors.New(invalidAddressHint)
	}
	if network == sinkqueue.UDP {
		packetBytes = DefaultUDPBytes
	}
	return network, location, packetBytes, nil
}

func (t *Target) setDefaults() error {
	_, _, size, err := SplitAddress(t.Address)
	if err != nil {
		return fmt.Errorf("address %q: %w", t.Address, err)
	}
	t.Name = cmp.Or(t.Name, t.Address)
	t.PacketBytes = cmp.Or(t.PacketBytes, size)
	if t.PacketBytes < minPacketBytes || t.PacketBytes > maxPacketBytes {
		return fmt.Errorf("packets of %d bytes, not in [%d,%d]", t.PacketBytes, minPacketBytes, maxPacketBytes)
	}
	if t.QueueBytes <= 0 {
		t.QueueBytes = DefaultQueueBytes
	}
	if t.Health.Interval <= 0 {
		t.Health.Interval = DefaultInterval
	}
	return nil
}
