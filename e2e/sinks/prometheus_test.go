package sinks

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

// exposed returns the counters, gauges and histograms that a daemon exposes in a
// format.
func exposed(t *testing.T, d *daemon.Daemon, accept string) map[string]point {
	t.Helper()
	req, err := http.NewRequest("GET", "http://"+d.Admin+"/stats/metrics?filter=^shop", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	p, err := textparse.New(body, resp.Header.Get("Content-Type"), nil, textparse.ParserOptions{})
	if err != nil {
		t.Fatal(err)
	}
	result := map[string]point{}
	var family string
	var typ model.MetricType
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return result
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, body)
		}
		switch entry {
		case textparse.EntryType:
			name, t := p.Type()
			family, typ = string(name), t
		case textparse.EntrySeries:
			var ls labels.Labels
			p.Labels(&ls)
			_, _, v := p.Series()
			if typ != model.MetricTypeHistogram {
				result[ls.String()] = point{value: v}
				continue
			}
			id := labels.NewBuilder(ls).Set("__name__", family).Labels().String()
			h := result[id]
			switch ls.Get("__name__") {
			case family + "_count":
				h.count = v
			case family + "_sum":
				h.sum = v
			default:
				continue
			}
			result[id] = h
		}
	}
}

// formats are the expositions with the names that a receiver stores.
var formats = map[string]string{"remote_write": "text/plain", "otlp": "text/plain; version=1.0.0; escaping=allow-utf-8"}

// traffic returns random lines for series of all kinds; each has a label of its own.
func traffic(r *rand.Rand) (lines []string) {
	for range 200 {
		i := r.IntN(60)
		tag := fmt.Sprintf("|#s:%d,zone:z%d", i, i%3)
		switch i % 4 {
		case 0, 1:
			lines = append(lines, fmt.Sprintf("shop.c%d:%d|c%s", i%5, r.IntN(1000), tag))
		case 2:
			lines = append(lines, fmt.Sprintf("shop.g%d:%d|g%s", i%5, r.IntN(1000), tag))
		default:
			lines = append(lines, fmt.Sprintf("shop.h%d:%g|ms%s", i%5, math.Trunc(math.Exp(r.Float64()*12)), tag))
		}
	}
	return lines
}

// TestPrometheusModule sends totals to Prometheus' receivers for remote write 2.0 and
// OTLP through all faults. Afterwards every series is what the daemon exposes, counts
// from a 0 at its start, never went back, and ends with the daemon.
func TestPrometheusModule(t *testing.T) {
	paths := map[string]string{"remote_write": "/api/v1/write", "otlp": "/api/v1/otlp/v1/metrics"}
	receivers, gates := map[string]*engine{}, map[string]*gate{}
	var settings []any
	for _, kind := range []string{"remote_write", "otlp"} {
		receivers[kind], gates[kind] = newEngine(t), open(t, paths[kind])
		gates[kind].to(t, receivers[kind].url)
		settings = append(settings, gates[kind].url)
	}
	d := start(t, "0s", fmt.Sprintf(`
- tags: {instance: edge, job: statsd}
  filters: {include: [{prefix: shop}]}
  remote_write: {url: "%s", refresh: 1s, timeout: 1s, batch_samples: 7}
- filters: {include: [{prefix: shop}]}
  otlp: {url: "%s", refresh: 1s, timeout: 1s, batch_points: 7, resource: {service.name: statsd, service.instance.id: edge}}
`, settings...))
	r := rand.New(rand.NewPCG(1, 2))
	send(t, d, traffic(r)...)
	for _, f := range faults {
		failed := map[string]int64{}
		for kind, g := range gates {
			failed[kind] = g.failed.Load()
			g.fault.Store(f)
		}
		send(t, d, traffic(r)...)
		for kind, g := range gates {
			d.Until(f.name, func() bool { return g.failed.Load() > failed[kind] })
			g.to(t, receivers[kind].url)
		}
	}
	send(t, d, traffic(r)...)
	for kind, e := range receivers {
		var want map[string]point
		differ := ""
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("%s: %s", kind, differ)
			}
		})
		d.Until(kind+" to be complete", func() bool {
			want = exposed(t, d, formats[kind])
			differ = difference(e.query(`{__name__=~"shop.*"}`), want)
			return differ == ""
		})
		if len(want) < 50 {
			t.Errorf("%s: %d series", kind, len(want))
		}
		grown := e.query(`max_over_time({__name__=~"shop.c.*"}[1h]) - min_over_time({__name__=~"shop.c.*"}[1h])`)
		resets := e.query(`resets({__name__=~"shop.(c|h).*"}[1h])`)
		for series, p := range want {
			if !strings.Contains(series, `"shop_c`) && !strings.Contains(series, `"shop.c`) {
				continue
			}
			_, ls, _ := strings.Cut(series, ", ")
			if g := grown["{"+ls]; g != p {
				t.Errorf("%s: %s grew by %v, want %v", kind, series, g, p)
			}
		}
		for series, p := range resets {
			if p.value != 0 {
				t.Errorf("%s: %s was reset %v times", kind, series, p.value)
			}
		}
	}
	d.Signal(syscall.SIGTERM)
	if status := d.Exit(); status != 0 {
		t.Errorf("status %d", status)
	}
	for kind, e := range receivers {
		if left := e.query(`{__name__=~"shop.*"}`); len(left) != 0 {
			t.Errorf("%s: %d series have not ended", kind, len(left))
		}
	}
}

// merged are the bins of histograms of several daemons: their upper ends and counts.
type merged struct {
	count uint64
	bins  map[float64]uint64
}

func (m *merged) add(t *testing.T, d *daemon.Daemon) {
	t.Helper()
	var answer struct {
		Count uint64       `json:"count"`
		Bins  [][3]float64 `json:"bins"`
	}
	if err := json.Unmarshal([]byte(d.Get("/stats/histogram?name=shop.rt&bins")), &answer); err != nil {
		t.Fatal(err)
	}
	m.count += answer.Count
	for _, b := range answer.Bins {
		m.bins[b[0]+b[1]] += uint64(b[2])
	}
}

func (m *merged) quantile(q float64) float64 {
	var ends []float64
	for end := range m.bins {
		ends = append(ends, end)
	}
	slices.Sort(ends)
	rank, n := uint64(math.Round(q*float64(m.count))), uint64(0)
	for _, end := range ends {
		if n += m.bins[end]; n >= rank {
			return end
		}
	}
	return math.NaN()
}

// TestQuantilesOfAFleet: a quantile that Prometheus computes from native histograms of
// three daemons equals the quantile of their merged bins, up to the bound in
// docs/sinks.md.
func TestQuantilesOfAFleet(t *testing.T) {
	const values, bound = 2000, 0.016
	byWrite, byOTLP := newEngine(t), newEngine(t)
	bins := merged{bins: map[float64]uint64{}}
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 3 {
		d := start(t, "0s", fmt.Sprintf(`
- tags: {instance: edge-%[3]d}
  filters: {include: [{prefix: shop}]}
  remote_write: {url: "%[1]s/api/v1/write"}
- filters: {include: [{prefix: shop}]}
  otlp: {url: "%[2]s/api/v1/otlp/v1/metrics", resource: {service.name: statsd, service.instance.id: edge-%[3]d}}
`, byWrite.url, byOTLP.url, i))
		var lines []string
		for range values {
			lines = append(lines, fmt.Sprintf("shop.rt:%.3f|ms", math.Exp(r.NormFloat64()*float64(i+1)/2+float64(i+3))))
		}
		send(t, d, lines...)
		d.Metrics(fmt.Sprintf("shop_rt_count{} %d", values))
		bins.add(t, d)
	}
	for name, e := range map[string]*engine{"shop_rt": byWrite, "shop.rt": byOTLP} {
		series := fmt.Sprintf(`{__name__="%s"}`, name)
		daemon.Until(t, "all values", func() bool { return e.query("sum(" + series + ")")["{}"].count == 3*values })
		for _, q := range []float64{0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995} {
			got, want := e.query(fmt.Sprintf("histogram_quantile(%g, sum(%s))", q, series))["{}"].value, bins.quantile(q)
			if !near(got, want, bound) {
				t.Errorf("%s: quantile %g is %g, want %g", name, q, got, want)
			}
		}
	}
}
