//go:build pictures

package browser

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

// TestPictures saves pictures of all pages in the directory PICTURES. See `make
// pictures`.
func TestPictures(t *testing.T) {
	dir := os.Getenv("PICTURES")
	if dir == "" {
		t.Fatal("PICTURES does not name a directory")
	}
	d := daemon.Start(t, daemon.Config{YAML: pictured(t)})
	feed(t, d)
	d.Wait("ejected hosts", func(s daemon.Stats) bool { return s.Number("cluster.checkout.membership_healthy") == 6 })
	d.Post("/runtime_modify?feature.new_router=25")
	d.Post("/logging?upstream=debug")
	d.Wait("a summary", func(s daemon.Stats) bool { return s.Number("jobs.mailer.sent") >= 4 })
	for name, path := range map[string]string{"home": "/", "overview": "/ui/", "stats": "/ui/stats?filter=shop|mailer", "stat": "/ui/stat?name=shop.page.view.site.de", "explorer": "/ui/explorer?view=map",
		"histograms": "/ui/histograms?name=shop.search.latency", "clusters": "/ui/clusters", "hosts": "/ui/clusters?cluster=checkout", "listeners": "/ui/listeners", "ingest": "/ui/ingest?line=shop.page.view:abc|c",
		"runtime": "/ui/runtime?key=feature.new_router", "logging": "/ui/logging", "config": "/ui/config?resource=static_clusters&name=checkout", "certs": "/ui/certs", "circuits": "/ui/circuits", "audit": "/ui/audit", "server": "/ui/server"} {
		p := open(t)
		for _, width := range []int64{1280, 768, 390} {
			for _, scheme := range []string{"light", "dark"} {
				p.size(width, scheme)
				p.ready(base(d) + path)
				if path == "/ui/" || strings.HasPrefix(path, "/ui/stats") {
					p.until("document.querySelector('polyline')?.points.length > 3")
				}
				raw, err := chromedp.Run(p, chromedp.FullScreenshot(100))
				p.must("screenshot", err)
				file := filepath.Join(dir, fmt.Sprintf("ui-%s-%d-%s.png", name, width, scheme))
				if err := os.WriteFile(file, small(t, raw), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// pictured returns a configuration with clusters of hosts that this test serves, some
// of which fail their health checks.
func pictured(t *testing.T) string {
	chain, key := certificate(t, []string{"edge.example.net", "www.example.net"})
	const files = "/run/edge" // which is in the pictures
	if err := os.MkdirAll(files, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(files) })
	for name, content := range map[string]string{"edge.pem": chain, "edge.key": key} {
		if err := os.WriteFile(filepath.Join(files, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var clusters strings.Builder
	for _, c := range []struct {
		name           string
		good, bad, deg int
	}{{"checkout", 6, 2, 0}, {"payments", 4, 0, 1}, {"auth", 4, 0, 0}, {"catalog", 12, 0, 0}, {"media-cdn", 30, 1, 0}, {"search", 9, 0, 0}, {"sessions", 0, 0, 0}} {
		var hosts []string
		for i := range c.good + c.bad + c.deg {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				switch {
				case i < c.bad:
					w.WriteHeader(503)
				case i < c.bad+c.deg:
					w.Header().Set("x-proxy-degraded", "true")
				}
			}))
			t.Cleanup(s.Close)
			_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.URL, "http://"))
			hosts = append(hosts, "{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: "+port+"}}}}")
		}
		fmt.Fprintf(&clusters, `  - name: %[1]s
    connect_timeout: 1s
    type: STATIC
    health_checks: [{timeout: 2s, interval: 2s, no_traffic_interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: {path: /}}]
    load_assignment: {cluster_name: %[1]s, endpoints: [{locality: {region: eu, zone: eu-1a}, lb_endpoints: [%[2]s]}]}
`, c.name, strings.Join(hosts, ", "))
	}
	return `
node: {id: edge-eu1-07, cluster: edge-eu1}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}, profile_path: $DIR/profile}
stats_flush_interval: 1s
stats_sinks:
- name: proxy.stat_sinks.hystrix
  typed_config: {"@type": type.googleapis.com/envoy.config.metrics.v3.HystrixSink, num_buckets: 5}
layered_runtime:
  layers:
  - name: base
    static_layer: {upstream: {healthy_panic_threshold: 50}, feature: {new_router: 10, api_token: hunter2}}
  - name: admin
    admin_layer: {}
static_resources:
  clusters:
` + clusters.String() + `
statsd:
  listeners:
  - {name: udp, address: "udp://127.0.0.1:0"}
  - {name: tcp, address: "tcp://127.0.0.1:0"}
  - {name: tls, address: "tcp://127.0.0.1:0", tls: {certificate_chain: ` + files + `/edge.pem, private_key: ` + files + `/edge.key}}
`
}

// feed sends StatsD lines until the test ends.
func feed(t *testing.T, d *daemon.Daemon) {
	c, err := net.Dial("tcp", d.Address("tcp"))
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	ticker := time.NewTicker(100 * time.Millisecond)
	stop, done := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(stop); <-done; ticker.Stop(); c.Close() })
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			var b bytes.Buffer
			for range 30 + random.IntN(20) {
				fmt.Fprintf(&b, "shop.page.view:1|c|#site:%s\n", []string{"de", "fr", "at"}[random.IntN(3)])
				fmt.Fprintf(&b, "shop.checkout.latency:%.1f|ms\n", 30*math.Exp(random.NormFloat64()*.5))
				latency := 9 * math.Exp(random.NormFloat64()*.4)
				if random.IntN(10) == 0 {
					latency = 250 * math.Exp(random.NormFloat64()*.3)
				}
				fmt.Fprintf(&b, "shop.search.latency:%.1f|ms\n", latency)
			}
			fmt.Fprintf(&b, "shop.checkout.queue_depth:%d|g\nshop.users:%d|s\n", 30+random.IntN(20), random.IntN(500))
			if i%10 == 0 {
				b.WriteString("jobs.mailer.sent:1|c\n")
			}
			if i%25 == 0 {
				b.WriteString("shop.page.view:abc|c\nbroken line\n")
			}
			if _, err := c.Write(b.Bytes()); err != nil {
				return
			}
			select {
			case <-ticker.C:
			case <-stop:
				return
			}
		}
	}()
}

// apart is the square of the distance of two colors.
func apart(a, b color.RGBA) int {
	r, g, blue := int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B)
	return r*r + g*g + blue*blue
}

// small encodes a picture with a palette of its most frequent colors and of rare colors
// far from these, which keeps it a third of the size.
func small(t *testing.T, raw []byte) []byte {
	t.Helper()
	in, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(in.At(x, y)).(color.RGBA) }
	bounds := in.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[at(x, y)]++
		}
	}
	list := make([]color.RGBA, 0, len(counts))
	for c := range counts {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b color.RGBA) int { return counts[b] - counts[a] })
	palette := color.Palette{}
	for _, c := range list[:min(128, len(list))] {
		palette = append(palette, c)
	}
	far := map[color.RGBA]int{} // how far the rest is from the palette
	for _, c := range list[len(palette):] {
		far[c] = apart(c, palette[palette.Index(c)].(color.RGBA))
	}
	for range min(128, len(far)) {
		var next color.RGBA
		for c, d := range far {
			if d > far[next] {
				next = c
			}
		}
		palette = append(palette, next)
		for c, d := range far {
			far[c] = min(d, apart(c, next))
		}
	}
	index := map[color.RGBA]uint8{}
	for c := range counts {
		index[c] = uint8(palette.Index(c))
	}
	out := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			out.SetColorIndex(x, y, index[at(x, y)])
		}
	}
	var b bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&b, out); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
