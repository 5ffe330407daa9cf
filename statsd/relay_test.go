package statsd

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/statsd/relay"
	"github.com/statsd-admin/statsd-admin/store"
)

// relayed sends packets to a server with a relay and returns the sorted lines that
// its target got by the time it stopped.
func relayed(t *testing.T, cfg Config, packets ...string) (*rig, []string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "relay") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", dir+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan string)
	go func() {
		var all []byte
		if c, err := l.Accept(); err == nil {
			all, _ = io.ReadAll(c)
			_ = c.Close()
		}
		got <- string(all)
	}()
	for i := range cfg.Relay {
		cfg.Relay[i].Targets = []relay.Target{{Address: "unixlines://" + dir + "/s"}}
	}
	r := newRig(t, cfg)
	ctx, stop := context.WithCancel(t.Context())
	for _, p := range packets {
		r.send(p)
	}
	r.listeners = nil // the rig's cannot run
	if err := r.Listen(); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := r.Run(ctx); err != nil { // it sends the queue
		t.Fatal(err)
	}
	r.listeners = append(r.listeners, r.l)
	text := <-got
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	slices.Sort(lines)
	return r, lines
}

var relayPackets = []string{
	"a:1|c\nb,x=1:2|ms|@0.5\r\nbad\n  c:3|g  \n_e{1,1}:t|u\n_sc|disk|0",
	"a:1|c\na:x|c\nb,x=1:4|ms\n",
}

// TestRelayGetsAcceptedLines relays new and known lines by a hash, and applies them.
func TestRelayGetsAcceptedLines(t *testing.T) {
	r, got := relayed(t, Config{Relay: []relay.Route{{Hash: relay.Series}}}, relayPackets...)
	want := []string{"_e{1,1}:t|u", "_sc|disk|0", "a:1|c", "a:1|c", "b,x=1:2|ms|@0.5", "b,x=1:4|ms", "c:3|g"}
	if !slices.Equal(got, want) {
		t.Errorf("relayed %q, want %q", got, want)
	}
	r.want("a 2", "b.x.1 count=3 sum=8", "c 3")
	r.conserved()
	if x := r.Report().Relay; len(x) != 1 || x[0].Sent != 7 || x[0].Accepted != 7 {
		t.Errorf("%+v", x)
	}
}

// TestRelayExporterMetrics has the counts of the relay under the names of statsd_exporter.
func TestRelayExporterMetrics(t *testing.T) {
	r, got := relayed(t, Config{ExporterMetrics: true, Relay: []relay.Route{{Invalid: true}}}, relayPackets...)
	if len(got) != 9 {
		t.Errorf("relayed %q", got)
	}
	r.flush()
	page, target := exporterStats(r), ".target."+r.Report().Relay[0].Name+" "
	for _, want := range []string{"relay_lines_relayed_total" + target + "9\n", "relay_packets_total" + target + "1\n", "relay_long_lines_total" + target + "0\n"} {
		if !strings.Contains(page, "statsd_exporter_"+want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
}

// TestRelayOnly makes no stats of the lines.
func TestRelayOnly(t *testing.T) {
	r, got := relayed(t, Config{RelayOnly: true, Relay: []relay.Route{{Invalid: true}}}, relayPackets...)
	want := []string{"_e{1,1}:t|u", "_sc|disk|0", "a:1|c", "a:1|c", "a:x|c", "b,x=1:2|ms|@0.5", "b,x=1:4|ms", "bad", "c:3|g"}
	if !slices.Equal(got, want) {
		t.Errorf("relayed %q, want %q", got, want)
	}
	r.want()
	r.conserved()
	rep := r.Report()
	if l := rep.Listeners[0]; l.RelayOnly != 7 || l.Applied != 0 || l.Samples != 5 || len(rep.Events)+len(rep.Checks) != 0 || l.Rejected["bad_value"] != 1 {
		t.Errorf("%+v", l)
	}
	if _, err := New(Config{Store: r.store, RelayOnly: true}); err == nil {
		t.Error("all lines would be dropped")
	}
}

// TestOwnListenerAsTarget starts a server that would send to itself.
func TestOwnListenerAsTarget(t *testing.T) {
	path := "unixgram://@" + t.Name() + t.TempDir()
	r := newRig(t, Config{Listeners: []ListenerConfig{{Address: path}}, Relay: []relay.Route{{Targets: []relay.Target{{Address: path}}}}})
	r.listeners = nil
	if err := r.Listen(); err == nil || !strings.Contains(err.Error(), "would loop") {
		t.Errorf("%v", err)
	}
}

// TestLoopOfTwoServers has two servers that relay to each other. The second makes no stats
// of its lines.
func TestLoopOfTwoServers(t *testing.T) {
	dir, err := os.MkdirTemp("", "relay") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	var rigs []*rig
	for i, only := range []bool{false, true} {
		own, other := fmt.Sprintf("unixgram://%s/%d", dir, i), fmt.Sprintf("unixgram://%s/%d", dir, 1-i)
		r := newRig(t, Config{
			Listeners: []ListenerConfig{{Address: own}}, RelayOnly: only, RelayLoopCheck: 50 * time.Millisecond,
			Relay: []relay.Route{{Targets: []relay.Target{{Address: other, Name: "peer"}}}},
		})
		r.listeners = nil // the rig's cannot run
		if err := r.Listen(); err != nil {
			t.Fatal(err)
		}
		rigs = append(rigs, r)
	}
	for _, r := range rigs {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		defer func() {
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}()
	}
	for i, r := range rigs {
		waittest.Until(t, fmt.Sprintf("server %d finds the loop", i), func() bool { return !r.Report().Relay[0].Up })
		if got := r.Report().Relay[0].LastError; !strings.Contains(got, "in a loop") {
			t.Errorf("server %d: %q", i, got)
		}
		r.want() // a tracer makes no stat
		if l := r.Report().Listeners[0]; l.Lines != 0 || l.RelayOnly != 0 {
			t.Errorf("server %d counts tracers: %+v", i, l)
		}
	}
}

// TestRelaySurvivesItsLog: a log that panics about a target that is away costs no line,
// and the panic is counted.
func TestRelaySurvivesItsLog(t *testing.T) {
	dir, err := os.MkdirTemp("", "relay") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	panics := guardtest.New(t)
	log := &wildLog{Handler: panics.Logger().Handler(), about: "cannot send"}
	log.Light(1)
	l := newLive(t, Config{
		Listeners: []ListenerConfig{{Address: "tcp://127.0.0.1:0"}}, Logger: slog.New(log),
		Relay: []relay.Route{{Targets: []relay.Target{{Address: "unixlines://" + dir + "/s"}}}},
	}).run()
	c := l.dial(0)
	write(t, c, "a:1|c\n")
	panics.Caught("log")
	if got := l.metrics.panics.Total(); got != 1 {
		t.Errorf("server.recovered_panics is %d, want 1", got)
	}
	target, err := net.Listen("unix", dir+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	write(t, c, "b:1|c\n")
	waittest.Until(t, "both lines are sent", func() bool { return l.Report().Relay[0].Sent == 2 })
}

// TestInvalidRoutes expects New to return the error of a route.
func TestInvalidRoutes(t *testing.T) {
	s, err := New(Config{Store: store.New(store.Options{}), Relay: []relay.Route{{Targets: []relay.Target{{Address: "nowhere"}}}}})
	if s != nil || err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("%v, %v", s, err)
	}
}
