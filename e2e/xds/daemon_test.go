package xds

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
)

const dynamic = `
node: {id: proxy-1, cluster: edge}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
dynamic_resources:
  ads_config: {api_type: %s, grpc_services: [{envoy_grpc: {cluster_name: control}}]}
  cds_config: {ads: {}}
layered_runtime: {layers: [{name: remote, rtds_layer: {name: flags, rtds_config: {ads: {}}}}]}
static_resources:
  clusters:
  - name: control
    http2_protocol_options: {}
    load_assignment:
      cluster_name: control
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: %s, port_value: %s}}}}]}]
`

// dump is the part of /config_dump that this test reads.
type dump struct {
	Configs []struct {
		VersionInfo string `json:"version_info"`
		Active      []struct {
			VersionInfo string `json:"version_info"`
			Cluster     struct {
				Name string `json:"name"`
			} `json:"cluster"`
			ErrorState struct {
				Details string `json:"details"`
				Failed  struct {
					ConnectTimeout string `json:"connect_timeout"`
				} `json:"failed_configuration"`
			} `json:"error_state"`
		} `json:"dynamic_active_clusters"`
	} `json:"configs"`
}

// clusters lists the clusters of /config_dump with their errors.
func (d *dump) clusters() string {
	var list []string
	for _, c := range d.Configs {
		if len(c.Active) > 0 {
			list = append(list, "version "+c.VersionInfo)
		}
		for _, a := range c.Active {
			list = append(list, strings.TrimSpace(a.Cluster.Name+" "+a.VersionInfo+" "+a.ErrorState.Failed.ConnectTimeout+" "+a.ErrorState.Details))
		}
	}
	return strings.Join(list, "; ")
}

func TestDaemonFollowsAControlPlane(t *testing.T) {
	for _, tt := range []struct {
		name, kind string
		delta      bool
	}{{"sotw", "GRPC", false}, {"delta", "DELTA_GRPC", true}} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlane(t, true, tt.delta)
			p.flags = map[string]any{"colour": "blue"}
			p.set("1", map[string][]uint32{"a": {1001, 1002}, "b": {2001}}, nil)
			ip, port, err := net.SplitHostPort(p.address)
			if err != nil {
				t.Fatal(err)
			}
			d := daemon.Start(t, daemon.Config{YAML: fmt.Sprintf(dynamic, tt.kind, ip, port)})
			hosts := func() string {
				var list []string
				for line := range strings.Lines(d.Get("/clusters")) {
					if name, ok := strings.CutSuffix(strings.TrimSpace(line), "::health_flags::healthy"); ok && !strings.HasPrefix(name, "control") {
						list = append(list, strings.Replace(name, "::127.0.0.1", "", 1))
					}
				}
				return strings.Join(list, " ")
			}
			dumped := func() string {
				var x dump
				if err := json.Unmarshal([]byte(d.Get("/config_dump")), &x); err != nil {
					t.Fatal(err)
				}
				return x.clusters()
			}
			// The daemon is ready when all of these are.
			waittest.Equal(t, "hosts", "a:1001 a:1002 b:2001", hosts)
			if got := dumped(); !tt.delta && got != "version 1; a 1; b 1" { // in the other variant versions are hashes
				t.Errorf("configuration %s, want version 1; a 1; b 1", got)
			}
			waittest.Equal(t, "runtime", "blue", func() string {
				var x struct {
					Entries map[string]struct {
						Final string `json:"final_value"`
					} `json:"entries"`
				}
				if err := json.Unmarshal([]byte(d.Get("/runtime")), &x); err != nil {
					t.Fatal(err)
				}
				return x.Entries["colour"].Final
			})

			p.set("2", map[string][]uint32{"a": {1003}, "b": {2001}}, func(c *clusterv3.Cluster) {
				if c.Name == "b" {
					c.ConnectTimeout = durationpb.New(-time.Second)
				}
			})
			waittest.Equal(t, "hosts", "a:1003 b:2001", hosts)
			waittest.Equal(t, "refusal", "true", func() string {
				got := dumped()
				if strings.Contains(got, `-1s cluster "b": connect_timeout: -1s must be greater than 0s`) {
					return "true"
				}
				return got
			})
			d.Wait("a refusal", func(s daemon.Stats) bool { return s.Number("cluster_manager.cds.update_rejected") > 0 })

			p.set("3", map[string][]uint32{"c": {3001}}, nil)
			waittest.Equal(t, "hosts", "c:3001", hosts)
			p.stop()
			d.Wait("the end of the stream", func(s daemon.Stats) bool { return s["control_plane.connected_state"] == "0" })
			if got := hosts(); got != "c:3001" {
				t.Errorf("hosts %s without the control plane, want c:3001", got)
			}
		})
	}
}
