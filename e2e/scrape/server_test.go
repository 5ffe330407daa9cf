package scrape

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
	"github.com/statsd-admin/statsd-admin/e2e/need"
)

const prometheusConfig = `
global: {scrape_interval: 200ms, scrape_timeout: 200ms}
scrape_configs:
- job_name: daemon
  metrics_path: /stats/metrics
  static_configs: [{targets: ["%s"]}]
`

// prometheus is a Prometheus server that scrapes a daemon.
type prometheus struct {
	t   *testing.T
	url string
}

func startPrometheus(t *testing.T, target string) *prometheus {
	t.Helper()
	program := need.Program(t, "prometheus")
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, fmt.Appendf(nil, prometheusConfig, target), 0o600); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.Command(program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--log.level=warn")
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("prometheus said:\n%s", &log)
		}
	})
	return &prometheus{t, "http://" + address}
}

// query returns the only value of an instant query, and whether there is one.
func (p *prometheus) query(promQL string) (float64, bool) {
	p.t.Helper()
	resp, err := http.Get(p.url + "/api/v1/query?query=" + url.QueryEscape(promQL))
	if err != nil {
		return 0, false // not up yet
	}
	defer resp.Body.Close()
	var answer struct {
		Error string
		Data  struct{ Result []struct{ Value [2]any } }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return 0, false
	}
	if answer.Error != "" {
		p.t.Fatalf("%s: %s", promQL, answer.Error)
	}
	if len(answer.Data.Result) != 1 {
		return 0, false
	}
	v, err := strconv.ParseFloat(answer.Data.Result[0].Value[1].(string), 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return v, true
}

// expect waits until a query has a value.
func (p *prometheus) expect(promQL string, ok func(float64) bool) {
	p.t.Helper()
	last := "nothing"
	for end := time.Now().Add(daemon.Patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		v, found := p.query(promQL)
		if found && ok(v) {
			return
		}
		if found {
			last = strconv.FormatFloat(v, 'g', -1, 64)
		}
	}
	p.t.Errorf("%s: %s", promQL, last)
}

func is(want float64) func(float64) bool { return func(v float64) bool { return v == want } }

func within(low, high float64) func(float64) bool {
	return func(v float64) bool { return low <= v && v <= high }
}

// TestPrometheusServer lets a Prometheus server scrape the daemon and queries it for
// known values.
func TestPrometheusServer(t *testing.T) {
	need.Program(t, "prometheus")
	d := daemon.Start(t, daemon.Config{})
	populate(t, d)
	p := startPrometheus(t, d.Admin)
	p.expect(`up{job="daemon"}`, is(1))
	p.expect(`sum({__name__=~"shop_orders(_total)?"})`, is(100))
	send(t, d, "shop.orders:17|c|#host:h1", "shop.level:12|g|#floor:1,room:a\\b\"c")
	p.expect(`{__name__=~"shop_orders(_total)?", host="h1"}`, is(67))
	p.expect(`max_over_time({__name__=~"shop_orders(_total)?", host="h1"}[5m]) - min_over_time({__name__=~"shop_orders(_total)?", host="h1"}[5m])`, is(17))
	p.expect(`increase({__name__=~"shop_orders(_total)?", host="h1"}[5m])`, within(17, 40)) // it extrapolates
	p.expect(`shop_level{floor="1"}`, is(12))
	p.expect(`shop_level{room="a\\b\"c"}`, is(12))
	p.expect(`shop_depth`, is(-2.5))
	p.expect(`shop_latency_count`, is(100))
	p.expect(`shop_latency_sum`, is(5050))
	p.expect(`shop_latency_bucket{le="50"}`, is(50))
	p.expect(`shop_latency_bucket{le="+Inf"}`, is(100))
	p.expect(`histogram_quantile(0.5, shop_latency_bucket)`, within(25, 50.001))
	p.expect(`histogram_quantile(0.95, shop_latency_bucket)`, within(50, 100))
	p.expect(`shop_sampled_count`, is(1000))
	p.expect(`max_over_time(up{job="daemon"}[5m]) == min_over_time(up{job="daemon"}[5m])`, is(1))
	p.expect(`scrape_samples_scraped{job="daemon"} == scrape_samples_post_metric_relabeling{job="daemon"}`, within(100, 1e6))
}
