package sinks

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
	"github.com/statsd-admin/statsd-admin/e2e/need"
)

// carbon is the cache of Graphite. It is on a loopback address of its own, since it
// cannot choose its ports.
type carbon struct {
	t            *testing.T
	dir, address string
	cmd          *exec.Cmd
	ended        chan struct{}
}

func newCarbon(t *testing.T) *carbon {
	t.Helper()
	need.Program(t, "carbon-cache")
	need.Program(t, "whisper-fetch")
	c := &carbon{t: t, dir: t.TempDir()}
	host := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
	c.address = host + ":2003"
	for name, text := range map[string]string{
		"carbon.conf": fmt.Sprintf(`[cache]
STORAGE_DIR = %[1]s
LOCAL_DATA_DIR = %[1]s/whisper
CONF_DIR = %[1]s
LOG_DIR = %[1]s
PID_DIR = %[1]s
USER =
MAX_UPDATES_PER_SECOND = inf
MAX_CREATES_PER_MINUTE = inf
LINE_RECEIVER_INTERFACE = %[2]s
PICKLE_RECEIVER_INTERFACE = %[2]s
CACHE_QUERY_INTERFACE = %[2]s
LINE_RECEIVER_PORT = 2003
PICKLE_RECEIVER_PORT = 2004
CACHE_QUERY_PORT = 7002
ENABLE_TAGS = False
CARBON_METRIC_INTERVAL = 0
`, c.dir, host),
		"storage-schemas.conf":     "[all]\npattern = .*\nretentions = 1s:1h\n",
		"storage-aggregation.conf": "[all]\npattern = .*\nxFilesFactor = 0\naggregationMethod = sum\n",
	} {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(c.stop)
	return c
}

func (c *carbon) start() {
	c.t.Helper()
	var log strings.Builder
	c.cmd = exec.Command("carbon-cache", "--config="+c.dir+"/carbon.conf", "--nodaemon", "start")
	c.cmd.Stdout, c.cmd.Stderr = &log, &log
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.ended = make(chan struct{})
	go func() { _ = c.cmd.Wait(); close(c.ended) }()
	daemon.Until(c.t, "carbon to listen", func() bool {
		select {
		case <-c.ended:
			c.t.Fatalf("carbon-cache ends:\n%s", log.String())
		default:
		}
		conn, err := net.Dial("tcp", c.address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

// stop ends carbon, which writes its cache.
func (c *carbon) stop() {
	if c.cmd != nil {
		_ = c.cmd.Process.Signal(syscall.SIGTERM)
		<-c.ended
		c.cmd = nil
	}
}

// points returns the values that are stored for a path.
func (c *carbon) points(path string) (all []float64) {
	c.t.Helper()
	file := filepath.Join(c.dir, "whisper", strings.ReplaceAll(path, ".", "/")+".wsp")
	if _, err := os.Stat(file); err != nil {
		return nil
	}
	out, err := exec.Command("whisper-fetch", "--json", "--from=0", file).Output()
	if err != nil {
		c.t.Fatalf("whisper-fetch: %v\n%s", err, out)
	}
	var got struct{ Values []*float64 }
	if err := json.Unmarshal(out, &got); err != nil {
		c.t.Fatalf("%v in %s", err, out)
	}
	for _, v := range got.Values {
		if v != nil {
			all = append(all, *v)
		}
	}
	return all
}

// TestCarbonStoresEveryIncrement sends counters, a gauge and a timer to carbon, which is
// down for a while, and compares the stored points with the sent values. The
// last flush is soon after the one before.
func TestCarbonStoresEveryIncrement(t *testing.T) {
	c := newCarbon(t)
	c.start()
	d := daemon.Start(t, daemon.Config{YAML: fmt.Sprintf(`
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
stats_flush_interval: 1s
statsd: {listeners: [{name: in, address: "tcp://127.0.0.1:0"}]}
sinks:
- {name: carbon, prefix: edge, filters: {include: [{prefix: shop.}]}, graphite: {address: "%s", layout: modern}}
`, c.address)})
	in, err := net.Dial("tcp", d.Address("in"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	sent := 0
	send := func(n int) {
		t.Helper()
		for range n {
			sent++
			if _, err := fmt.Fprintf(in, "shop.orders:3|c\nshop.rt:%d|ms\nshop.carts:%d|g\n", sent, sent); err != nil {
				t.Fatal(err)
			}
		}
	}
	flushes := func(n float64) {
		t.Helper()
		before := d.Stats().Number("sink.flushes.sink.carbon")
		d.Wait("flushes", func(s daemon.Stats) bool { return s.Number("sink.flushes.sink.carbon") >= before+n })
	}
	// stored waits until carbon has stored all that was sent: orders, times, their sum, the
	// longest, and carts.
	stored := func() {
		t.Helper()
		all := func(path string, join func(sum, x float64) float64) (sum float64) {
			for _, x := range c.points("edge.stats." + path) {
				sum = join(sum, x)
			}
			return sum
		}
		add, last := func(sum, x float64) float64 { return sum + x }, func(_, x float64) float64 { return x }
		var got []float64
		want := []float64{float64(3 * sent), float64(sent), float64(sent * (sent + 1) / 2), float64(sent), float64(sent)}
		defer func() {
			if !slices.Equal(got, want) {
				t.Logf("carbon has %v, want %v", got, want)
			}
		}()
		daemon.Until(t, "the numbers in carbon", func() bool { // a point can be a second ahead
			got = []float64{all("counters.shop.orders.count", add), all("timers.shop.rt.count", add), all("timers.shop.rt.sum", add),
				all("timers.shop.rt.upper", func(a, b float64) float64 { return max(a, b) }), all("gauges.shop.carts", last)}
			return slices.Equal(got, want)
		})
	}
	for range 3 {
		send(10)
		flushes(1)
	}
	stored()
	c.stop()
	for range 3 {
		send(10)
		flushes(1)
	}
	d.Wait("a failed attempt", func(s daemon.Stats) bool { return s.Number("sink.send_errors.sink.carbon") > 0 })
	c.start()
	d.Wait("an empty queue", func(s daemon.Stats) bool { return s.Number("sink.queue_bytes.sink.carbon") == 0 })
	send(10)
	flushes(1)
	send(10)
	d.Wait("all lines", func(s daemon.Stats) bool { return s.Number("ingest.lines.listener.in") == float64(3*sent) })
	lost := d.Stats().Sum("sink.ambiguous_packets") + d.Stats().Sum("sink.lost")
	d.Signal(syscall.SIGTERM)
	if status := d.Exit(); status != 0 || lost != 0 {
		t.Fatalf("status %d, %v packets lost", status, lost)
	}
	stored()
}

// renderScript answers queries as Graphite's web server does, from the files of carbon. Its
// arguments are a directory for its state, that of the files, and the targets. It prints the
// sum of the points of each.
const renderScript = `
import json, os, sys, warnings
warnings.simplefilter("ignore")
state, files, targets = sys.argv[1], sys.argv[2], sys.argv[3:]
with open(os.path.join(state, "render_settings.py"), "w") as f:
    f.write(f"""
from graphite.settings import *
SECRET_KEY = "test"
WHISPER_DIR, STANDARD_DIRS = {files!r}, [{files!r}]
STORAGE_DIR = LOG_DIR = {state!r}
INDEX_FILE = STORAGE_DIR + "/index"
CARBONLINK_HOSTS, ALLOWED_HOSTS, TAGDB, USE_WORKER_POOL = [], ["*"], None, False
DATABASES = {{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": STORAGE_DIR + "/db"}}}}
""")
sys.path.insert(0, state)
os.environ["DJANGO_SETTINGS_MODULE"] = "render_settings"
import django
django.setup()
from django.core.management import call_command
from django.test import Client
call_command("migrate", run_syncdb=True, verbosity=0)
for t in targets:
    r = Client().get("/render", {"target": t, "format": "json", "from": "-50min", "maxDataPoints": "100000"})
    assert r.status_code == 200, r.content
    print(sum(v for x in json.loads(r.content) for v, _ in x["datapoints"] if v is not None))
`

// TestGraphiteQuery sends counters and timers and asks Graphite for the numbers.
func TestGraphiteQuery(t *testing.T) {
	need.Program(t, "graphite-manage")
	c := newCarbon(t)
	c.start()
	d := daemon.Start(t, daemon.Config{YAML: fmt.Sprintf(`
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
stats_flush_interval: 1s
statsd: {listeners: [{name: in, address: "tcp://127.0.0.1:0"}]}
sinks:
- {name: carbon, filters: {include: [{prefix: shop.}]}, graphite: {address: "%s", layout: modern}}
`, c.address)})
	in, err := net.Dial("tcp", d.Address("in"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	const lines = 300
	for i := range lines {
		if _, err := fmt.Fprintf(in, "shop.orders.%d:3|c\nshop.rt:%d|ms\n", i%3, i+1); err != nil {
			t.Fatal(err)
		}
		if i%100 == 99 {
			want := float64(2 * (i + 1))
			d.Wait("all lines", func(s daemon.Stats) bool { return s.Number("ingest.lines.listener.in") == want })
			before := d.Stats().Number("sink.flushes.sink.carbon")
			d.Wait("a flush", func(s daemon.Stats) bool { return s.Number("sink.flushes.sink.carbon") > before })
		}
	}
	d.Signal(syscall.SIGTERM)
	if status := d.Exit(); status != 0 {
		t.Fatal("status", status)
	}
	daemon.Until(t, "the last point in carbon", func() bool {
		sum := 0.0
		for _, x := range c.points("stats.timers.shop.rt.count") {
			sum += x
		}
		return sum == lines
	})
	c.stop() // writes what it still holds
	script := filepath.Join(t.TempDir(), "render.py")
	if err := os.WriteFile(script, []byte(renderScript), 0o600); err != nil {
		t.Fatal(err)
	}
	var errs strings.Builder
	cmd := exec.Command("/usr/bin/python3", script, t.TempDir(), filepath.Join(c.dir, "whisper"),
		"stats.counters.shop.orders.1.count", "sumSeries(stats.counters.shop.orders.*.count)", `summarize(stats.timers.shop.rt.sum,"1h","sum")`)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	if want := "300.0\n900.0\n45150.0\n"; string(out) != want {
		t.Errorf("Graphite answers %q, want %q", out, want)
	}
}
