package scrape

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

// send sends lines over TCP and returns once they have been applied.
func send(t *testing.T, d *daemon.Daemon, lines ...string) {
	t.Helper()
	before := d.Stats().Number("ingest.lines.listener.tcp")
	c, err := net.Dial("tcp", d.Address("tcp"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprint(c, strings.Join(lines, "\n"), "\n"); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	d.Wait("the lines", func(s daemon.Stats) bool {
		return s.Number("ingest.lines.listener.tcp") == before+float64(len(lines))
	})
}

// populate sends stats of all kinds, some with names and tags that need escaping, and
// waits until the histograms show.
func populate(t *testing.T, d *daemon.Daemon) {
	t.Helper()
	var lines []string
	for i := range 100 {
		lines = append(lines,
			fmt.Sprintf("shop.orders:1|c|#host:h%d", i%2),
			fmt.Sprintf("shop.latency:%d|ms", i+1),
			fmt.Sprintf("shop.sampled:%d|h|@0.1", i+1))
	}
	lines = append(lines,
		"shop.depth:-2.5|g", "shop.level:70|g|#floor:1,room:a\\b\"c", "shop.users:u1|s", "shop.users:u2|s",
		"9lives.rate-of%things:3|c", "a-b:1|c", "a.b:2|c", "both:1|c", "both:2|g", "ünï.cödé:1|c|#schlüssel:wert",
		"reserved:1|ms|#le:5,quantile:x,__name__:y", "bare:1|c|#tagged", "total_total:1|c", "shop.bucket:1|c", "shop_count:1|h",
	)
	send(t, d, lines...)
	d.Metrics("shop_latency_count{} 100")
}
