package decode

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strconv"
	"strings"
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
	// Breakers are the circuit breakers, for requests of the default priority.
	Breakers StaticBreakers
}

// StaticBreakers limit what a cluster has at the same time. 0 means the default.
type StaticBreakers struct {
	Connections uint32 // 1024 by default
	Pending     uint32 // requests that wait for a connection; 1024 by default
	Requests    uint32 // 1024 by default
	Retries     uint32 // 3 by default
}

// StaticCheck describes a health check. A host changes its health after Unhealthy
// failures or Healthy successes in a row. Hosts are also checked before the cluster has
// traffic.
type StaticCheck struct {
	// Path, such as "/healthz", is requested with GET, and the status must be 200. If
	// empty, a host only has to accept a connection.
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
	if s.Name == "" {
		return nil, errors.New("decode: a cluster needs a name")
	}
	list := make([]object, len(s.Hosts))
	for i, host := range s.Hosts {
		at, err := netip.ParseAddrPort(host)
		if err != nil || at.Port() == 0 {
			return nil, fmt.Errorf("decode: host %q of cluster %q is not an IP address and a port; Decoder.ClusterText takes names", host, s.Name)
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
		if s.Check.Path != "" && !strings.HasPrefix(s.Check.Path, "/") {
			return nil, fmt.Errorf("decode: path %q of the health check of cluster %q does not begin with /", s.Check.Path, s.Name)
		}
		c["health_checks"] = []object{s.Check.message()}
	}
	if s.EjectAfter != 0 {
		c["outlier_detection"] = object{"consecutive_5xx": s.EjectAfter, "max_ejection_percent": 50}
	}
	if s.Breakers != (StaticBreakers{}) {
		c["circuit_breakers"] = object{"thresholds": []object{s.Breakers.message()}}
	}
	text, _ := json.Marshal(c) // has only texts and whole numbers
	return NewDecoder(Options{}).ClusterText("cluster "+s.Name, text, config.FormV3)
}

type object = map[string]any

func (b StaticBreakers) message() object {
	m := object{"max_connections": b.Connections, "max_pending_requests": b.Pending, "max_requests": b.Requests, "max_retries": b.Retries}
	maps.DeleteFunc(m, func(_ string, limit any) bool { return limit == uint32(0) })
	return m
}

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
