package decode

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// Static describes a cluster of fixed hosts for programs without a configuration file.
// [Decoder.ClusterText] has all settings of clusters, also for hosts with names.
type Static struct {
	Name  string
	Hosts []string // IP address and port, such as "10.0.0.1:80" or "[::1]:80"
	// Policy is ROUND_ROBIN, the default, LEAST_REQUEST or RANDOM.
	Policy         string
	ConnectTimeout time.Duration // 5 s by default
	// Check checks the hosts. Without it, each host counts as healthy.
	Check *StaticCheck
	// EjectAfter ejects a host after that many failures in a row, such as connections
	// that fail and responses with a status of 500 and above, for 30 s at first and at
	// most half of the hosts at a time. 0 ejects none.
	EjectAfter uint32
}

// StaticCheck describes a health check. A host changes its health after Unhealthy
// failures or Healthy successes in a row. Hosts are also checked before the cluster has
// traffic.
type StaticCheck struct {
	// Path is requested with GET, and the status must be 200. If empty, a host only
	// has to accept a connection.
	Path               string
	Interval           time.Duration // 5 s by default
	Timeout            time.Duration // 1 s by default
	Unhealthy, Healthy uint32        // 2 by default
}

// StaticCluster returns a cluster of fixed hosts with the defaults of [Static].
func StaticCluster(name string, hosts ...string) (*ParsedCluster, error) {
	return Static{Name: name, Hosts: hosts}.Cluster()
}

// Cluster checks s and returns the cluster.
func (s Static) Cluster() (*ParsedCluster, error) {
	list := make([]object, len(s.Hosts))
	for i, host := range s.Hosts {
		at, err := netip.ParseAddrPort(host)
		if err != nil || at.Port() == 0 {
			return nil, fmt.Errorf("decode: host %q of cluster %q is not an IP address and a port", host, s.Name)
		}
		socket := object{"address": at.Addr().String(), "port_value": at.Port()}
		list[i] = object{"endpoint": object{"address": object{"socket_address": socket}}}
	}
	c := object{"name": s.Name, "load_assignment": object{
		"cluster_name": s.Name, "endpoints": []object{{"lb_endpoints": list}},
	}}
	if s.Policy != "" {
		c["lb_policy"] = s.Policy
	}
	if s.ConnectTimeout != 0 {
		c["connect_timeout"] = seconds(s.ConnectTimeout)
	}
	if s.Check != nil {
		c["health_checks"] = []object{s.Check.message()}
	}
	if s.EjectAfter != 0 {
		c["outlier_detection"] = object{"consecutive_5xx": s.EjectAfter, "max_ejection_percent": 50}
	}
	text, _ := json.Marshal(c) // has only texts and whole numbers
	return NewDecoder(Options{}).ClusterText("cluster "+s.Name, text, config.FormV3)
}

type object = map[string]any

func (c *StaticCheck) message() object {
	interval := seconds(cmp.Or(c.Interval, 5*time.Second))
	m := object{
		"interval": interval, "no_traffic_interval": interval, "timeout": seconds(cmp.Or(c.Timeout, time.Second)),
		"unhealthy_threshold": cmp.Or(c.Unhealthy, 2), "healthy_threshold": cmp.Or(c.Healthy, 2),
		"tcp_health_check": object{},
	}
	if c.Path != "" {
		delete(m, "tcp_health_check")
		m["http_health_check"] = object{"path": c.Path}
	}
	return m
}

// seconds returns d as JSON writes durations in protobuf messages.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 9, 64) + "s" }
