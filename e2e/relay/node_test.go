package relay

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
	"github.com/statsd-admin/statsd-admin/e2e/nodestatsd"
)

// client sends random lines and knows what becomes of them. Its stats have the names of
// StatsD for Node.js, with tags as in "a;b=c".
type client struct {
	t     *testing.T
	conn  net.Conn
	rand  *rand.Rand
	lines int
	nodestatsd.Totals
}

func newClient(t *testing.T, network, address string) *client {
	t.Helper()
	conn, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &client{t: t, conn: conn, rand: rand.New(rand.NewPCG(6, 7)), Totals: nodestatsd.Totals{
		Counters: map[string]float64{}, Gauges: map[string]float64{}, Timers: map[string][]float64{}, Samples: map[string]float64{}, Sets: map[string][]string{},
	}}
}

// send sends 200 lines in a packet, few enough for the buffer of any socket.
func (c *client) send() {
	c.t.Helper()
	var packet strings.Builder
	for range 200 {
		packet.WriteString(c.line() + "\n")
	}
	c.lines += 200
	if _, err := c.conn.Write([]byte(packet.String())); err != nil {
		c.t.Fatal(err)
	}
}

// line returns a line and adds it to the totals.
func (c *client) line() string {
	n, v := c.rand.IntN(40), float64(c.rand.IntN(4000)+1)/4
	name, tags := fmt.Sprint("shop.n", n), ""
	key := name
	if n%3 == 0 {
		tags, key = fmt.Sprintf("|#zone:z%d,a:b", n%5), fmt.Sprintf("%s;zone=z%d;a=b", name, n%5)
	}
	switch n % 4 {
	case 0:
		c.Counters[key] += 4 * v
		return fmt.Sprintf("%s:%v|c%s", name, 4*v, tags)
	case 1:
		if n%8 == 1 {
			c.Counters[key] += 16 * v
			return fmt.Sprintf("%s:%v|c|@0.25%s", name, 4*v, tags)
		}
		c.Timers[key] = append(c.Timers[key], v)
		c.Samples[key] += 2
		return fmt.Sprintf("%s:%v|ms|@0.5%s", name, v, tags)
	case 2:
		member := fmt.Sprint("u", c.rand.IntN(30))
		if !slices.Contains(c.Sets[key], member) {
			c.Sets[key] = append(c.Sets[key], member)
		}
		return fmt.Sprintf("%s:%s|s%s", name, member, tags)
	}
	sign := ""
	if c.Gauges[key] > 0 && c.rand.IntN(2) == 0 {
		sign = "+"
		c.Gauges[key] += v
	} else {
		c.Gauges[key] = v
	}
	return fmt.Sprintf("%s:%s%v|g%s", name, sign, v, tags)
}

// received leaves the stats out that StatsD for Node.js has of itself.
func received(all map[string]float64) map[string]float64 {
	all = maps.Clone(all)
	maps.DeleteFunc(all, func(name string, _ float64) bool { return strings.HasPrefix(name, "statsd.") })
	return all
}

// check compares the totals of StatsD for Node.js.
func (c *client) check(got nodestatsd.Totals) {
	c.t.Helper()
	for _, all := range []nodestatsd.Totals{got, c.Totals} {
		for _, values := range all.Timers {
			slices.Sort(values)
		}
		for _, members := range all.Sets {
			slices.Sort(members)
		}
	}
	for kind, pair := range map[string][2]any{
		"counters": {received(got.Counters), c.Counters}, "gauges": {received(got.Gauges), c.Gauges}, "timers": {got.Timers, c.Timers},
		"samples": {got.Samples, c.Samples}, "sets": {got.Sets, c.Sets},
	} {
		if g, w := fmt.Sprint(pair[0]), fmt.Sprint(pair[1]); g != w {
			c.t.Errorf("%s there are\n%s, want\n%s", kind, g, w)
		}
	}
}

// checkDaemon waits until a daemon shows the totals.
func (c *client) checkDaemon(d *daemon.Daemon) {
	c.t.Helper()
	want := map[string]float64{}
	series := func(key, suffix string) string {
		name, tags, _ := strings.Cut(key, ";")
		labels := strings.Split(tags, ";")
		slices.Sort(labels)
		text := ""
		for _, l := range labels {
			if k, v, ok := strings.Cut(l, "="); ok {
				text += fmt.Sprintf(",%s=%q", k, v)
			}
		}
		return strings.ReplaceAll(name, ".", "_") + suffix + "{" + strings.TrimPrefix(text, ",") + "}"
	}
	for key, v := range c.Counters {
		want[series(key, "")] = v
	}
	for key, v := range c.Gauges {
		want[series(key, "")] = v
	}
	for key, members := range c.Sets {
		want[series(key, "")] = float64(len(members))
	}
	for key, values := range c.Timers {
		want[series(key, "_count")] = c.Samples[key]
		for _, v := range values {
			want[series(key, "_sum")] += 2 * v
		}
	}
	var got map[string]float64
	defer func() {
		if !maps.Equal(got, want) {
			c.t.Logf("the daemon shows\n%v, want\n%v", got, want)
		}
	}()
	d.Until("the same stats", func() bool {
		got = map[string]float64{}
		for line := range strings.Lines(d.Get("/stats/metrics?filter=^shop")) {
			name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
			if strings.HasPrefix(name, "#") || strings.Contains(name, "_bucket{") {
				continue
			}
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				c.t.Fatalf("%v in %q", err, line)
			}
			got[name] = v
		}
		return maps.Equal(got, want)
	})
}

// TestNodeBehindARelay relays random lines to three servers of StatsD for Node.js: two
// share a hash, the third gets copies. Daemon, servers and client agree on all stats, and
// no series is on both servers of the hash.
func TestNodeBehindARelay(t *testing.T) {
	for _, transport := range []string{"udp", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			var nodes [3]*nodestatsd.Server
			for i := range nodes {
				nodes[i] = nodestatsd.Start(t, nodestatsd.Config{Transport: transport})
			}
			target := func(i int) string {
				return fmt.Sprintf(`{name: n%d, address: "%s://%s", health_check: {address: "%s", expect: up, interval: 0.1s}}`, i, transport, nodes[i].Address, nodes[i].Management)
			}
			d := daemon.Start(t, daemon.Config{YAML: fmt.Sprintf(`
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
stats_flush_interval: 0.2s
statsd:
  listeners: [{name: in, address: "tcp://127.0.0.1:0"}]
  relay:
  - {mode: hash, hash_on: series, targets: [%s, %s]}
  - targets: [%s]
`, target(0), target(1), target(2))})
			c := newClient(t, "tcp", d.Address("in"))
			// The management port shows that a packet has arrived before the next is sent.
			arrived := func() {
				t.Helper()
				d.Until("all lines", func() bool { return nodes[0].Lines()+nodes[1].Lines() == c.lines && nodes[2].Lines() == c.lines })
			}
			for range 10 {
				c.send()
				arrived()
			}
			c.checkDaemon(d)
			both := nodes[0].Counters()
			for name, v := range nodes[1].Counters() {
				if _, twice := both[name]; twice && !strings.HasPrefix(name, "statsd.") {
					t.Errorf("%s is on both servers", name)
				}
				both[name] = v
			}
			if fmt.Sprint(received(both)) != fmt.Sprint(c.Counters) || fmt.Sprint(received(nodes[2].Counters())) != fmt.Sprint(c.Counters) {
				t.Errorf("the management ports show\n%v and\n%v, want\n%v", both, nodes[2].Counters(), c.Counters)
			}

			// A server that says it is down gets nothing until it says it is up.
			if got := nodes[0].Ask("health down"); got != "health: down" {
				t.Fatal(got)
			}
			d.Wait("the health check", func(s daemon.Stats) bool { return s.Number("relay.up.target.n0") == 0 })
			before := nodes[0].Lines()
			for range 3 {
				c.send()
				arrived()
			}
			if n := nodes[0].Lines(); n != before {
				t.Errorf("%d lines for a server that is down", n-before)
			}
			nodes[0].Ask("health up")
			d.Wait("the health check", func(s daemon.Stats) bool { return s.Number("relay.up.target.n0") == 1 })
			if _, err := c.conn.Write([]byte("nonsense\nshop.n0:x|c\n")); err != nil { // stays here
				t.Fatal(err)
			}
			c.send()
			arrived()
			if nodes[0].Lines() == before {
				t.Error("the server that is up again gets nothing")
			}
			c.checkDaemon(d)
			first, second := nodes[0].End(), nodes[1].End()
			for name, v := range second.Counters {
				first.Counters[name] += v
			}
			if got := received(first.Counters); fmt.Sprint(got) != fmt.Sprint(c.Counters) {
				t.Errorf("two servers have\n%v, want\n%v", got, c.Counters)
			}
			all := nodes[2].End()
			if n := all.Counters["statsd.bad_lines_seen"]; n != 0 {
				t.Errorf("%v bad lines were relayed", n)
			}
			c.check(all)
		})
	}
}

// TestNodeInFront has StatsD for Node.js repeat received lines to the daemon: both
// have the stats of the client.
func TestNodeInFront(t *testing.T) {
	for _, transport := range []string{"udp", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			d := daemon.Start(t, daemon.Config{})
			node := nodestatsd.Start(t, nodestatsd.Config{Transport: transport, Repeater: d.Address(transport)})
			c := newClient(t, transport, node.Address)
			for range 10 {
				c.send()
				d.Wait("all lines", func(s daemon.Stats) bool { return int(s.Number("ingest.lines.listener."+transport)) == c.lines })
			}
			if _, err := c.conn.Write([]byte("nonsense\n")); err != nil {
				t.Fatal(err)
			}
			d.Wait("a bad line", func(s daemon.Stats) bool { return s.Sum("ingest.rejected.") == 1 })
			c.checkDaemon(d)
			if got := received(node.Counters()); fmt.Sprint(got) != fmt.Sprint(c.Counters) {
				t.Errorf("the management port shows\n%v, want\n%v", got, c.Counters)
			}
			all := node.End()
			if n := all.Counters["statsd.bad_lines_seen"]; n != 1 {
				t.Errorf("%v bad lines, want 1", n)
			}
			c.check(all)
		})
	}
}
