package bootstrap

import (
	"fmt"

	"go.yaml.in/yaml/v4"
)

// HealthListener answers health checks on an address of its own.
type HealthListener struct {
	Name    string // default "health"
	Address Address
}

func (h *HealthListener) set(d *decoder, n *yaml.Node, path string) {
	h.Name = "health"
	seen := d.message(n, path, []field{
		{"name", nonEmpty(&h.Name)},
		{"address", h.Address.set},
	})
	d.require(n, path, seen, "address")
	if at, ok := seen["name"]; ok {
		checkName(d, at, join(path, "name"), h.Name)
	}
}

// setHealthListeners reads the list and reports names that are there twice.
func (c *Config) setHealthListeners(d *decoder, n *yaml.Node, path string) {
	list(&c.HealthListeners, func(h *HealthListener) setter { return h.set })(d, n, path)
	names := make(map[string]bool)
	for i, h := range c.HealthListeners {
		if names[h.Name] {
			d.errorf(n.Content[i], fmt.Sprintf("%s[%d]", path, i), "second listener named %q", h.Name)
		}
		names[h.Name] = true
	}
}
