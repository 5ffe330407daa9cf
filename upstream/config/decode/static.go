package decode

import (
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// StaticCluster returns a cluster of fixed hosts with default settings. Each host is an
// IP address and a port, such as "10.0.0.1:80" or "[::1]:80". For hosts with names and
// for other settings use [Decoder.ClusterText].
func StaticCluster(name string, hosts ...string) (*ParsedCluster, error) {
	type object = map[string]any
	list := make([]object, len(hosts))
	for i, host := range hosts {
		at, err := netip.ParseAddrPort(host)
		if err != nil || at.Port() == 0 {
			return nil, fmt.Errorf("decode: host %q of cluster %q is not an IP address and a port", host, name)
		}
		socket := object{"address": at.Addr().String(), "port_value": at.Port()}
		list[i] = object{"endpoint": object{"address": object{"socket_address": socket}}}
	}
	text, err := json.Marshal(object{"name": name, "load_assignment": object{
		"cluster_name": name, "endpoints": []object{{"lb_endpoints": list}},
	}})
	if err != nil {
		return nil, fmt.Errorf("decode: cluster %q: %w", name, err)
	}
	return NewDecoder(Options{}).ClusterText("cluster "+name, text, config.FormV3)
}
