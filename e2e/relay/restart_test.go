package relay

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

// TestHotRestartsOfARelay replaces a relay three times while lines come over TCP and a
// unix socket: every line arrives once, on the daemon that its series belongs to.
func TestHotRestartsOfARelay(t *testing.T) {
	tcp := daemon.Start(t, daemon.Config{YAML: fmt.Sprintf(aggregator, "tcp://127.0.0.1:0")})
	unix := daemon.Start(t, daemon.Config{YAML: fmt.Sprintf(aggregator, "unixlines://$DIR/in.sock")})
	dir := t.TempDir()
	start := func(epoch int) *daemon.Daemon {
		return daemon.Start(t, daemon.Config{YAML: fmt.Sprintf(`
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
stats_flush_interval: 0.2s
statsd:
  listeners: [{name: t, address: "tcp://127.0.0.1:0"}, {name: u, address: "unixlines://%[1]s/u"}]
  relay_only: true
  relay: [{mode: hash, hash_on: series, targets: [{name: tcp, address: "tcp://%[2]s"}, {name: unix, address: "unixlines://%[3]s/in.sock"}]}]
`, dir, tcp.Address("in"), unix.Dir), Args: []string{"--socket-path", filepath.Join(dir, "hot"), "--restart-epoch", strconv.Itoa(epoch), "--parent-shutdown-time-s", "0"}})
	}
	old := start(0)
	address := old.Address("t")
	var sent atomic.Int64
	stop := make(chan struct{})
	var senders sync.WaitGroup
	for i, at := range [][2]string{{"tcp", address}, {"unix", dir + "/u"}} {
		c, err := net.Dial(at[0], at[1])
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		senders.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := fmt.Fprintf(c, "shop.count:1|c|#sender:%d,n:%d\n", i, n%50); err != nil {
					t.Error(err)
					return
				}
				sent.Add(1)
			}
		})
	}
	more := func() {
		t.Helper()
		n := sent.Load()
		daemon.Until(t, "more lines", func() bool { return t.Failed() || sent.Load() > n+1000 })
	}
	for epoch := 1; epoch <= 3; epoch++ {
		more()
		next := start(epoch)
		if status := old.Exit(); status != 0 {
			t.Errorf("epoch %d ends with %d:\n%s", epoch-1, status, old.Output())
		}
		old = next
	}
	more()
	close(stop)
	senders.Wait()
	daemon.Until(t, "all lines", func() bool {
		n := 0.0
		for _, x := range counts(tcp.Stats(), unix.Stats()) {
			n += x
		}
		if n > float64(sent.Load()) {
			t.Fatalf("%v lines were counted, %d sent", n, sent.Load())
		}
		return n == float64(sent.Load())
	})
	one, other := tcp.Stats(), unix.Stats()
	for name := range counts(one) {
		if other[name] != "" {
			t.Errorf("%s is on both daemons", name)
		}
	}
	old.Signal(syscall.SIGTERM)
	if status := old.Exit(); status != 0 {
		t.Errorf("the last relay ends with %d:\n%s", status, old.Output())
	}
	for _, d := range []*daemon.Daemon{tcp, unix} {
		if s := d.Stats(); s.Sum("ingest.lines_rejected") != 0 {
			t.Errorf("lines were cut: %v", s)
		}
	}
}

// TestQueuesOfARelayMove replaces a relay while its target is down. The target gets every
// line once, from the next relay.
func TestQueuesOfARelayMove(t *testing.T) {
	dir, place := t.TempDir(), t.TempDir()
	start := func(epoch int) *daemon.Daemon {
		return daemon.Start(t, daemon.Config{YAML: fmt.Sprintf(`
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
stats_flush_interval: 0.2s
statsd:
  listeners: [{name: in, address: "tcp://127.0.0.1:0"}]
  relay: [{targets: [{name: dead, address: "unixlines://%s/in.sock"}]}]
`, place), Args: []string{"--socket-path", filepath.Join(dir, "hot"), "--restart-epoch", strconv.Itoa(epoch), "--parent-shutdown-time-s", "0"}})
	}
	old := start(0)
	c, err := net.Dial("tcp", old.Address("in"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const lines = 500
	for i := range lines {
		if _, err := fmt.Fprintf(c, "shop.count:1|c|#n:%d\n", i%200); err != nil {
			t.Fatal(err)
		}
	}
	old.Wait("lines that wait", func(s daemon.Stats) bool { return s.Number("relay.accepted_lines.target.dead") == lines })
	next := start(1)
	if status := old.Exit(); status != 0 {
		t.Errorf("status %d:\n%s", status, old.Output())
	}
	target := daemon.Start(t, daemon.Config{Dir: place, YAML: fmt.Sprintf(aggregator, "unixlines://$DIR/in.sock")})
	next.Wait("all lines to be sent", func(s daemon.Stats) bool { return s.Number("relay.lines.target.dead") == lines })
	arrived(target, lines)
	if s := next.Stats(); s.Sum("relay.dropped_lines")+s.Sum("relay.ambiguous_lines") != 0 || s.Number("relay.accepted_lines.target.dead") != lines {
		t.Errorf("%v", s)
	}
}
