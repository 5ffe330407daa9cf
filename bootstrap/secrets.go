package bootstrap

import (
	"fmt"

	"go.yaml.in/yaml/v4"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// setSecrets decodes the list of static secrets. All mistakes of all secrets are
// reported.
func (c *Clusters) setSecrets(x *messages, n *yaml.Node, path string) {
	if n.Kind != yaml.SequenceNode {
		x.d.errorf(n, path, "%s is not a list", x.d.show(n, path))
		return
	}
	for i, child := range n.Content {
		s := x.source()
		s.Index = i
		p, err := x.config.SecretNode(child, s, config.FormUnknown)
		at := fmt.Sprintf("%s[%d]", path, i)
		if err != nil {
			x.faults(err, at, child)
			continue
		}
		x.warnings(p.Warnings(), at)
		c.Secrets = append(c.Secrets, p)
	}
	x.faults(config.CheckSecretNames(c.Secrets), path, n)
}
