package mapping

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/statsd_exporter/pkg/event"
	"github.com/prometheus/statsd_exporter/pkg/exporter"
	"github.com/prometheus/statsd_exporter/pkg/line"
	"github.com/prometheus/statsd_exporter/pkg/listener"
	"github.com/prometheus/statsd_exporter/pkg/mapper"
	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

// lastLine is behind the lines of a test, twice: a daemon that shows the first one
// has applied all lines before it, and when it shows the second one, which comes
// after that, the flush that made them visible has ended.
const lastLine = "the.last:1|ms\n"

// TestSamePage sends random lines to statsd_exporter and to the daemon with its
// flags, with the same random rules, and compares all series of the pages.
func TestSamePage(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(3, seed))
			rules := ""
			if seed > 0 {
				rules = randomRules(r)
			}
			var lines strings.Builder
			scale := math.Pow(10, float64(seed))
			for range 2500 {
				lines.WriteString(randomLine(r, scale) + "\n")
			}
			want := theirPage(t, rules, lines.String())
			got := ourPage(t, rules, lines.String())
			all := maps.Clone(want)
			maps.Copy(all, got)
			for _, name := range slices.Sorted(maps.Keys(all)) {
				compareFamily(t, name, got[name], want[name])
			}
			if len(want) < 20 {
				t.Errorf("only %d families were compared", len(want))
			}
			if t.Failed() {
				t.Log(rules)
			}
		})
	}
}

// page holds the series of a page by family and labels.
type page map[string]*family

type family struct {
	typ, help string
	series    map[string]map[string]float64 // samples, by labels and by part: value, sum, count, le, quantile
}

// own matches what the programs say about themselves.
var own = regexp.MustCompile("^(proxy|go|process|statsd_exporter|statsd_metric_mapper)_")

func pageOf(families []*dto.MetricFamily) page {
	p := make(page)
	for _, mf := range families {
		if own.MatchString(mf.GetName()) {
			continue
		}
		f := &family{typ: mf.GetType().String(), help: mf.GetHelp(), series: make(map[string]map[string]float64)}
		p[mf.GetName()] = f
		for _, m := range mf.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				if l.GetValue() != "" { // Prometheus knows no difference
					labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
				}
			}
			slices.Sort(labels)
			parts := make(map[string]float64)
			f.series[strings.Join(labels, ",")] = parts
			switch {
			case m.Counter != nil:
				parts["value"] = m.Counter.GetValue()
			case m.Gauge != nil:
				parts["value"] = m.Gauge.GetValue()
			case m.Summary != nil:
				parts["sum"], parts["count"] = m.Summary.GetSampleSum(), float64(m.Summary.GetSampleCount())
				for _, q := range m.Summary.GetQuantile() {
					parts[fmt.Sprint("quantile ", q.GetQuantile())] = q.GetValue()
				}
			case m.Histogram != nil:
				parts["sum"], parts["count"] = m.Histogram.GetSampleSum(), float64(m.Histogram.GetSampleCount())
				for _, b := range m.Histogram.GetBucket() {
					parts[fmt.Sprint("le ", b.GetUpperBound())] = float64(b.GetCumulativeCount())
				}
				parts["le +Inf"] = parts["count"]
			}
		}
	}
	return p
}

func compareFamily(t *testing.T, name string, got, want *family) {
	t.Helper()
	if got == nil || want == nil {
		t.Errorf("family %s: there %v, here %v", name, want, got)
		return
	}
	if got.typ != want.typ || got.help != want.help {
		t.Errorf("family %s: there %s %q, here %s %q", name, want.typ, want.help, got.typ, got.help)
	}
	for labels, samples := range want.series {
		ours, ok := got.series[labels]
		if !ok {
			t.Errorf("%s{%s}: only there", name, labels)
			continue
		}
		if len(ours) != len(samples) {
			t.Errorf("%s{%s}: there %v, here %v", name, labels, samples, ours)
			continue
		}
		for part, w := range samples {
			g, ok := ours[part]
			if tolerance := toleranceOf(part); !ok || math.Abs(g-w) > tolerance*math.Abs(w) {
				t.Errorf("%s{%s} %s: there %v, here %v", name, labels, part, w, g)
			}
		}
	}
	for labels := range got.series {
		if want.series[labels] == nil {
			t.Errorf("%s{%s}: only here", name, labels)
		}
	}
}

// toleranceOf returns the allowed relative difference: quantiles are estimates in
// both programs, and sums have rounding errors.
func toleranceOf(part string) float64 {
	switch {
	case strings.HasPrefix(part, "quantile"):
		return 0.03
	case part == "sum":
		return 1e-9
	}
	return 0
}

// peer is statsd_exporter as its main function assembles it, without ports for
// scrapes.
type peer struct {
	registry *prometheus.Registry
	listener listener.StatsDTCPListener
	done     chan struct{}
	events   chan event.Events
}

func newPeer(t *testing.T, rules string) *peer {
	t.Helper()
	p := &peer{registry: prometheus.NewRegistry(), done: make(chan struct{}), events: make(chan event.Events)}
	counter := func(name string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "statsd_exporter_" + name})
		p.registry.MustRegister(c)
		return c
	}
	counters := func(name string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "statsd_exporter_" + name}, labels)
		p.registry.MustRegister(c)
		return c
	}
	logger := slog.New(slog.DiscardHandler)
	parser := line.NewParser()
	parser.EnableDogstatsdParsing()
	parser.EnableInfluxdbParsing()
	parser.EnableLibratoParsing()
	parser.EnableSignalFXParsing()
	m := &mapper.MetricMapper{Registerer: p.registry, Logger: logger}
	if rules != "" {
		if err := m.InitFromYAMLString(rules); err != nil {
			t.Fatalf("%v\n%s", err, rules)
		}
	}
	metrics := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "statsd_exporter_metrics_total"}, []string{"type"})
	e := exporter.NewExporter(p.registry, m, logger, counters("events_actions_total", "action"), counter("events_unmapped_total"),
		counters("events_error_total", "reason"), counters("events_total", "type"), counters("events_conflict_total", "type", "metric_name"), metrics)
	p.listener = listener.StatsDTCPListener{
		EventHandler: &event.UnbufferedEventHandler{C: p.events}, Logger: logger, LineParser: parser,
		LinesReceived: counter("lines_total"), SampleErrors: *counters("sample_errors_total", "reason"), SamplesReceived: counter("samples_total"),
		TagErrors: counter("tag_errors_total"), TagsReceived: counter("tags_total"),
		TCPConnections: counter("tcp_connections_total"), TCPErrors: counter("tcp_connection_errors_total"), TCPLineTooLong: counter("tcp_too_long_lines_total"),
	}
	go func() {
		e.Listen(p.events)
		close(p.done)
	}()
	return p
}

// theirPage returns what statsd_exporter shows after lines.
func theirPage(t *testing.T, rules, lines string) page {
	t.Helper()
	p := newPeer(t, rules)
	p.serve(t, lines+lastLine+lastLine)
	families, err := p.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return pageOf(families)
}

// serve receives lines over TCP, and ends.
func (p *peer) serve(t *testing.T, lines string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sent := make(chan error, 1)
	go func() { sent <- send(l.Addr().String(), lines) }()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	p.listener.HandleConn(conn.(*net.TCPConn))
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	close(p.events)
	<-p.done
}

func send(address, lines string) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(conn, lines); err != nil {
		return err
	}
	return conn.Close()
}

var logged = regexp.MustCompile(`(?s)statsd listener (?:\S+ on )?tcp://([0-9.:]+).*admin address: ([0-9.:]+)`)

// startOurs starts the daemon with flags of statsd_exporter, and returns its TCP address.
func startOurs(t *testing.T, flags ...string) (d *daemon.Daemon, tcp string) {
	t.Helper()
	d = daemon.Start(t, daemon.Config{Bare: true, Args: append([]string{"--web.listen-address=127.0.0.1:0", "--statsd.listen-udp=", "--statsd.listen-tcp=127.0.0.1:0"}, flags...)})
	var addresses []string
	d.Until("the addresses", func() bool {
		if d.Ended() {
			t.Fatalf("the daemon ended:\n%s", d.Output())
		}
		addresses = logged.FindStringSubmatch(d.Output())
		return addresses != nil
	})
	d.Admin = addresses[2]
	return d, addresses[1]
}

// ourPage returns what the daemon shows after lines.
func ourPage(t *testing.T, rules, lines string) page {
	t.Helper()
	file := filepath.Join(t.TempDir(), "mapping.yml")
	var flags []string
	if rules != "" {
		if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
			t.Fatal(err)
		}
		flags = []string{"--statsd.mapping-config=" + file}
	}
	d, tcp := startOurs(t, flags...)
	if err := send(tcp, lines+lastLine); err != nil {
		t.Fatal(err)
	}
	var p page
	shown := 0.0
	last := func() bool {
		p = pageOf(familiesOf(t, d))
		return p["the_last"] != nil && p["the_last"].series[""]["count"] > shown
	}
	d.Until("the last line", last)
	shown = 1
	if err := send(tcp, lastLine); err != nil {
		t.Fatal(err)
	}
	d.Until("the last line again", last)
	return p
}

// familiesOf scrapes a daemon.
func familiesOf(t *testing.T, d *daemon.Daemon) []*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(d.Get("/metrics")))
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(maps.Values(families))
}

// randomRules returns a mapping file.
func randomRules(r *rand.Rand) string {
	var b strings.Builder
	fmt.Fprintf(&b, "defaults:\n  observer_type: %s\n", pick(r, "summary", "histogram"))
	if r.IntN(2) == 0 {
		b.WriteString("  glob_disable_ordering: true\n")
	}
	b.WriteString("mappings:\n")
	var globs []string
	for i := range 12 + r.IntN(12) {
		match, regex := randomGlob(r), false
		if r.IntN(4) == 0 {
			match, regex = pick(r, `^a\.(.*)$`, `b`, `(\w+)\.(c|b)`, `^([^.]*)\.([^.]*)\.c`, `d-(e)`, `^(?P<x>a)`), true
		} else if slices.ContainsFunc(globs, func(g string) bool { return g == match || strings.HasPrefix(g, match+".") }) {
			continue
		} else {
			globs = append(globs, match)
		}
		// All rules for a metric have the same text and form, else the page of
		// statsd_exporter is an error.
		fmt.Fprintf(&b, "- match: '%s'\n  name: 'm%d_%s'\n", match, i, pick(r, "x", "x_${1}", "${2}_$1", "$1", "x$3"))
		if r.IntN(3) == 0 {
			fmt.Fprintf(&b, "  help: 'text %d \"\\ é'\n", i)
		}
		if regex {
			b.WriteString("  match_type: regex\n")
		}
		if kind := pick(r, "", "", "", "counter", "gauge", "observer"); kind != "" {
			fmt.Fprintf(&b, "  match_metric_type: %s\n", kind)
		}
		if r.IntN(8) == 0 {
			b.WriteString("  action: drop\n")
		}
		if r.IntN(4) == 0 {
			fmt.Fprintf(&b, "  scale: %s\n", pick(r, "2", "1000", "0"))
		}
		if r.IntN(3) == 0 {
			b.WriteString("  honor_labels: true\n")
		}
		switch r.IntN(6) {
		case 0:
			b.WriteString("  observer_type: histogram\n  histogram_options: {buckets: [0.01, 0.3, 1, 25]}\n")
		case 1:
			b.WriteString("  observer_type: histogram\n  histogram_options: {native_histogram_bucket_factor: 1.2, native_histogram_max_buckets: 50}\n")
		case 2:
			b.WriteString("  observer_type: summary\n  summary_options: {quantiles: [{quantile: 0.2, error: 0.01}, {quantile: 0.95, error: 0.001}], max_age: 5m, age_buckets: 3, buf_cap: 100}\n")
		case 3:
			b.WriteString("  observer_type: summary\n")
		}
		fmt.Fprintf(&b, "  labels: {aa: '%s', kk: '%s'}\n", pick(r, "$1", "${1}x", "$0", "$1_x", "plain", ""), pick(r, "$2-$1", "${3}", "$9", "a$1"))
	}
	return b.String()
}

// randomLine returns a line that both programs treat alike. TestDifferences has the
// others. Timers are about scale milliseconds: the programs estimate quantiles of
// values that differ more in different ways.
func randomLine(r *rand.Rand, scale float64) string {
	name := randomName(r)
	for strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") || strings.Contains(name, "..") || name == "" {
		name = randomName(r) // two names could be one metric
	}
	switch r.IntN(12) {
	case 0:
		name = pick(r, "ü.x", "9.v", "r--s", "p q", "x/y", "t..u", ".z", "q-%-q", "a.b.c.d.e.f")
	case 1:
		name = pick(r, "w.", "w..", "n")
	}
	typ := pick(r, "c", "c", "g", "ms", "h", "d")
	value := func() string {
		switch typ {
		case "c":
			return fmt.Sprint(r.IntN(100))
		case "g":
			return pick(r, "", "+", "-") + fmt.Sprint(r.IntN(100), pick(r, "", ".5", ".25"))
		}
		v := scale * (2 + r.Float64()/200)
		if typ != "ms" {
			return fmt.Sprintf("%.6f", v/1000)
		}
		return fmt.Sprintf("%.3f", v)
	}
	values := value()
	if typ != "c" && typ != "g" && r.IntN(4) == 0 {
		values += ":" + value() + ":" + value()
	}
	rate := ""
	if r.IntN(5) == 0 {
		rate = "|@" + pick(r, "1", "0.5", "0.1", "0.25")
	}
	pairs := func(eq string) string {
		var all []string
		for range 1 + r.IntN(3) {
			all = append(all, pick(r, "kk", "aa", "zone", "Z-9", "9z", "a.b")+eq+pick(r, "1", "2", "x y", "/p/q", `back\slash`, `"q"`, "ü"))
		}
		return strings.Join(all, ",")
	}
	switch r.IntN(8) {
	case 0:
		return name + "," + pairs("=") + ":" + values + "|" + typ + rate
	case 1:
		return name + "#" + pairs("=") + ":" + values + "|" + typ + rate
	case 2:
		return name[:len(name)/2] + "[" + pairs("=") + "]" + name[len(name)/2:] + ":" + values + "|" + typ + rate
	case 3, 4:
		return name + ":" + values + "|" + typ + rate + "|#" + pairs(":")
	case 5:
		return name + ":" + values + "|" + typ + rate + pick(r, "|#bare", "|#k:", "|#:v", "|##kk:1,#aa:2", "|#,,kk:3", "|T1700000000", "|#kk:1|T1700000000", "|#kk:1|c:ci-12")
	}
	return name + ":" + values + "|" + typ + rate
}
