package statsd

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/certtest"
	"github.com/statsd-admin/statsd-admin/internal/descriptors"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/store"
)

// carry hands over what the stats of one server changed.
func carry(t *testing.T, from *Server, e *store.Export, im *store.Import) {
	t.Helper()
	e.Next(func(h *store.ExportedStat) bool {
		if from.IsSet(h) {
			return true
		}
		if err := im.Add(h); err != nil {
			t.Error(err)
		}
		return true
	})
}

// inherit returns the configuration of a successor.
func inherit(t *testing.T, from *live, cfg Config) Config {
	t.Helper()
	all, err := from.Sockets()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Listeners = slices.Clone(cfg.Listeners)
	for i := range all {
		if all[i].Address != cfg.Listeners[i].Address {
			t.Fatalf("listener %d has the address %q", i, all[i].Address)
		}
		cfg.Listeners[i].Sockets, cfg.Listeners[i].TakePath = all[i].Files, true
	}
	return cfg
}

// TestHandOver moves a server under load to another one, with all sockets and
// connections. Nothing is lost and nothing is counted twice.
func TestHandOver(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{Listeners: []ListenerConfig{
		{Address: "udp://127.0.0.1:0", Readers: 2},
		{Address: "tcp://127.0.0.1:0"},
		{Address: "unixgram://" + filepath.Join(dir, "g")},
		{Address: "unixlines://" + filepath.Join(dir, "l")},
		{Address: "unixstream://" + filepath.Join(dir, "f")},
	}}
	parent := newLive(t, cfg).run()
	const each = 4000
	var senders sync.WaitGroup
	half := make(chan struct{}, len(cfg.Listeners))
	for i := range cfg.Listeners {
		c := parent.dial(i)
		senders.Go(func() {
			for n := range each {
				msg := []byte(fmt.Sprintf("n%d:1|c\nn%d:2|c", i, i))
				switch i {
				case 1, 3: // the second line comes in two pieces
					msg = append(msg, '\n')
					if _, err := c.Write(msg[:len(msg)-3]); err != nil {
						t.Error(err)
					}
					msg = msg[len(msg)-3:]
				case 4:
					msg = append(binary.LittleEndian.AppendUint32(nil, uint32(len(msg))), msg...)
				}
				if _, err := c.Write(msg); err != nil {
					t.Errorf("%s: %v", cfg.Listeners[i].Address, err)
					return
				}
				if n == each/4 {
					half <- struct{}{}
				}
			}
		})
	}
	for range cfg.Listeners {
		<-half
	}
	newLive(t, inherit(t, parent, cfg)).stop() // one that does not get to run changes nothing
	child := newLive(t, inherit(t, parent, cfg))
	e, im := parent.store.NewExport(), child.store.NewImport(child.Import)
	carry(t, parent.Server, e, im)
	child.run()
	parent.HandOver()
	if n := parent.Connections(); n != 3 {
		t.Errorf("%d connections stay, want 3", n)
	}
	var adopting sync.Mutex
	parent.TakeConnections(func(c Connection) bool {
		adopting.Lock()
		defer adopting.Unlock()
		if err := child.Adopt(c); err != nil {
			t.Error(err)
		}
		return true
	})
	if n := parent.Connections(); n != 0 {
		t.Errorf("%d connections stay although all were given away", n)
	}
	senders.Wait()
	parent.stop()
	carry(t, parent.Server, e, im)
	im.Close()
	for i := range cfg.Listeners {
		waittest.Until(t, cfg.Listeners[i].Address+" is complete", func() bool {
			got := child.counter(fmt.Sprint("n", i))
			if got > 3*each {
				t.Fatalf("%s: %d, want %d", cfg.Listeners[i].Address, got, 3*each)
			}
			return got == 3*each
		})
	}
	for i := range 3 {
		if _, err := os.Lstat(filepath.Join(dir, "glf"[i:i+1])); err != nil {
			t.Errorf("the old server took a path with it: %v", err)
		}
	}
	write(t, child.dial(3), "after:1|c\n")
	waittest.Until(t, "a new connection is served", func() bool { return child.counter("after") == 1 })
	child.stop()
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("the new server leaves %v", left)
	}
}

// TestKeptConnections offers connections that the receiver refuses: they stay
// open.
func TestKeptConnections(t *testing.T) {
	cfg := Config{Listeners: []ListenerConfig{{Address: "tcp://127.0.0.1:0"}}}
	l := newLive(t, cfg).run()
	c := l.dial(0)
	write(t, c, "a:1|c\na:1")
	waittest.Until(t, "the first line is in", func() bool { return l.counter("a") == 1 })
	l.HandOver()
	asked := 0
	l.TakeConnections(func(o Connection) bool {
		asked++
		if !bytes.Equal(o.Read, []byte("a:1")) || o.Address != "tcp://127.0.0.1:0" {
			t.Errorf("offered %q of %q", o.Read, o.Address)
		}
		_ = o.File.Close()
		return false
	})
	if asked != 1 {
		t.Errorf("%d connections were offered", asked)
	}
	write(t, c, "|c\na:1|c\n")
	waittest.Until(t, "the connection goes on", func() bool { return l.counter("a") == 3 })
	if _, err := net.Dial("tcp", l.address(0)); err == nil {
		t.Error("the server still accepts")
	}
}

// TestHandshakeDuringHandOff: connections with TLS are not handed over, and one whose
// handshake has not begun goes on as if nothing had happened.
func TestHandshakeDuringHandOff(t *testing.T) {
	cert := certtest.Issue(t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, nil)
	pool := x509.NewCertPool()
	pool.AddCert(cert.Leaf)
	server := &tls.Config{Certificates: []tls.Certificate{cert.Certificate}}
	l := newLive(t, Config{Listeners: []ListenerConfig{{Address: "tls://127.0.0.1:0", TLS: server}}}).run()
	c := l.dial(0)
	waittest.Until(t, "the connection is open", func() bool { return l.Connections() == 1 })
	l.HandOver()
	l.TakeConnections(func(o Connection) bool {
		t.Error("a connection with TLS was offered")
		_ = o.File.Close()
		return true
	})
	client := tls.Client(c, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"})
	write(t, client, "a:1|c\n")
	waittest.Until(t, "the line", func() bool { return l.counter("a") == 1 })
	_ = client.Close()
}

func TestImportedStats(t *testing.T) {
	parent, child := newRig(t, Config{Prefix: "p"}), newRig(t, Config{Prefix: "p", Limits: Limits{Series: 3}})
	parent.send("a:3|c|#k:v,bare\nb:7|g\nb:+1|g\ns:x|s\ns:y|s\n")
	parent.flush()
	child.send("s:z|s\n")
	im := child.store.NewImport(child.Import)
	carry(t, parent.Server, parent.store.NewExport(), im)
	im.Close()
	child.send("a:1|c|#k:v,bare\nb:-2|g\ns:z|s\n")
	child.flush()
	if got, want := strings.Join(child.stats(), ", "), "p.a.bare.k.v 4, p.b 6, p.s 1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, h := range []store.ExportedStat{
		{Name: "p.full", Network: true, Delta: 1},                            // the limit of series
		{Name: "other.a", Network: true, Delta: 1},                           // another prefix
		{Name: "p.a", Network: false, Delta: 1},                              // of the program
		{Name: "p.b", Network: true, Delta: 1},                               // has another kind
		{Name: "p.h", Network: true, Kind: store.KindHistogram},              // not handed over
		{Name: "p.g", Network: true, Kind: store.KindGauge},                  // received gauges are fractional
		{Name: "p.", Network: true, Kind: store.KindGauge, Fractional: true}, // no name
	} {
		if got := child.Import(&h); got != nil {
			t.Errorf("%+v: %v", h, got)
		}
	}
}

// TestFailedSocketsLeaveNothingOpen: a socket behind others cannot be duplicated.
func TestFailedSocketsLeaveNothingOpen(t *testing.T) {
	l := newLive(t, Config{Listeners: []ListenerConfig{
		{Address: "udp://127.0.0.1:0", Readers: 2}, {Address: "tcp://127.0.0.1:0"}, {Address: "udp://127.0.0.1:0", Readers: 2},
	}})
	_ = l.listeners[2].sockets[1].conn.Close()
	descriptors.Check(t, "Sockets", func() {
		if all, err := l.Sockets(); err == nil || len(all) != 0 {
			t.Errorf("%v, %v", all, err)
		}
	})
}

func TestAdoptRefuses(t *testing.T) {
	l := newLive(t, Config{Listeners: []ListenerConfig{{Address: "tcp://127.0.0.1:0"}}}).run()
	c := l.dial(0)
	f, err := c.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Adopt(Connection{Address: "tcp://elsewhere:1", File: f}); err == nil || !strings.Contains(err.Error(), "no listener") {
		t.Errorf("unknown listener: %v", err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Adopt(Connection{Address: "tcp://127.0.0.1:0", File: null}); err == nil {
		t.Error("a file was adopted as a connection")
	}
	l.stop()
	if _, err := l.Sockets(); err == nil {
		t.Error("a server that ended has sockets")
	}
}

// TestPause: a paused server leaves what arrives in its sockets, continues with
// its connections, and takes up everything when it resumes.
func TestPause(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{Listeners: []ListenerConfig{
		{Address: "udp://127.0.0.1:0", Readers: 2},
		{Address: "tcp://127.0.0.1:0"},
		{Address: "unixgram://" + filepath.Join(dir, "g")},
		{Address: "unixlines://" + filepath.Join(dir, "l")},
	}}
	l := newLive(t, cfg).run()
	old := l.dial(1)
	write(t, old, "old:1|c\n")
	waittest.Until(t, "the connection is open", func() bool { return l.counter("old") == 1 })
	for range 20 { // also before the readers notice
		l.Pause()
		l.Resume()
	}
	l.Pause()
	l.Pause()
	write(t, old, "old:1|c\n")
	waittest.Until(t, "the connection goes on", func() bool { return l.counter("old") == 2 })
	sent := uint64(0)
	send := func() {
		for i := range cfg.Listeners {
			write(t, l.dial(i), "new:1|c\n")
			sent++
		}
	}
	send() // a reader may be about to take one more
	send()
	time.Sleep(20 * time.Millisecond)
	if got := l.counter("new"); got >= sent {
		t.Errorf("a paused server took %d of %d lines", got, sent)
	}
	l.Resume()
	waittest.Until(t, "everything is taken", func() bool { return l.counter("new") == sent })
	send()
	waittest.Until(t, "the server goes on", func() bool { return l.counter("new") == sent })
	l.Pause()
	l.stop()
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("a paused server that ends leaves %v", left)
	}
}

// TestSetsOfAnEndedServer: the last stats are exported when the input has ended, and
// the counts of sets are not among them.
func TestSetsOfAnEndedServer(t *testing.T) {
	l := newLive(t, Config{Listeners: []ListenerConfig{{Address: "tcp://127.0.0.1:0"}}}).run()
	c := l.dial(0)
	write(t, c, "who:a|s\nlevel:1|g\n")
	waittest.Until(t, "the lines are applied", func() bool {
		v := l.store.View()
		defer v.Close()
		_, ok := v.Find("level")
		return ok
	})
	l.stop()
	var got []string
	l.store.NewExport().Next(func(h *store.ExportedStat) bool {
		if h.Network && !l.IsSet(h) {
			got = append(got, h.Name)
		}
		return true
	})
	if !slices.Equal(got, []string{"level"}) {
		t.Errorf("exported are %q, want level alone", got)
	}
}
