//go:build proof

package slow

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

const (
	attackBudget = 64 << 20
	attackMost   = attackBudget*3/2 + 64<<20 // resident
)

const attackConfig = `
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}, debug_endpoints: true}
stats_config: {history_bytes: 0}
layered_runtime: {layers: [{name: admin, admin_layer: {}}]}
stats_flush_interval: 0.5s
statsd:
  listeners:
  - {name: tcp, address: "tcp://127.0.0.1:0"}
  - {name: udp, address: "udp://127.0.0.1:0"}
  limits: {memory_bytes: 67108864, new_series_per_second: -1, series_per_name: -1, series_per_first_segment: -1}
  ttl: {counter: 10s, gauge: 10s, histogram: 10s, set: 10s}
`

// victim has the addresses of an attacked process.
type victim struct{ admin, tcp, udp string }

func (v victim) address(network string) string {
	if network == "udp" {
		return v.udp
	}
	return v.tcp
}

// attack is a kind of input at full speed. It runs until ctx is done, on several
// goroutines.
type attack func(ctx context.Context, v victim, rnd *rand.Rand, sent *atomic.Int64)

// lineAttack sends packets of lines.
func lineAttack(listener string, line func(rnd *rand.Rand) string) attack {
	return func(ctx context.Context, v victim, rnd *rand.Rand, sent *atomic.Int64) {
		c, err := net.Dial(listener, v.address(listener))
		if err != nil {
			return
		}
		defer c.Close()
		defer context.AfterFunc(ctx, func() { c.Close() })()
		for ctx.Err() == nil {
			var b strings.Builder
			for b.Len() < 6000 {
				b.WriteString(line(rnd) + "\n")
			}
			n, _ := io.WriteString(c, b.String()) // UDP can fail if the queue is full
			sent.Add(int64(n))
		}
	}
}

// requestAttack sends requests and reads the answers.
func requestAttack(method string, target func(rnd *rand.Rand) string) attack {
	return func(ctx context.Context, v victim, rnd *rand.Rand, sent *atomic.Int64) {
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		for ctx.Err() == nil {
			path := target(rnd)
			req, err := http.NewRequestWithContext(ctx, method, "http://"+v.admin+path, nil)
			if err != nil {
				panic(err)
			}
			sent.Add(int64(len(path)))
			if resp, err := client.Do(req); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		}
	}
}

// holdAttack opens connections, sends a request and reads nothing, as many at a time
// as the server takes.
func holdAttack(text string) attack {
	return func(ctx context.Context, v victim, rnd *rand.Rand, sent *atomic.Int64) {
		for ctx.Err() == nil {
			var conns []net.Conn
			for range 80 {
				c, err := net.Dial("tcp", v.admin)
				if err != nil {
					break
				}
				n, _ := io.WriteString(c, text)
				sent.Add(int64(n))
				conns = append(conns, c)
			}
			pause := time.NewTimer(time.Duration(100+rnd.IntN(900)) * time.Millisecond)
			select {
			case <-ctx.Done():
			case <-pause.C:
			}
			pause.Stop()
			for _, c := range conns {
				_ = c.Close()
			}
		}
	}
}

// namedAttack is an attack of the table.
type namedAttack struct {
	name   string
	attack attack
}

func attacks() []namedAttack {
	long := func(rnd *rand.Rand, n int) string { return strconv.Itoa(rnd.IntN(1e9)) + strings.Repeat("x", n) }
	tags := func(rnd *rand.Rand, n int, value func() string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf("k%d:%s", i, value())
		}
		rnd.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
		return strings.Join(all, ",")
	}
	headers := strings.Repeat("x-"+strings.Repeat("h", 50)+": "+strings.Repeat("v", 50)+"\r\n", 60)
	return []namedAttack{
		{"lines-long-tags", lineAttack("tcp", func(rnd *rand.Rand) string {
			return "a:1|c|#" + tags(rnd, 15, func() string { return long(rnd, 200) })
		})},
		{"lines-tag-orders", lineAttack("tcp", func(rnd *rand.Rand) string { return "a:1|c|#" + tags(rnd, 15, func() string { return "v" }) })},
		{"lines-short-sets", lineAttack("tcp", func(rnd *rand.Rand) string { return fmt.Sprintf("%x:%x|s", rnd.IntN(1e8), rnd.IntN(1e6)) })},
		{"lines-wide-timers", lineAttack("tcp", func(rnd *rand.Rand) string {
			return fmt.Sprintf("t%d:%d|ms|@0.001", rnd.IntN(1e6), uint64(1)<<rnd.IntN(40))
		})},
		{"datagrams", lineAttack("udp", func(rnd *rand.Rand) string { return fmt.Sprintf("%x:1|c", rnd.IntN(1e8)) })},
		{"requests", requestAttack("GET", func(rnd *rand.Rand) string {
			return "/stats?format=json&filter=" + url.QueryEscape(fmt.Sprintf("(a{90}|%d)", rnd.IntN(1e9))+strings.Repeat("[a-z]", 150))
		})},
		{"mutations", requestAttack("POST", func(rnd *rand.Rand) string {
			return "/runtime_modify?" + fmt.Sprintf("ttl=10s&k%d=%s", rnd.IntN(1e6), long(rnd, 4000))
		})},
		{"headers", holdAttack("GET /stats HTTP/1.1\r\nhost: localhost\r\n" + headers + "\r\n")},
		{"half-bodies", holdAttack("POST /runtime_modify HTTP/1.1\r\nhost: localhost\r\ncontent-length: 65000\r\n\r\n" + strings.Repeat("x", 64_000))},
		{"streams", holdAttack("GET /stats/stream?filter=" + strings.Repeat("x*", 400) + " HTTP/1.1\r\nhost: localhost\r\n\r\n")},
	}
}

// TestAttack runs the worst inputs of each kind at full speed for ATTACKTIME, a
// minute by default. Resident memory stays below its bound, a steady counter is exact,
// /ready answers, and memory returns afterwards.
func TestAttack(t *testing.T) {
	length := time.Minute
	if s := os.Getenv("ATTACKTIME"); s != "" {
		var err error
		if length, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range attacks() {
		t.Run(tt.name, func(t *testing.T) {
			d := daemon.Start(t, daemon.Config{YAML: attackConfig})
			before := allocated(t, d)
			stop := watch(t, d)
			ctx, cancel := context.WithTimeout(t.Context(), length)
			defer cancel()
			sent := startSenders(t, tt.name, d.Admin, d.Address("tcp"), d.Address("udp"))
			steady, err := net.Dial("tcp", d.Address("tcp"))
			if err != nil {
				t.Fatal(err)
			}
			defer steady.Close()
			survivors, peak := 0, int64(0)
			for ctx.Err() == nil {
				if _, err := io.WriteString(steady, "survivor.total:1|c\n"); err != nil {
					t.Fatal(err)
				}
				if survivors++; survivors%20 == 0 {
					peak = max(peak, d.Resident())
				}
				time.Sleep(5 * time.Millisecond)
			}
			bytes := sent()
			answers := stop()
			d.Until("the steady counter is exact", func() bool { // it expires later
				_, body, _ := read(d, "/stats?filter="+url.QueryEscape("^survivor.total$"))
				return body == fmt.Sprintf("survivor.total: %d\n", survivors)
			})
			used := processorTime(t, d)
			if peak > attackMost {
				t.Errorf("%d MiB are resident, at most %d are allowed", peak>>20, attackMost>>20)
			}
			after := int64(0)
			for end := time.Now().Add(5 * time.Minute); ; time.Sleep(time.Second) {
				if after = allocated(t, d); after <= before*12/10+4<<20 {
					break
				} else if time.Now().After(end) {
					t.Errorf("%d MiB are allocated at the end, %d at the start", after>>20, before>>20)
					break
				}
			}
			t.Logf("%s: %d MiB sent, %.1f ns of processor time per byte; at most %d MiB resident, %d allowed; %d increments exact; /ready: %s; allocated %.1f MiB afterwards, %.1f before",
				tt.name, bytes>>20, float64(used)/float64(max(bytes, 1)), peak>>20, attackMost>>20, survivors, spread(answers), float64(after)/(1<<20), float64(before)/(1<<20))
			if tt.lines() {
				t.Logf("%s: /ready of a server that reads and forgets: %s", tt.name, spread(beside(t, tt.name, min(length, time.Minute))))
			}
		})
	}
}

// allocated returns the bytes in use after a collection.
func allocated(t *testing.T, d *daemon.Daemon) int64 {
	t.Helper()
	if status, _, err := read(d, "/debug/pprof/heap?gc"); status != 200 || err != nil {
		t.Fatalf("/debug/pprof/heap: status %d, %v", status, err)
	}
	var m struct {
		Allocated int64 `json:"allocated,string"`
	}
	_, body, err := read(d, "/memory")
	if err == nil {
		err = json.Unmarshal([]byte(body), &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m.Allocated
}
