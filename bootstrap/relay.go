package bootstrap

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/statsd/relay"
	"go.yaml.in/yaml/v4"
)

// relayTarget is a target of the relay with its place in the file.
type relayTarget struct {
	*relay.Target
	at, address *yaml.Node // address is nil if the field is not set
	path        string
}

// setRelay reads the routes of the relay and adds their targets to targets.
func (s *StatsD) setRelay(targets *[]relayTarget) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		list(&s.Relay, func(rt *relay.Route) setter {
			return func(d *decoder, n *yaml.Node, path string) { setRoute(rt, targets, d, n, path) }
		})(d, n, path)
		names := map[string]bool{}
		for _, t := range *targets {
			name := cmp.Or(t.Name, t.Address)
			if name != "" && names[name] {
				d.errorf(t.at, t.path, "second target named %q; set different names", name)
			}
			names[name] = true
		}
	}
}

// receivedBy returns the address of the listener that receives what the server sends to
// target, or "".
func receivedBy(target string, listeners []StatsDListener) string {
	var own []string
	for _, l := range listeners {
		switch host := l.Host; l.Network {
		case sinkqueue.UDP, sinkqueue.TCP:
			if !host.IsValid() {
				host = netip.IPv6Unspecified()
			}
			own = append(own, string(l.Network)+l.IP+"://"+netip.AddrPortFrom(host, l.Port).String())
		default:
			own = append(own, l.Address)
		}
	}
	if i := slices.Index(own, relay.OwnListener(target, own)); i >= 0 {
		return listeners[i].Address
	}
	return ""
}

// checkLoops reports the targets that are listeners of the same server.
func (s *StatsD) checkLoops(d *decoder, targets []relayTarget) {
	for _, t := range targets {
		if l := receivedBy(t.Address, s.Listeners); l != "" {
			d.errorf(t.address, join(t.path, "address"), "%q is the listener %s of this server: every line would loop; want the address of another server", t.Address, l)
		}
	}
}

// setLoopCheck reads the interval of checks for loops; 0 means none.
func (s *StatsD) setLoopCheck(d *decoder, n *yaml.Node, path string) {
	every := &s.RelayLoopCheck
	if period(every, 0, 24*time.Hour)(d, n, path); *every == 0 {
		*every = -1
	}
}

// setRoute reads a route and adds its targets to targets.
func setRoute(rt *relay.Route, targets *[]relayTarget, d *decoder, n *yaml.Node, path string) {
	hashed := false
	key := relay.Name
	seen := d.message(n, path, []field{
		{"mode", enum(&hashed, "copy, hash", false, true)},
		{"hash_on", enum(&key, "name, series", relay.Name, relay.Series)},
		{"match", list(&rt.Prefixes, nonEmpty)},
		{"invalid", boolean(&rt.Invalid)},
		{"targets", list(&rt.Targets, func(t *relay.Target) setter {
			return func(d *decoder, n *yaml.Node, path string) {
				*targets = append(*targets, relayTarget{t, n, setTarget(t, d, n, path), path})
			}
		})},
	})
	d.require(n, path, seen, "targets")
	if hashed {
		rt.Hash = key
	} else if at, ok := seen["hash_on"]; ok {
		d.errorf(at, join(path, "hash_on"), "has no effect unless mode is hash")
	}
	if at, ok := seen["targets"]; ok && at.Kind == yaml.SequenceNode && (len(rt.Targets) == 0 || len(rt.Targets) > relay.MaxTargets) {
		d.errorf(at, join(path, "targets"), "%d targets; 1 to %d are allowed", len(rt.Targets), relay.MaxTargets)
	}
}

// setTarget reads a target and returns its address, nil if the field is not set.
func setTarget(t *relay.Target, d *decoder, n *yaml.Node, path string) *yaml.Node {
	h := &t.Health
	seen := d.message(n, path, []field{
		{"address", targetAddress(&t.Address)},
		{"name", nonEmpty(&t.Name)},
		{"max_packet_bytes", size(&t.PacketBytes, 64, 16<<20)},
		{"queue_bytes", size(&t.QueueBytes, 64<<10, 64<<30)},
		{"health_check", func(d *decoder, n *yaml.Node, path string) {
			seen := d.message(n, path, []field{
				{"address", text(&h.Address)},
				{"expect", text(&h.Expect)},
				{"interval", period(&h.Interval, 100*time.Millisecond, time.Hour)},
			})
			d.require(n, path, seen, "address")
			if at, ok := seen["address"]; ok {
				checkHostPort(d, at, join(path, "address"), h.Address, "127.0.0.1:8126")
			}
		}},
	})
	d.require(n, path, seen, "address")
	if at, ok := seen["max_packet_bytes"]; ok && strings.HasPrefix(t.Address, "udp") {
		checkDatagram(d, at, join(path, "max_packet_bytes"), t.PacketBytes)
	}
	if at, ok := seen["name"]; ok {
		checkName(d, at, join(path, "name"), t.Name)
	}
	return seen["address"]
}

// targetAddress reads protocol://host:port or protocol:///path.
func targetAddress(to *string) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		before := len(d.errs)
		text(to)(d, n, path)
		if len(d.errs) > before {
			return
		}
		network, location, _, err := relay.SplitAddress(*to)
		switch {
		case err != nil:
			d.errorf(n, path, "%s: %s", d.show(n, path), err)
		case network == sinkqueue.UDP || network == sinkqueue.TCP:
			checkHostPort(d, n, path, location, "127.0.0.1:8125")
		default:
			checkSocketPath(d, n, path, location)
		}
	}
}
