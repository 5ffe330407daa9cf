//go:build proof

// The proofs take minutes each, so they need the build tag proof, which `make slow`
// sets. They print measurements and leave the judgment of times to the reader,
// because the machine may be busy.

package slow

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

// watch requests /ready until stopped, from another address than the load, and
// returns the latencies.
func watch(t *testing.T, d *daemon.Daemon) (stop func() []time.Duration) {
	var answers []time.Duration
	end, ended := make(chan bool), make(chan bool)
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}
	client := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{LocalAddr: from}).DialContext}}
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			case <-time.After(5 * time.Millisecond):
			}
			asked := time.Now()
			resp, err := client.Get("http://" + d.Admin + "/ready")
			if err != nil {
				t.Errorf("/ready: %v", err)
				continue
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != 200 {
				t.Errorf("/ready: status %d", resp.StatusCode)
			}
			answers = append(answers, time.Since(asked))
		}
	}()
	return func() []time.Duration {
		close(end)
		<-ended
		slices.Sort(answers)
		return answers
	}
}

func spread(times []time.Duration) string {
	if len(times) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d, median %v, p99 %v, longest %v", len(times), times[len(times)/2], times[len(times)*99/100], times[len(times)-1])
}

// processorTime returns the processor time of the daemon.
func processorTime(t *testing.T, d *daemon.Daemon) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.PID))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	if err1 != nil || err2 != nil {
		t.Fatalf("%v, %v", err1, err2)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

// catastrophes returns patterns that are exponential for backtracking engines, large
// in memory, or slow on a linear engine.
func catastrophes() []string {
	patterns := []string{
		"(a+)+$", "(a*)*b", "(a|a)*$", "(a|aa)+$", "(.*a){20}$", "(a?){30}a{30}$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*)*x", "(a+a+)+y", "((a*)*)*z",
		"([a-zA-Z]+)*$", "(x+x+)+y|(a+a+)+y", "(.+)+(.+)+(.+)+$", "^(a|b|ab)*c$", "(a|b|ab|ba)*c", "(ab*)*c", "((a|b)*)*c", "(a{1,20}){1,20}c", "(.{1,20}){1,20}c",
		"(a*a*)*b", "(a+)*b", "((a+)+)+b", "(((a+)+)+)+b", "(a*?)*?b", "(?:a+)+?b", "^(.*?,){20}P", "(.*){1,30}x", "(.*.*.*)*x", "(a|a|a|a)*b", "([^b]*)*b",
		`(\w+\s?)*c$`, `(\w*)*\d`, `(\w+)+\W`, `([\w.]+)*!x`, `(\d+|\w+)*!x`, `^([a-z0-9]+([-.][a-z0-9]+)*)*!x$`, `(\S+)*\s`, `(.|\w)*!x`, "(a.*a)*b", "(a.+)+b",
		strings.Repeat("(a{1,9})+", 20) + "$", strings.Repeat("a?", 100) + strings.Repeat("a", 100), strings.Repeat("(a*)", 60) + "b", strings.Repeat(".*", 100) + "x",
		strings.Repeat("a*", 200) + "b", strings.Repeat("[a-z]*", 120) + "!x", strings.Repeat(`\w*`, 200) + "!x", strings.Repeat("(a|b)*", 100) + "c", "[a-z]{1000}x", "(a{1000}){5}",
		"a{1000}b", ".{500}x", "(.{0,500}){1,5}x", `\pL{1000}x`, strings.Repeat(`\pL{100}`, 5), "(?:.{1,100}a){1,30}b", strings.Repeat("(", 90) + "a" + strings.Repeat(")*", 90) + "b",
		"(a|ab|abc|abcd|abcde)*f", "(a.?)*(b.?)*(c.?)*x", strings.Repeat("a{1000}", 9) + "b",
	}
	if len(patterns) != 60 {
		panic(len(patterns))
	}
	return patterns
}

// read requests a path. The error is that of an answer that was cut off.
func read(d *daemon.Daemon, path string) (int, string, error) {
	resp, err := http.Get("http://" + d.Admin + path)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// TestProofFilters requests 100,000 names of 200 bytes with 60 patterns on both
// engines.
func TestProofFilters(t *testing.T) {
	d := daemon.Start(t, daemon.Config{YAML: config})
	const names = 100_000
	createNames(t, d, names, func(i int) string { return fmt.Sprintf("%s%06d!", strings.Repeat("a", 193), i) })
	for _, engine := range []string{"true", "false"} {
		d.Post("/runtime_modify?proxy.reloadable_features.admin_stats_filter_use_re2=" + engine)
		stop := watch(t, d)
		var took, used []time.Duration
		outcomes := make(map[string]int)
		worst, longest := "", time.Duration(0)
		for _, pattern := range catastrophes() {
			asked, before := time.Now(), processorTime(t, d)
			status, body, err := read(d, "/stats?filter="+url.QueryEscape(pattern))
			elapsed := time.Since(asked)
			took, used = append(took, elapsed), append(used, processorTime(t, d)-before)
			outcome := strconv.Itoa(status)
			if err != nil { // cut, so that nobody takes it for complete
				outcome = "cut"
			}
			outcomes[outcome]++
			if status != 200 && (status != 400 || !strings.HasPrefix(body, "filter too expensive\n") && body != "Invalid re2 regex" && !strings.HasPrefix(body, "regular expression over the limit")) {
				t.Errorf("%q: status %d, %.80q", pattern, status, body)
			}
			if elapsed > longest {
				longest, worst = elapsed, pattern
			}
		}
		slices.Sort(took)
		slices.Sort(used)
		t.Logf("RE2 %s: requests %s (%q); processor time of one: %s; outcomes %v; /ready meanwhile: %s", engine, spread(took), worst, spread(used), outcomes, spread(stop()))
	}
	t.Logf("resident at the end: %d MiB", d.Resident()>>20)
}

// TestProofFlood repeatedly leaves 2,000 connections half open for a minute.
func TestProofFlood(t *testing.T) {
	d := daemon.Start(t, daemon.Config{YAML: config})
	idle, peak := d.Resident(), int64(0)
	stop := watch(t, d)
	for begun := time.Now(); time.Since(begun) < time.Minute; {
		var conns []net.Conn
		for range 2000 {
			c, err := net.Dial("tcp", d.Admin)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(c, "GET /re")
			conns = append(conns, c)
		}
		peak = max(peak, d.Resident())
		sent := time.Now()
		for _, c := range conns {
			_ = c.SetReadDeadline(time.Now().Add(daemon.Patience))
			_, _ = io.Copy(io.Discard, c) // until the server gives it up
			_ = c.Close()
		}
		t.Logf("2,000 half requests were given up within %v", time.Since(sent))
	}
	t.Logf("/ready meanwhile: %s; resident %d MiB, %+d MiB at most, %+d MiB afterwards", spread(stop()), idle>>20, (peak-idle)>>20, (d.Resident()-idle)>>20)
}

// TestProofNoForeignBytes sends 5 million requests, or FOREIGN of them, with canaries
// in query, header and body over 32 connections. No answer contains the canary of
// another.
func TestProofNoForeignBytes(t *testing.T) {
	total := int64(5_000_000)
	if n, err := strconv.ParseInt(os.Getenv("FOREIGN"), 10, 64); err == nil {
		total = n
	}
	d := daemon.Start(t, daemon.Config{YAML: config})
	var sent, shown atomic.Int64
	begun := time.Now()
	var wg sync.WaitGroup
	for worker := range 32 {
		wg.Go(func() {
			c, err := net.Dial("tcp", d.Admin)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			r := bufio.NewReaderSize(c, 128<<10)
			var out []byte
			for i := 0; sent.Add(1) <= total && !t.Failed(); i++ {
				canary := fmt.Sprintf("canary%dx%dz", worker, i)
				target := [...]string{"/config_dump?resource=" + canary, "/config_dump?mask=" + canary, "/config_dump?name_regex=(" + canary, "/" + canary, "/ingest/explain?line=" + canary + "%3a1%7cc",
					"/stats?filter=" + canary, "/ready?" + canary, "/ingest/explain"}[i%8]
				body := "line=" + strings.Repeat("x", i*37%1500) + canary + "%3a1%7cc"
				out = fmt.Appendf(out[:0], "POST %s HTTP/1.1\r\nHost: localhost\r\nX-C: %s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", target, canary, len(body), body)
				if _, err := c.Write(out); err != nil {
					t.Errorf("request %d: %v", i, err)
					return
				}
				resp, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Errorf("answer %d: %v", i, err)
					return
				}
				answer, err := io.ReadAll(resp.Body)
				if err != nil {
					t.Errorf("answer %d: %v", i, err)
					return
				}
				all, own := bytes.Count(answer, []byte("canary")), bytes.Count(answer, []byte(canary))
				for _, values := range resp.Header {
					all += strings.Count(strings.Join(values, " "), "canary")
				}
				shown.Add(int64(own))
				if all != own {
					t.Errorf("the answer to %s with %s: %.2000q", target, canary, answer)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d requests in %v; their own canaries were shown %d times", min(sent.Load(), total), time.Since(begun).Round(time.Second), shown.Load())
	if shown.Load() == 0 {
		t.Error("no answer shows a canary at all")
	}
}

// TestProofScrapes runs 8 clients for a minute on 1,000,000 series: two read
// compressed answers, two read 10 KiB a second, two stop reading, and two read plain
// answers.
func TestProofScrapes(t *testing.T) {
	const series = 1_000_000
	d := daemon.Start(t, daemon.Config{YAML: strings.Replace(config, "series_per_name: -1", "series_per_name: -1, series: -1, series_per_first_segment: -1", 1)})
	input := createNames(t, d, series, func(i int) string { return fmt.Sprintf("load.service_with_a_long_name.%06d.requests", i) })
	for range 3 {
		scrape(t, d)
	}
	idle, peak := d.Resident(), int64(0)
	stop := watch(t, d)
	deadline := time.Now().Add(time.Minute)
	var wg sync.WaitGroup
	var whole, refused, cut atomic.Int64
	for i := range 8 {
		wg.Go(func() {
			for time.Now().Before(deadline) {
				c, err := net.Dial("tcp", d.Admin)
				if err != nil {
					t.Error(err)
					return
				}
				encoding := [...]string{"gzip", "zstd", "", "", "", "", "", ""}[i]
				_, _ = fmt.Fprintf(c, "GET /stats/metrics HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: %s\r\nConnection: close\r\n\r\n", encoding)
				_ = c.SetReadDeadline(deadline.Add(daemon.Patience))
				resp, err := http.ReadResponse(bufio.NewReaderSize(c, 1<<10), nil)
				switch {
				case err != nil:
					t.Errorf("client %d: %v", i, err)
				case resp.StatusCode == 503:
					refused.Add(1)
					time.Sleep(time.Second)
				case i >= 4 && i < 6:
					time.Sleep(12 * time.Second)
					_, err = io.Copy(io.Discard, resp.Body)
				case i >= 2 && i < 4:
					for err == nil && time.Now().Before(deadline) {
						_, err = io.CopyN(io.Discard, resp.Body, 1<<10)
						time.Sleep(100 * time.Millisecond)
					}
				default:
					if _, err = io.Copy(io.Discard, resp.Body); err == nil {
						whole.Add(1)
					}
				}
				if err != nil {
					cut.Add(1)
				}
				_ = c.Close()
			}
		})
	}
	sent := 0
	for time.Now().Before(deadline) {
		if _, err := fmt.Fprint(input, "meanwhile:1|c\n"); err != nil {
			t.Fatal(err)
		}
		sent++
		peak = max(peak, d.Resident())
		time.Sleep(20 * time.Millisecond)
	}
	wg.Wait()
	t.Logf("%d whole answers, %d turned away, %d cut; /ready: %s; resident %d MiB, %+d MiB at most", whole.Load(), refused.Load(), cut.Load(), spread(stop()), idle>>20, (peak-idle)>>20)
	d.Wait("what was sent meanwhile", func(s daemon.Stats) bool { return s.Number("meanwhile") == float64(sent) })
	if whole.Load() == 0 {
		t.Error("no client got a whole answer")
	}
}
