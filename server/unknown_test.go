package server_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/logctl"
)

// TestUnknownFieldsOfUpdates checks that unknown fields of an update are counted and
// logged, rejected, or ignored, depending on the command line.
func TestUnknownFieldsOfUpdates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clusters.yaml")
	const resource = `resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: backend
  load_assignment: {cluster_name: backend}
  colour: red
  size: {width: 1}
`
	if err := os.WriteFile(path, []byte(resource), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := bootstrap.Parse("boot.yaml", []byte("node: {id: n, cluster: c}\nadmin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}\n"+
		"dynamic_resources: {cds_config: {path: "+path+"}}\n"), bootstrap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		options            server.CommandLine
		counted            string
		refused, logs, has bool
	}{
		"counted":        {server.CommandLine{}, "2", false, true, true},
		"ignored":        {server.CommandLine{IgnoreUnknownDynamicFields: true}, "0", false, false, true},
		"refused":        {server.CommandLine{RejectUnknownDynamicFields: true}, "0", true, false, false},
		"refusal is all": {server.CommandLine{RejectUnknownDynamicFields: true, IgnoreUnknownDynamicFields: true}, "0", true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := c.Server(bootstrap.Startup{CommandLine: tt.options})
			if err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			if cfg.Loggers, err = logctl.New(logctl.Config{Level: logctl.Trace, Output: &log}); err != nil {
				t.Fatal(err)
			}
			r := start(t, cfg)
			if got := r.get(t, "/stats?filter=^server.dynamic_unknown_fields$"); got != "server.dynamic_unknown_fields: "+tt.counted+"\n" {
				t.Errorf("counted: %q", got)
			}
			if got := r.get(t, "/stats?filter=cds.update_rejected"); got == "cluster_manager.cds.update_rejected: 0\n" == tt.refused {
				t.Errorf("%q", got)
			}
			if got := strings.Contains(r.get(t, "/clusters"), "backend::"); got != tt.has {
				t.Errorf("the cluster is there: %t", got)
			}
			if err := r.stop(); err != nil {
				t.Error(err)
			}
			if got := strings.Contains(log.String(), "[warning]") && strings.Contains(log.String(), `backend`) && strings.Contains(log.String(), "fields=2"); got != tt.logs {
				t.Errorf("the log:\n%s", log.String())
			}
		})
	}
}
