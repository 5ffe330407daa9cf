package scrape

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
	"github.com/statsd-admin/statsd-admin/e2e/need"
)

// scrapes lists the ways to request an exposition.
var scrapes = []string{
	"/stats/metrics", "/stats/prometheus", "/stats?format=metrics", "/stats/metrics?usedonly", "/stats/metrics?text_readouts",
	"/stats/metrics?histogram_buckets=summary", "/stats/metrics?filter=shop", "/stats/metrics?filter=nothing.has.this.name",
	"/stats/metrics?hidden=include&text_readouts&usedonly",
}

// request requests an exposition with header fields and returns the raw answer.
func request(t *testing.T, d *daemon.Daemon, path string, fields map[string]string) (http.Header, []byte) {
	t.Helper()
	req, err := http.NewRequest("GET", "http://"+d.Admin+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range fields {
		req.Header.Set(k, v)
	}
	client := http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%s: status %d, %v: %s", path, resp.StatusCode, err, body)
	}
	return resp.Header, body
}

// families parses an exposition with the client libraries.
func families(t *testing.T, path string, text []byte) map[string]*dto.MetricFamily {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	all, err := p.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v\n%s", path, err, text)
	}
	return all
}

// TestParsersTakeEveryExposition parses every kind of scrape with the server and the
// client libraries.
func TestParsersTakeEveryExposition(t *testing.T) {
	d := daemon.Start(t, daemon.Config{})
	populate(t, d)
	for _, path := range scrapes {
		header, text := request(t, d, path, nil)
		if got := header.Get("content-type"); got != "text/plain; version=0.0.4; charset=utf-8" {
			t.Errorf("%s: content type %q", path, got)
		}
		n := len(families(t, path, text))
		if empty := strings.Contains(path, "nothing"); (n == 0) != empty {
			t.Errorf("%s: %d families", path, n)
		}
		checkSeries(t, path, text, header.Get("content-type"))

		header, open := request(t, d, path, map[string]string{"accept": "application/openmetrics-text; version=1.0.0"})
		if got := header.Get("content-type"); !strings.HasPrefix(got, "application/openmetrics-text") {
			t.Errorf("%s: content type %q of OpenMetrics", path, got)
		}
		checkSeries(t, path, open, header.Get("content-type"))
	}
	for escaping, want := range map[string]string{
		"allow-utf-8": `{"ünï.cödé","schlüssel"="wert"} 1`, "underscores": `__n___c__d__{schl__ssel="wert"} 1`,
		"dots": `____n_____dot_c____d____{`, "values": `U___fc_n_ef__2e_c_f6_d_e9_{U__schl_fc_ssel="wert"} 1`,
	} {
		header, text := request(t, d, "/stats/metrics", map[string]string{"accept": prometheus3(escaping)})
		contentType := header.Get("content-type")
		if contentType != "text/plain; version=1.0.0; charset=utf-8; escaping="+escaping {
			t.Errorf("%s: content type %q", escaping, contentType)
		}
		checkSeries(t, escaping, text, contentType)
		if !strings.Contains(string(text), want) {
			t.Errorf("%s: no %s in\n%s", escaping, want, text)
		}
	}
}

// prometheus3 returns the Accept header of Prometheus 3 for an escaping.
func prometheus3(escaping string) string {
	return "application/openmetrics-text;version=1.0.0;escaping=" + escaping + ";q=0.6,application/openmetrics-text;version=0.0.1;q=0.5," +
		"text/plain;version=1.0.0;escaping=" + escaping + ";q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
}

// checkSeries parses an exposition with the Prometheus server's parser and checks
// that no series occurs twice.
func checkSeries(t *testing.T, path string, text []byte, contentType string) {
	t.Helper()
	p, err := textparse.New(text, contentType, labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for {
		kind, err := p.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%s as %s: %v\n%s", path, contentType, err, text)
		}
		if kind != textparse.EntrySeries {
			continue
		}
		var ls labels.Labels
		p.Labels(&ls)
		if seen[ls.String()] {
			t.Errorf("%s as %s: %s comes twice", path, contentType, ls)
		}
		seen[ls.String()] = true
	}
}

// opinions are the warnings of promtool about names that are given by the interface
// or by senders. Others are not allowed.
var opinions = []*regexp.Regexp{
	regexp.MustCompile(`^\S+ no help text$`),
	regexp.MustCompile(`^\S+ counter metrics should have "_total" suffix$`),
	regexp.MustCompile(`^\S+ non-counter metrics should not have "_total" suffix$`),
	regexp.MustCompile(`^\S+ non-histogram( and non-summary)? metrics should not have "_(count|bucket|sum)" suffix$`),
	regexp.MustCompile(`^\S+ metric name should not include type '\w+'$`),
	regexp.MustCompile(`^\S+ metric names should not contain abbreviated units$`),
	regexp.MustCompile(`^\S+ use base unit "\w+" instead of "\w+"$`),
}

// TestPromtool runs promtool over each exposition.
func TestPromtool(t *testing.T) {
	promtool := need.Program(t, "promtool")
	d := daemon.Start(t, daemon.Config{})
	populate(t, d)
	for _, path := range scrapes {
		_, text := request(t, d, path, nil)
		if len(text) == 0 {
			continue
		}
		cmd := exec.Command(promtool, "check", "metrics")
		cmd.Stdin = bytes.NewReader(text)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 3) { // 3: opinions only
			t.Fatalf("%s: %v\n%s\n%s", path, err, out, text)
		}
		for line := range strings.Lines(string(out)) {
			line = strings.TrimSpace(line)
			if !slices.ContainsFunc(opinions, func(r *regexp.Regexp) bool { return r.MatchString(line) }) {
				t.Errorf("%s: promtool: %s", path, line)
			}
		}
	}
}

// TestCompressedScrapes decompresses each content encoding and finds the same
// families in it.
func TestCompressedScrapes(t *testing.T) {
	d := daemon.Start(t, daemon.Config{})
	populate(t, d)
	const path = "/stats/metrics?filter=shop"
	_, plain := request(t, d, path, nil)
	want := families(t, path, plain)
	unpack := map[string]func(io.Reader) (io.Reader, error){
		"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		"zstd": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) },
	}
	for encoding, open := range unpack {
		header, packed := request(t, d, path, map[string]string{"accept-encoding": encoding})
		if got := header.Get("content-encoding"); got != encoding {
			t.Fatalf("content encoding %q, want %q", got, encoding)
		}
		if len(packed) >= len(plain) {
			t.Errorf("%s: %d bytes of %d", encoding, len(packed), len(plain))
		}
		r, err := open(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatalf("%s: %v", encoding, err)
		}
		got := families(t, path, text)
		for name, f := range want {
			if len(got[name].GetMetric()) != len(f.GetMetric()) {
				t.Errorf("%s: %s has %d series, want %d", encoding, name, len(got[name].GetMetric()), len(f.GetMetric()))
			}
		}
	}
}
