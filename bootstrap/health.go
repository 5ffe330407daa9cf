package bootstrap

import (
	"fmt"

	"go.yaml.in/yaml/v4"

	"github.com/statsd-admin/statsd-admin/server"
)

// healthListener decodes a listener that answers health checks on an address of its
// own.
func healthListener(h *server.HealthListener) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		var address Address
		h.Name = "health"
		seen := d.message(n, path, []field{
			{"name", nonEmpty(&h.Name)},
			{"address", address.set},
		})
		d.require(n, path, seen, "address")
		if at, ok := seen["name"]; ok {
			checkName(d, at, join(path, "name"), h.Name)
		}
		h.Address, h.Mode = address.endpoint(), address.Mode
	}
}

// setHealthListeners reads the list and reports names that are there twice.
func (c *Config) setHealthListeners(d *decoder, n *yaml.Node, path string) {
	list(&c.HealthListeners, healthListener)(d, n, path)
	names := make(map[string]bool)
	for i, h := range c.HealthListeners {
		if names[h.Name] {
			d.errorf(n.Content[i], fmt.Sprintf("%s[%d]", path, i), "second listener named %q", h.Name)
		}
		names[h.Name] = true
	}
}
