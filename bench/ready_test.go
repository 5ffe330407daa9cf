package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/flush/deltastream"
	"github.com/statsd-admin/statsd-admin/store"
)

// clientEnv turns the test binary into a client of the administration port, since
// clients in the same process would compete for its scheduler. Its value is the base
// address; the first argument is the mode.
const clientEnv = "BENCH_CLIENT_OF"

func TestMain(m *testing.M) {
	if base := os.Getenv(clientEnv); base != "" {
		if err := client(base, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv(forgetfulEnv) != "" {
		if err := receive(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// client scrapes forever over that many connections, keeps that many pages with all
// stats open, or requests /ready that many times and prints the 50th and 99th
// percentile in nanoseconds.
func client(base string, args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	if args[0] != "probe" {
		begun, ends := make(chan error, n), make(chan error)
		for range n {
			go func() {
				c := &http.Client{Transport: &http.Transport{DisableCompression: true}}
				first, path := "/stats/prometheus", "/stats/prometheus"
				if args[0] == "live" {
					first, path = "/live", "/stats/stream?initial=0"
				}
				err := get(c, base+first)
				begun <- err
				for err == nil {
					err = get(c, base+path)
				}
				ends <- err
			}()
		}
		for range n {
			if err := <-begun; err != nil {
				return err
			}
		}
		fmt.Println("begun")
		return <-ends
	}
	var took []time.Duration
	c := &http.Client{}
	for range n {
		start := time.Now()
		if err := get(c, base+"/ready"); err != nil {
			return err
		}
		took = append(took, time.Since(start))
		time.Sleep(time.Millisecond) // so that many phases of the scrapes are met
	}
	slices.Sort(took)
	fmt.Println(percentile(took, 0.5), percentile(took, 0.99))
	return nil
}

func get(c *http.Client, url string) error {
	resp, err := c.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// resident returns the resident memory of this process in MiB, or 0 if the system
// does not report it.
func resident() float64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var all, pages int
	if _, err := fmt.Sscan(string(b), &all, &pages); err != nil {
		return 0
	}
	return float64(pages*os.Getpagesize()) / (1 << 20)
}

// BenchmarkReady requests /ready in sequence while clients in other processes do
// nothing, scrape a million series as fast as they can, or keep 50 live pages open that
// show all of them; 1 % of the series change each second. RSS-MiB is the resident
// memory meanwhile, writer-p99-ns the time of an increment and a record.
func BenchmarkReady(b *testing.B) {
	st, cs := clusters(loadNames())
	h := st.Root().Histogram("latency", store.Milliseconds)
	runtime.GC()
	for _, c := range []struct {
		name, mode string
		clients    int
	}{{"idle", "", 0}, {"8-scrapes", "scrape", 8}, {"50-live-pages", "live", 50}} {
		b.Run("during="+c.name, func(b *testing.B) {
			stream := deltastream.New(deltastream.Config{Store: st})
			srv, err := admin.New(admin.Config{Address: "127.0.0.1:0", Store: st, Sources: admin.Sources{StatsStream: stream}})
			must(b, err)
			must(b, srv.Listen())
			ctx, cancel := context.WithCancel(context.Background())
			ended, streamed := make(chan error), make(chan error)
			go func() { ended <- srv.Run(ctx) }()
			go func() { streamed <- stream.Run(ctx) }()
			start := func(args ...string) (*exec.Cmd, *bufio.Reader) {
				cmd := exec.CommandContext(ctx, os.Args[0], args...)
				cmd.Env = append(os.Environ(), clientEnv+"=http://"+srv.Addr().String())
				cmd.Stderr = os.Stderr
				out, err := cmd.StdoutPipe()
				must(b, err)
				must(b, cmd.Start())
				return cmd, bufio.NewReader(out)
			}
			if c.clients > 0 {
				busy, out := start(c.mode, strconv.Itoa(c.clients))
				_, err := out.ReadString('\n')
				must(b, err)
				defer func() { _ = busy.Wait() }() // it is killed
			}
			var stop atomic.Bool
			wrote := make(chan []time.Duration)
			go func() { wrote <- writer(cs[:1000], h, &stop, time.Millisecond) }()
			go change(ctx, cs)
			b.ResetTimer()
			probe, out := start("probe", strconv.Itoa(b.N))
			var p50, p99 float64
			_, err = fmt.Fscan(out, &p50, &p99)
			must(b, err)
			must(b, probe.Wait())
			b.StopTimer()
			stop.Store(true)
			took := <-wrote
			slices.Sort(took)
			b.ReportMetric(p50, "p50-ns")
			b.ReportMetric(p99, "p99-ns")
			b.ReportMetric(percentile(took, 0.99), "writer-p99-ns")
			b.ReportMetric(resident(), "RSS-MiB")
			cancel()
			must(b, <-ended)
			must(b, <-streamed)
		})
	}
}

// change increments another 1 % of the counters each second until ctx ends.
func change(ctx context.Context, cs []*store.Counter) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for range len(cs) / 1000 {
			i = (i + 7919) % len(cs) // spread
			cs[i].Inc()
		}
	}
}
