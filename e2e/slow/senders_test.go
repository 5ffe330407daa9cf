//go:build proof

package slow

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

// asEnv makes the test binary another process of a proof: the senders of an attack, so
// that the client of /ready does not wait for them inside the Go runtime, or a server that
// reads and forgets.
const asEnv = "SLOW_RUN_AS"

func TestMain(m *testing.M) {
	switch as := strings.Fields(os.Getenv(asEnv)); {
	case len(as) == 0:
		os.Exit(m.Run())
	case as[0] == "forget":
		forget()
	default:
		send(as[0], victim{as[1], as[2], as[3]})
	}
}

// lines reports whether the attack sends lines.
func (a namedAttack) lines() bool { return strings.HasPrefix(a.name, "lines") || a.name == "datagrams" }

// run starts this binary as another process, which ends with its input. It returns the
// first line of its output, and a function that ends it and returns the rest.
func run(t *testing.T, as string, wait bool) (first string, stop func() string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), asEnv+"="+as), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	stop = func() string {
		if ended {
			return ""
		}
		ended = true
		_ = in.Close()
		rest, _ := io.ReadAll(out)
		_ = cmd.Wait()
		return string(rest)
	}
	t.Cleanup(func() { stop() })
	if wait {
		b := make([]byte, 1)
		for !strings.HasSuffix(first, "\n") {
			if n, err := out.Read(b); err != nil || n == 0 {
				t.Fatal("no output: ", err)
			}
			first += string(b)
		}
	}
	return first, stop
}

// startSenders starts the three senders of an attack. The function it returns ends them
// and returns how many bytes they sent.
func startSenders(t *testing.T, name, admin, tcp, udp string) func() int64 {
	t.Helper()
	_, stop := run(t, strings.Join([]string{name, admin, tcp, udp}, " "), false)
	return func() int64 {
		var n int64
		if _, err := fmt.Sscan(stop(), &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
}

// send is the process of startSenders.
func send(name string, v victim) {
	ctx, cancel := context.WithCancel(context.Background())
	var sent atomic.Int64
	var wg sync.WaitGroup
	for _, a := range attacks() {
		if a.name == name {
			for i := range 3 {
				rnd := rand.New(rand.NewPCG(uint64(i), 1))
				wg.Go(func() { a.attack(ctx, v, rnd, &sent) })
			}
		}
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	cancel()
	wg.Wait()
	fmt.Println(sent.Load())
}

// beside returns the latencies of /ready of a process that discards what the same senders
// send for a time: the share of the machine, not of the daemon.
func beside(t *testing.T, name string, length time.Duration) []time.Duration {
	t.Helper()
	first, _ := run(t, "forget", true)
	var v victim
	if _, err := fmt.Sscan(first, &v.admin, &v.tcp, &v.udp); err != nil {
		t.Fatal(err)
	}
	stop := watch(t, &daemon.Daemon{Admin: v.admin})
	sent := startSenders(t, name, v.admin, v.tcp, v.udp)
	time.Sleep(length)
	sent()
	return stop()
}

// forget is a process that reads and discards, with a /ready.
func forget() {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	discard := func(c io.Reader) {
		b := make([]byte, 64<<10)
		for {
			if _, err := c.Read(b); err != nil {
				return
			}
		}
	}
	admin, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(err)
	go discard(udp)
	go func() {
		for {
			if c, err := tcp.Accept(); err == nil {
				go discard(c)
			}
		}
	}()
	go func() {
		must(http.Serve(admin, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "LIVE\n") })))
	}()
	fmt.Println(admin.Addr(), tcp.Addr(), udp.LocalAddr())
	_, _ = io.Copy(io.Discard, os.Stdin)
}
