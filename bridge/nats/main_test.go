package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/flush/statsdsink"
	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/statsd"
	"github.com/statsd-admin/statsd-admin/store"
)

// start runs the command until the test ends, and returns the address of its socket.
func start(t *testing.T, args ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ready, ended := make(chan net.Addr, 1), make(chan error, 1)
	go func() { ended <- run(ctx, args, func(a net.Addr) { ready <- a }) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("%v: %v", args, err)
		}
	})
	select {
	case a := <-ready:
		return a.String()
	case err := <-ended:
		ended <- nil
		t.Fatalf("%v: %v", args, err)
	}
	return ""
}

// hub runs a NATS server with a configuration until the test ends, and returns its URL.
func hub(t *testing.T, config string) string {
	t.Helper()
	program, err := exec.LookPath("nats-server")
	if err != nil {
		t.Skip("nats-server is not installed")
	}
	dir := t.TempDir()
	settings := filepath.Join(dir, "settings")
	if err := os.WriteFile(settings, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--config", settings, "--addr", "127.0.0.1", "--port", "-1", "--ports_file_dir", dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	file := filepath.Join(dir, fmt.Sprintf("nats-server_%d.ports", cmd.Process.Pid))
	var ports struct{ Nats []string }
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &ports) // part of the file until it is written
		}
		if err == nil && len(ports.Nats) > 0 {
			return ports.Nats[0]
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v, %v", file, ports, err)
		}
	}
}

// receiver is a StatsD server at the end of a subscription.
type receiver struct {
	srv *statsd.Server
	st  *store.Store
}

func receive(t *testing.T) (r receiver, address string) {
	t.Helper()
	r.st = store.New(store.Options{})
	srv, err := statsd.New(statsd.Config{Store: r.st, Listeners: []statsd.ListenerConfig{{Address: "udp://127.0.0.1:0"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Listen(); err != nil {
		t.Fatal(err)
	}
	r.srv = srv
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := srv.Run(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { srv.Close(); ended.Wait() })
	return r, strings.TrimPrefix(srv.Listeners()[0].Address, "udp://")
}

// awaitLines waits until the servers have applied a number of lines.
func awaitLines(t *testing.T, want uint64, servers ...receiver) {
	t.Helper()
	applied := func() (n uint64) {
		for _, r := range servers {
			n += r.srv.Report().Listeners[0].Applied
		}
		return n
	}
	for deadline := time.Now().Add(30 * time.Second); applied() < want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d lines arrived, want %d", applied(), want)
		}
	}
}

// count returns the value of a received counter, 0 if there is none.
func count(r receiver, name string) uint64 {
	v := r.st.View()
	defer v.Close()
	c, ok := v.Find(name)
	if !ok {
		return 0
	}
	return c.Uint()
}

// TestCountersCrossNATS sends the counters of a store through a NATS server to a server
// that gets all of them and to two that share them.
func TestCountersCrossNATS(t *testing.T) {
	url := hub(t, "")
	all, address := receive(t)
	start(t, "--server", url, "--to", address)
	half, address := receive(t)
	start(t, "--server", url, "--to", address, "--group", "halves")
	other, address := receive(t)
	start(t, "--server", url, "--to", address, "--group", "halves")
	entry := start(t, "--server", url, "--from", "127.0.0.1:0")

	st := store.New(store.Options{})
	const series = 300
	for i := range series {
		st.Root().Counter(fmt.Sprint("c", i)).Add(uint64(i) + 1)
	}
	sink, err := statsdsink.New(statsdsink.Config{
		Options: sinkqueue.Options{Store: st, Filter: sinkqueue.Filter{Include: match.List{match.Prefix("c")}}},
		Address: entry, PacketBytes: 100,
	})
	if err != nil {
		t.Fatal(err)
	}
	snap := st.Flush(store.FlushOptions{})
	if err := sink.Flush(snap); err != nil {
		t.Fatal(err)
	}
	snap.Close()
	var sent sync.WaitGroup
	sent.Go(func() { sink.Run(t.Context()) })
	sink.Close()
	sent.Wait()
	awaitLines(t, series, all)
	awaitLines(t, series, half, other)
	for i := range series {
		name := fmt.Sprint("c", i)
		if n := count(all, name); n != uint64(i)+1 {
			t.Errorf("%s is %d, want %d", name, n, i+1)
		}
		if a, b := count(half, name), count(other, name); a+b != uint64(i)+1 || a != 0 && b != 0 {
			t.Errorf("%s is %d and %d, want %d in one of them", name, a, b, i+1)
		}
	}
}

// TestLongDatagramsAreLost: the ones behind a datagram that the server refuses arrive.
func TestLongDatagramsAreLost(t *testing.T) {
	url := hub(t, "max_payload: 100")
	r, address := receive(t)
	start(t, "--server", url, "--to", address)
	out, err := net.Dial("udp", start(t, "--server", url, "--from", "127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for _, line := range []string{strings.Repeat("x", 100) + ":1|c", "c:2|c"} {
		if _, err := out.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	awaitLines(t, 1, r)
	if n := count(r, "c"); n != 2 {
		t.Errorf("c is %d, want 2", n)
	}
}

func TestBadArguments(t *testing.T) {
	url := hub(t, "")
	for _, tt := range []struct{ args, want string }{
		{"", "either --from or --to"},
		{"--from 127.0.0.1:0 --to 127.0.0.1:1", "either --from or --to"},
		{"--from 127.0.0.1:0 more", "no arguments"},
		{"--form 127.0.0.1:0", "-form"},
		{"--from 127.0.0.1:0 --server nats://127.0.0.1:1", "nats://127.0.0.1:1: "},
		{"--from 127.0.0.1:0 --server nats://user:s3cret@127.0.0.1:1", "127.0.0.1:1: "},
		{"--from 127.0.0.1:0 --server nats://s3cret@127.0.0.1:1,nats://s3cret@127.0.0.1:2", "127.0.0.1:2: "},
		{"--from 127.0.0.1:0 --server nats://user:s3cret%zz@127.0.0.1:1", "127.0.0.1:1: not a URL"},
		{"--from nowhere --server " + url, "nowhere"},
		{"--to nowhere --server " + url, "nowhere"},
		{"--to 127.0.0.1:1 --subject a..b --server " + url, "subject"},
	} {
		if err := run(t.Context(), strings.Fields(tt.args), func(net.Addr) {}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.args, err, tt.want)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("the error shows credentials: %v", err)
		}
	}
}
