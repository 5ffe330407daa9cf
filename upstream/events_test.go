package upstream

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/eventlog"
)

func TestEventsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		logs := eventlog.New()
		ejections, err := logs.Open(filepath.Join(dir, "outlier.log"))
		if err != nil {
			t.Fatal(err)
		}
		r := newRig(t, func(c *Config) {
			alwaysGood(c)
			c.Logs, c.OutlierLog = logs, ejections
		})
		c := r.eds(strings.Replace(ping, "[{", "[{event_log_path: "+filepath.Join(dir, "a.log")+
			", event_logger: [{name: file, typed_config: {'@type': type.googleapis.com/envoy.extensions.health_check.event_sinks.file.v3.HealthCheckEventFileSink, event_log_path: "+
			filepath.Join(dir, "b.log")+"}}], ", 1) + "outlier_detection: {consecutive_5xx: 1, max_ejection_percent: 100}")
		c.UpdateHosts(0, hosts(spec(1)))
		time.Sleep(time.Second)
		synctest.Wait()
		c.Sets()[0].Hosts[0].ReportCode(500)
		r.Close()
		ejections.Close()
		for name, want := range map[string]string{
			"a.log":       `"cluster_name":"c","add_healthy_event":{"first_check":true},`,
			"b.log":       `"cluster_name":"c","add_healthy_event":{"first_check":true},`,
			"outlier.log": `"cluster_name":"c","upstream_url":"10.0.0.1:80","action":"EJECT","num_ejections":1,"enforced":true,"eject_consecutive_event":{}`,
		} {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || strings.Count(string(b), "\n") != 1 || !strings.Contains(string(b), want) {
				t.Errorf("%s: %q, %v; want a line with %s", name, b, err, want)
			}
		}
	})
}

func TestEventsThatCannotBeLoggedRefuseTheCluster(t *testing.T) {
	check := func(more string) string {
		return static("c", 1, "health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}, "+more+"}]")
	}
	for _, tt := range []struct {
		text string
		logs *eventlog.Logs
		want string
	}{
		{check("event_log_path: /tmp/x"), nil, `upstream: cluster "c": health_checks[0].event_log_path: "/tmp/x": event logs are not supported here`},
		{check("event_log_path: /none/x"), eventlog.New(), `upstream: cluster "c": health_checks[0].event_log_path: logfile: open /none/x: no such file or directory`},
		{check("event_logger: [{name: mail, typed_config: {'@type': type.googleapis.com/google.protobuf.Struct, value: {}}}]"), eventlog.New(),
			`upstream: cluster "c": health_checks[0].event_logger: "mail" is not supported; use a file`},
	} {
		r := newRig(t, func(c *Config) { c.Logs = tt.logs })
		p, err := decode.NewDecoder(decode.Options{}).ClusterText("test.yaml", []byte(tt.text), config.FormV3)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.AddOrUpdate(p, ""); err == nil || err.Error() != tt.want {
			t.Errorf("got  %v\nwant %s", err, tt.want)
		}
	}
}
