package relay

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

const aggregator = `
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
stats_flush_interval: 0.2s
statsd: {listeners: [{name: in, address: "%s"}]}
`

// fleet is a relay that spreads lines over three daemons, and copies all of them to
// another daemon that got everything.
type fleet struct {
	t     *testing.T
	all   *daemon.Daemon
	parts [3]*daemon.Daemon
	relay *daemon.Daemon
	conn  net.Conn
	sent  int
}

// victim is the part that dies. Its address is a path, which is its own while it is
// dead.
const victim = 2

func newFleet(t *testing.T) *fleet {
	f := &fleet{t: t}
	f.all = daemon.Start(t, daemon.Config{YAML: fmt.Sprintf(aggregator, "tcp://127.0.0.1:0")})
	targets := make([]string, 3)
	for i := range f.parts {
		if i == victim {
			f.parts[i] = daemon.Start(t, daemon.Config{YAML: fmt.Sprintf(aggregator, "unixlines://$DIR/in.sock")})
			targets[i] = "unixlines://" + f.parts[i].Dir + "/in.sock"
			continue
		}
		f.parts[i] = daemon.Start(t, daemon.Config{YAML: fmt.Sprintf(aggregator, "tcp://127.0.0.1:0")})
		targets[i] = "tcp://" + f.parts[i].Address("in")
	}
	f.relay = daemon.Start(t, daemon.Config{YAML: fmt.Sprintf(`
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
stats_flush_interval: 0.2s
statsd:
  listeners: [{name: in, address: "tcp://127.0.0.1:0"}]
  relay_only: true
  relay:
  - mode: hash
    hash_on: series
    targets: [{name: p0, address: "%s"}, {name: p1, address: "%s"}, {name: p2, address: "%s"}]
  - targets: [{name: all, address: "tcp://%s"}]
`, targets[0], targets[1], targets[2], f.all.Address("in"))})
	var err error
	if f.conn, err = net.Dial("tcp", f.relay.Address("in")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.conn.Close() })
	return f
}

// restart starts the victim again, at its path.
func (f *fleet) restart() {
	dir := f.parts[victim].Dir
	f.parts[victim] = daemon.Start(f.t, daemon.Config{Dir: dir, YAML: fmt.Sprintf(aggregator, "unixlines://$DIR/in.sock")})
}

// write sends a number of lines that line makes.
func (f *fleet) write(n int, line func(i int) string) {
	f.t.Helper()
	var b strings.Builder
	for i := range n {
		b.WriteString(line(i) + "\n")
	}
	f.sent += n
	if _, err := f.conn.Write([]byte(b.String())); err != nil {
		f.t.Fatal(err)
	}
}

// relayed waits until the relay has nothing left to send, and returns its stats.
func (f *fleet) relayed() daemon.Stats {
	f.t.Helper()
	return f.relay.Wait("all lines to be relayed", func(s daemon.Stats) bool {
		done := s.Sum("relay.lines.target.p") + s.Sum("relay.ambiguous_lines.target.p") + s.Sum("relay.dropped_lines.target.p")
		return int(done) == f.sent && int(s.Number("relay.lines.target.all")) == f.sent
	})
}

// arrived waits until a daemon has applied a number of lines.
func arrived(d *daemon.Daemon, lines float64) {
	d.Wait(fmt.Sprint(lines, " lines"), func(s daemon.Stats) bool { return s.Number("ingest.lines.listener.in") == lines })
}

// count returns a line of a counter.
func count(i int) string { return fmt.Sprintf("shop.count:%d|c|#n:%d", i%7+1, i%200) }

// mixed returns lines of all kinds. Names with the same tags in another order are one
// series.
func mixed(i int) string {
	n := i % 100
	tags := fmt.Sprintf("a:%d,b:%d", n, n%3)
	if i%2 == 0 {
		tags = fmt.Sprintf("b:%d,a:%d", n%3, n)
	}
	switch i % 5 {
	case 0:
		return fmt.Sprintf("shop.sold:%d|c|@0.5|#%s", i%9, tags)
	case 1:
		return fmt.Sprintf("shop.rt:%d.5|ms|#%s", i*i%1000, tags)
	case 2:
		return fmt.Sprintf("shop.users:u%d|s|#%s", i%37, tags)
	case 3:
		return fmt.Sprintf("shop.depth:%d|g|#%s", i, tags)
	}
	return count(i)
}

// series returns the received series of daemons as the exposition shows them, sorted.
func series(all ...*daemon.Daemon) (lines []string) {
	for _, d := range all {
		for line := range strings.Lines(d.Get("/stats/metrics")) {
			if strings.HasPrefix(line, "shop_") {
				lines = append(lines, line)
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// quantiles returns the quantiles of all timers since the start, by name.
func quantiles(t *testing.T, all ...*daemon.Daemon) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, d := range all {
		var doc struct {
			Stats []struct {
				Histograms struct {
					Computed []struct {
						Name   string
						Values []struct{ Cumulative json.Number }
					} `json:"computed_quantiles"`
				}
			}
		}
		text := d.Get("/stats?format=json&type=Histograms&filter=" + url.QueryEscape(`^shop\.`))
		if err := json.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		for _, s := range doc.Stats {
			for _, h := range s.Histograms.Computed {
				if _, twice := got[h.Name]; twice {
					t.Errorf("%s is on two daemons", h.Name)
				}
				got[h.Name] = fmt.Sprint(h.Values)
			}
		}
	}
	return got
}

// TestFleetEqualsOneDaemon compares three daemons behind a hash with a single one, which
// receives every line: counts, sets, buckets and quantiles of every series.
func TestFleetEqualsOneDaemon(t *testing.T) {
	f := newFleet(t)
	f.write(20_000, mixed)
	s := f.relayed()
	arrived(f.all, float64(f.sent))
	for i, d := range f.parts {
		lines := s.Number(fmt.Sprint("relay.lines.target.p", i))
		if lines == 0 {
			t.Errorf("part %d got nothing", i)
		}
		arrived(d, lines)
	}
	var want, got []string
	daemon.Until(t, "the same series", func() bool { // sets and histograms show after a flush
		want, got = series(f.all), series(f.parts[:]...)
		return len(want) > 300 && slices.Equal(want, got)
	})
	one, many := quantiles(t, f.all), quantiles(t, f.parts[:]...)
	if len(one) == 0 || fmt.Sprint(one) != fmt.Sprint(many) {
		t.Errorf("the quantiles differ:\n%v\n%v", one, many)
	}
}

// values returns the received series of a daemon as the exposition shows them.
func values(t *testing.T, d *daemon.Daemon) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for _, line := range series(d) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		all[name] = v
	}
	return all
}

// TestSeriesOfAFleetWithADeath kills and replaces a part between lines of all kinds. The
// series of other parts equal the series of one daemon, quantiles included. Counters and
// buckets of the victim's series add up, and some of these series have moved.
func TestSeriesOfAFleetWithADeath(t *testing.T) {
	f := newFleet(t)
	arrive := func() daemon.Stats {
		t.Helper()
		f.write(5000, mixed) // the same series each time
		return f.relayed()
	}
	arrive()
	daemon.Until(t, "the same series", func() bool { return slices.Equal(series(f.all), series(f.parts[:]...)) && len(quantiles(t, f.all)) > 0 })
	first := values(t, f.parts[victim])
	f.parts[victim].Kill()
	s := arrive()
	f.restart()
	f.relay.Wait("the victim to be up", func(s daemon.Stats) bool { return s.Number("relay.up.target.p2") == 1 })
	arrive()
	wrong, moved := []string{"nothing was compared"}, 0
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(wrong)
		}
	})
	daemon.Until(t, "all series", func() bool {
		wrong, moved = nil, 0
		others, again := [2]map[string]float64{values(t, f.parts[0]), values(t, f.parts[1])}, values(t, f.parts[victim])
		for name, want := range values(t, f.all) {
			a, inA := others[0][name]
			b, inB := others[1][name]
			before, his := first[name]
			got := before + a + b + again[name]
			if state := strings.HasPrefix(name, "shop_depth") || strings.HasPrefix(name, "shop_users"); his && state {
				got = again[name] // which got a value and all members again
			}
			if _, back := again[name]; got != want || back != his || !his && inA == inB {
				wrong = append(wrong, fmt.Sprintf("%s is %v, want %v", name, got, want))
			}
			if his && (inA || inB) {
				moved++
			}
		}
		return len(wrong) == 0
	})
	if lines := s.Number("relay.moved_in_lines.target.p0") + s.Number("relay.moved_in_lines.target.p1"); moved == 0 || lines == 0 {
		t.Errorf("%d series moved, in %v lines", moved, lines)
	}
	his, a, b := quantiles(t, f.parts[victim]), quantiles(t, f.parts[0]), quantiles(t, f.parts[1])
	for name, want := range quantiles(t, f.all) {
		if his[name] == "" && a[name]+b[name] != want {
			t.Errorf("the quantiles of %s are %s%s, want %s", name, a[name], b[name], want)
		}
	}
}

// counts returns the counters of daemons, summed by name.
func counts(all ...daemon.Stats) map[string]float64 {
	sum := map[string]float64{}
	for _, s := range all {
		for name := range s {
			if strings.HasPrefix(name, "shop.count.") {
				sum[name] += s.Number(name)
			}
		}
	}
	return sum
}

// TestDeathOfAPart kills one of three daemons, idle and under load, and replaces it:
// every line is in a counter, or counted as lost with the dead one.
func TestDeathOfAPart(t *testing.T) {
	f := newFleet(t)
	f.write(4000, count)
	s := f.relayed()
	arrived(f.parts[victim], s.Number("relay.lines.target.p2"))
	first := f.parts[victim].Stats() // what the first victim had counted
	f.parts[victim].Kill()

	f.write(4000, count)
	s = f.relayed()
	moved := s.Number("relay.moved_out_lines.target.p2")
	if in := s.Number("relay.moved_in_lines.target.p0") + s.Number("relay.moved_in_lines.target.p1"); moved == 0 || in != moved || s.Number("relay.up.target.p2") != 0 {
		t.Errorf("%v lines moved out, %v in; the victim is up: %v", moved, in, s.Number("relay.up.target.p2"))
	}

	f.restart()
	f.relay.Wait("the victim to be up", func(s daemon.Stats) bool { return s.Number("relay.up.target.p2") == 1 })
	f.write(4000, count)
	f.relayed()
	var want, got map[string]float64
	daemon.Until(t, "equal counts of a fleet with a replaced part", func() bool {
		want, got = counts(f.all.Stats()), counts(first, f.parts[0].Stats(), f.parts[1].Stats(), f.parts[victim].Stats())
		return len(want) == 200 && fmt.Sprint(want) == fmt.Sprint(got)
	})

	// Under load, the death costs the lines that were sent to the dead one since its
	// counters were last read, no others. A line counts 1 here.
	before := f.relayed()
	second := f.parts[victim].Stats()
	one := func(i int) string { return fmt.Sprintf("shop.count:1|c|#n:%d", i%200) }
	for i := range 40 {
		f.write(100, one)
		if i == 20 {
			f.relay.Wait("lines for the victim", func(s daemon.Stats) bool {
				return s.Number("relay.lines.target.p2") > before.Number("relay.lines.target.p2")
			})
			f.parts[victim].Kill()
		}
	}
	s = f.relayed()
	lost := s.Number("relay.lines.target.p2") - before.Number("relay.lines.target.p2") + s.Sum("relay.ambiguous_lines.target.p") + s.Sum("relay.dropped_lines.target.p")
	if lost == 0 || lost > 2100 {
		t.Errorf("%v of 4000 lines were lost", lost)
	}
	total := func(sums map[string]float64) (n float64) {
		for _, v := range sums {
			n += v
		}
		return n
	}
	daemon.Until(t, "all but the lost lines", func() bool {
		want, got = counts(f.all.Stats()), counts(first, second, f.parts[0].Stats(), f.parts[1].Stats())
		return total(want)-total(got) == lost
	})
	for name, n := range want {
		if got[name] != n && second[name] == "" {
			t.Errorf("%s is %v, want %v, and did not belong to the dead part", name, got[name], n)
		}
	}
}
