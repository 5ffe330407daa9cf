package scrape

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
	"github.com/statsd-admin/statsd-admin/e2e/need"
	"github.com/statsd-admin/statsd-admin/e2e/promserver"
)

const deploy = "../../deploy"

// dashboard holds the parts of a Grafana dashboard that are checked.
type dashboard struct {
	Title      string
	Templating struct {
		List []struct{ Name, Query string }
	}
	Panels []struct {
		Title, Type string
		Targets     []struct{ Expr string }
	}
}

// dashboards returns the shipped dashboards by file name.
func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	files, err := filepath.Glob(deploy + "/grafana/*.json")
	if err != nil || len(files) < 3 {
		t.Fatalf("%q, %v", files, err)
	}
	all := make(map[string]dashboard)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		all[filepath.Base(f)] = d
	}
	return all
}

// variables replaces the variables of dashboards as Grafana does.
var variables = strings.NewReplacer("${prefix}", "proxy", "$instance", ".*", "$cluster", ".*", "$__rate_interval", "10s")

var (
	labelValues = regexp.MustCompile(`^label_values\((\S+), (\S+)\)$`)
	metricName  = regexp.MustCompile(`\b(proxy|process)_[a-z_0-9]+`)
	labelName   = regexp.MustCompile(`proxy_(cluster_name|response_code_class|response_code|http_conn_manager_prefix|listener_address)\b`)
)

// alertExpressions returns the expressions of the shipped alert rules.
func alertExpressions(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(deploy + "/prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			all[r.Alert] = r.Expr
		}
	}
	if len(all) < 12 {
		t.Fatalf("%d rules", len(all))
	}
	return all
}

// startExampleProxy starts the example proxy with a host that answers 200, 404 and
// 500 to a client that asks until the end, and returns its administration address.
func startExampleProxy(t *testing.T) string {
	t.Helper()
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var status int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &status); err != nil {
			status = http.StatusOK
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(host.Close)
	dir := t.TempDir()
	bin := filepath.Join(dir, "reverse-proxy")
	build := exec.Command("go", "build", "-o", bin, "./examples/reverse-proxy")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ip, port, err := net.SplitHostPort(host.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"boot.yaml": fmt.Sprintf("admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}\n"+
			"dynamic_resources: {cds_config: {path_config_source: {path: %s/cds.json}}}\n"+
			"static_resources: {clusters: [{name: web, connect_timeout: 1s, type: STATIC, outlier_detection: {}, load_assignment: {cluster_name: web, "+
			"endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: %s, port_value: %s}}}}]}]}}]}\n", dir, ip, port),
		"cds.json":       "{\"version_info\": \"1\", \"resources\": []}",
		"listeners.json": `[{"name": "web", "address": "127.0.0.1:0", "cluster": "web", "timeout": "60s"}]`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	address := filepath.Join(dir, "address")
	cmd := exec.Command(bin, "--config", filepath.Join(dir, "boot.yaml"), "--listeners", filepath.Join(dir, "listeners.json"), "--admin-address-path", address)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name()) // best effort
			t.Logf("the proxy says\n%s", text)
		}
	})
	get := func(url string) string {
		resp, err := http.Get(url)
		if err != nil {
			return ""
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body) // a short answer is not the expected one
		return string(b)
	}
	var admin string
	daemon.Until(t, "the proxy is live", func() bool {
		b, err := os.ReadFile(address)
		admin = string(b)
		return err == nil && admin != "" && get("http://"+admin+"/ready") == "LIVE\n"
	})
	_, web, _ := strings.Cut(strings.TrimSpace(get("http://"+admin+"/listeners")), "::")
	ctx, stop := context.WithCancel(context.Background())
	var client sync.WaitGroup
	t.Cleanup(func() {
		stop()
		client.Wait()
	})
	client.Go(func() { // until the end: the quantiles of a rate of 0 are NaN
		pace := time.NewTicker(50 * time.Millisecond)
		defer pace.Stop()
		for ctx.Err() == nil {
			for _, status := range []string{"200", "404", "500"} {
				get("http://" + web + "/" + status)
			}
			select {
			case <-pace.C:
			case <-ctx.Done():
			}
		}
	})
	return admin
}

// TestDashboardsAndRules has a Prometheus server scrape a daemon with a sink and a proxy with
// traffic. Every panel must show something, and every rule must name metrics that exist.
func TestDashboardsAndRules(t *testing.T) {
	need.Program(t, "prometheus")
	receiver, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer receiver.Close()
	d := daemon.Start(t, daemon.Config{YAML: "admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}\nstats_flush_interval: 0.2s\n" +
		"statsd: {listeners: [{name: udp, address: \"udp://127.0.0.1:0\"}, {name: tcp, address: \"tcp://127.0.0.1:0\"}]}\n" +
		"sinks: [{name: out, statsd: {address: \"" + receiver.LocalAddr().String() + "\"}}]\n"})
	populate(t, d)
	p := promserver.Start(t, promserver.Config{Targets: []string{d.Admin, startExampleProxy(t)}})
	// Rates need two scrapes.
	p.Expect(`min(count_over_time(up[1m]))`, promserver.Within(3, 1e6))

	// A counter of answers with a status exists from the first such answer on.
	exists := func(where, name string) {
		t.Helper()
		p.Expect("count({__name__=~\""+name+"(_total)?\"}) > 0 or vector(0) # "+where, promserver.Within(1, 1e6))
	}
	panels := 0
	for file, dash := range dashboards(t) {
		for _, v := range dash.Templating.List {
			if m := labelValues.FindStringSubmatch(variables.Replace(v.Query)); m != nil {
				p.Expect(fmt.Sprintf("count(count by (%s) (%s{%s!=\"\"}))", m[2], m[1], m[2]), promserver.Within(1, 100))
			}
		}
		for _, panel := range dash.Panels {
			if panel.Type != "row" && len(panel.Targets) == 0 {
				t.Errorf("%s: panel %s has no expression", file, panel.Title)
			}
			for _, target := range panel.Targets {
				panels++
				// A NaN draws nothing.
				p.Expect("count(("+variables.Replace(target.Expr)+") >= -Inf)", promserver.Within(1, 1000))
			}
		}
	}
	if panels < 30 {
		t.Errorf("only %d expressions", panels)
	}
	for alert, expr := range alertExpressions(t) {
		p.Query(expr) // fails the test if it is wrong
		names := metricName.FindAllString(expr, -1)
		for _, name := range slices.Compact(names) {
			if !labelName.MatchString(name) {
				exists(alert, name)
			}
		}
	}
}

// TestQuickStart has a Prometheus server run with the configuration of docs/deployment.md,
// but for addresses, paths and intervals. An alert must follow the end of the daemon.
func TestQuickStart(t *testing.T) {
	need.Program(t, "prometheus")
	text, err := os.ReadFile("../../docs/deployment.md")
	if err != nil {
		t.Fatal(err)
	}
	_, config, ok := strings.Cut(string(text), "```yaml\n# /etc/prometheus/prometheus.yml\n")
	config, _, end := strings.Cut(config, "```")
	if !ok || !end {
		t.Fatal("docs/deployment.md has no configuration of Prometheus")
	}
	rules, err := filepath.Abs(deploy + "/prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := daemon.Start(t, daemon.Config{})
	for old, new := range map[string]string{"127.0.0.1:9901": d.Admin, "/usr/share/statsd-admin/prometheus/rules.yaml": rules, "15s": "200ms"} {
		if !strings.Contains(config, old) {
			t.Fatalf("no %s in\n%s", old, config)
		}
		config = strings.ReplaceAll(config, old, new)
	}
	p := promserver.Start(t, promserver.Config{Text: config})
	p.Expect("up", promserver.Is(1))
	p.Expect("proxy_server_live", promserver.Is(1))
	d.Kill()
	p.Expect(`ALERTS{alertname="ServerDown"}`, promserver.Is(1))
}

// TestAlertRules runs the unit tests of the shipped rules.
func TestAlertRules(t *testing.T) {
	out, err := exec.Command(need.Program(t, "promtool"), "test", "rules", deploy+"/prometheus/rules_test.yaml").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(deploy + "/prometheus/rules_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for alert := range alertExpressions(t) {
		if !strings.Contains(string(text), "alertname: "+alert+"\n    exp_alerts:\n    - ") {
			t.Errorf("no test makes %s fire", alert)
		}
	}
}
