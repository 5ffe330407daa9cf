package server_test

import (
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestSelfStats checks the server's own stats: all of them, with their kinds, after
// the first flush, and gauges that change without a flush.
func TestSelfStats(t *testing.T) {
	r := start(t, server.Config{
		Admin: anyPort(), Flush: flush.Config{Interval: time.Minute}, CommandLine: server.CommandLine{Concurrency: 3}, StatsVersion: 77, UnknownFields: 2,
	})
	<-r.Initialized()
	r.Store().Symbols().CountLookup("one")
	if got := r.get(t, "/stats?filter=server.stats_recent_lookups"); got != "server.stats_recent_lookups: 0\n" {
		t.Errorf("before the flush: %q", got)
	}
	memory := map[string]bool{"server.memory_allocated": true, "server.memory_heap_size": true, "server.memory_physical_size": runtime.GOOS == "linux"}
	for name, known := range memory {
		if got := r.get(t, "/stats?filter=^"+name+"$"); known && (got == "" || got == name+": 0\n") {
			t.Errorf("%s is %q before the flush", name, got)
		}
	}
	one := 1
	sc := r.Store().ScopeWith("s", store.ScopeOptions{MaxCounters: &one, MaxGauges: &one, MaxHistograms: &one})
	for _, name := range []string{"a", "b", "c"} {
		sc.Counter(name)
		sc.Gauge("g" + name)
		sc.Histogram("h"+name, store.Milliseconds)
	}
	r.Flusher().FlushNow()
	varies := regexp.MustCompile(`(?m)^(\S*(?:memory|uptime|lookups|_sum|_bucket)\S*) \d+$`)
	got := varies.ReplaceAllString(r.get(t, "/stats/metrics?filter=^server%5C."), "$1 N")
	golden.Check(t, "self-stats", []byte(got))

	r.post(t, "/healthcheck/fail")
	if got := r.get(t, "/stats?filter=server.(live|state)$"); got != "server.live: 0\nserver.state: 0\n" {
		t.Errorf("after a failed health check, before a flush: %q", got)
	}
	r.Flusher().FlushNow()
	if got := r.get(t, "/stats?filter=server.(live|state)$"); got != "server.live: 0\nserver.state: 1\n" {
		t.Errorf("after the flush: %q", got)
	}
	if got := r.get(t, "/stats?usedonly&filter=ocsp|days_until"); got != "server.days_until_first_cert_expiring: 0\n" {
		t.Errorf("without certificates: %q", got)
	}
	if got := r.get(t, "/stats?filter=initialization_time_ms&histogram_buckets=cumulative"); !strings.HasSuffix(strings.TrimSpace(got), "B3.6e+06(0,1)") {
		t.Errorf("the time of the start was not recorded once: %q", got)
	}
}

// TestVersionNumber checks the gauge server.version.
func TestVersionNumber(t *testing.T) {
	for _, tt := range []struct {
		version, file string
		want          string
	}{
		{"0b1fc9a77/0.4.1/Clean/RELEASE/go1.26", "", "server.version: 729033\n"},
		{"0b1/0.4.1", "", "server.version: 177\n"},
		{"unknown/0.4.1", "", "server.version: 0\n"},
		{"", "", "server.version: 0\n"},
		{"0b1fc9a77/0.4.1", "stats_server_version_override: 42\n", "server.version: 42\n"},
		{"0b1fc9a77/0.4.1", "stats_server_version_override: 0\n", "server.version: 0\n"},
	} {
		c, err := bootstrap.Parse("boot.yaml", []byte(tt.file+"admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}\n"), bootstrap.Options{})
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := c.Server(bootstrap.Startup{Version: tt.version})
		if err != nil {
			t.Fatal(err)
		}
		cfg.Loggers = quiet(t)
		r := start(t, cfg)
		if got := r.get(t, "/stats?filter=server.version"); got != tt.want {
			t.Errorf("version %q with %q: %q, want %q", tt.version, tt.file, got, tt.want)
		}
	}
}

// TestUniqueSeriesIsASetting checks that the setting separates names that would share
// a series.
func TestUniqueSeriesIsASetting(t *testing.T) {
	for setting, want := range map[string]string{
		"{}":                    "# TYPE proxy_same_name counter\nproxy_same_name{} 3\n",
		"{unique_series: true}": "# TYPE proxy_same_name counter\nproxy_same_name{} 1\n# TYPE proxy_same_name_counter counter\nproxy_same_name_counter{} 2\n",
	} {
		r := start(t, fromYAML(t, t.TempDir(), "stats_config: "+setting+"\nadmin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}\n"))
		r.Store().Root().Counter("same.name").Add(1)
		if got := r.get(t, "/stats/metrics?filter=same"); got != "# TYPE proxy_same_name counter\nproxy_same_name{} 1\n" {
			t.Errorf("%s, before the second: %q", setting, got)
		}
		r.Store().Root().Counter("same-name").Add(2)
		if got := r.get(t, "/stats/metrics?filter=same"); got != want {
			t.Errorf("%s: %q, want %q", setting, got, want)
		}
	}
}

func TestProductIsThatOfTheStore(t *testing.T) {
	st := store.New(store.Options{Product: "edge"})
	r := start(t, server.Config{Admin: anyPort(), Store: st})
	if got := r.get(t, "/stats/metrics?filter=^server.live$"); !strings.Contains(got, "edge_server_live{}") {
		t.Errorf("metrics %q", got)
	}
}

func TestProcessStatsAreASetting(t *testing.T) {
	r := start(t, server.Config{Admin: anyPort(), ProcessStats: true})
	if got := r.get(t, "/stats?filter=^go.goroutines$"); !strings.HasPrefix(got, "go.goroutines: ") {
		t.Errorf("got %q", got)
	}
}
