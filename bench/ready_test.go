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
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
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
	os.Exit(m.Run())
}

// client scrapes forever over that many connections, or requests /ready that many
// times and prints the 50th and 99th percentile in nanoseconds.
func client(base string, args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	if args[0] == "scrape" {
		begun, ends := make(chan error, n), make(chan error)
		for range n {
			go func() {
				c := &http.Client{Transport: &http.Transport{DisableCompression: true}}
				err := get(c, base+"/stats/prometheus")
				begun <- err
				for err == nil {
					err = get(c, base+"/stats/prometheus")
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

// BenchmarkReady requests /ready in sequence while 0 or 8 clients, in separate
// processes, scrape a million series as fast as they can. RSS-MiB is the resident
// memory meanwhile.
func BenchmarkReady(b *testing.B) {
	st, _ := clusters(loadNames())
	runtime.GC()
	for _, c := range []struct {
		name    string
		clients int
	}{{"idle", 0}, {"8-scrapes", 8}} {
		b.Run("during="+c.name, func(b *testing.B) {
			srv, err := admin.New(admin.Config{Address: "127.0.0.1:0", Store: st})
			must(b, err)
			must(b, srv.Listen())
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error)
			go func() { ended <- srv.Run(ctx) }()
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
				scraper, out := start("scrape", strconv.Itoa(c.clients))
				_, err := out.ReadString('\n')
				must(b, err)
				defer func() { _ = scraper.Wait() }() // it is killed
			}
			b.ResetTimer()
			probe, out := start("probe", strconv.Itoa(b.N))
			var p50, p99 float64
			_, err = fmt.Fscan(out, &p50, &p99)
			must(b, err)
			must(b, probe.Wait())
			b.StopTimer()
			b.ReportMetric(p50, "p50-ns")
			b.ReportMetric(p99, "p99-ns")
			b.ReportMetric(resident(), "RSS-MiB")
			cancel()
			must(b, <-ended)
		})
	}
}
