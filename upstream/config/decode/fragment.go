package decode

import (
	"errors"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// ConfigSourceNode decodes a config source outside a cluster, such as that of the
// clusters, with the checks of an EDS cluster. Warnings are like [Original.Warnings];
// the error is an [*Errors].
func (d *Decoder) ConfigSourceNode(n *yaml.Node, s Source, form config.Form) (*config.ConfigSource, []*Error, error) {
	c, warnings, err := d.fragment(n, s, form, "eds_cluster_config", "eds_config")
	if err != nil {
		return nil, nil, err
	}
	return &c.EDS.Source, warnings, nil
}

// APISourceNode decodes an API server outside a cluster, such as that of the
// aggregated stream. See [Decoder.ConfigSourceNode].
func (d *Decoder) APISourceNode(n *yaml.Node, s Source, form config.Form) (*config.APISource, []*Error, error) {
	c, warnings, err := d.fragment(n, s, form, "eds_cluster_config", "eds_config", "api_config_source")
	if err != nil {
		return nil, nil, err
	}
	return c.EDS.Source.API, warnings, nil
}

// BindNode decodes the default binding of upstream connections, and returns nil
// if there is none. See [Decoder.ConfigSourceNode].
func (d *Decoder) BindNode(n *yaml.Node, s Source, form config.Form) (*config.Bind, []*Error, error) {
	c, warnings, err := d.fragment(n, s, form, "upstream_bind_config")
	if err != nil {
		return nil, nil, err
	}
	return c.Bind, warnings, nil
}

// fragment decodes n as the field at path of an EDS cluster. Errors have field paths
// below n.
func (d *Decoder) fragment(n *yaml.Node, s Source, form config.Form, path ...string) (*config.Cluster, []*Error, error) {
	for i := len(path) - 1; i > 0; i-- {
		n = mapping(n, path[i], n)
	}
	whole := mapping(n, path[0], n)
	whole.Content = append(mapping(n, "name", scalar(n, "fragment")).Content, whole.Content...)
	whole.Content = append(mapping(n, "type", scalar(n, "EDS")).Content, whole.Content...)
	if path[0] != "eds_cluster_config" {
		eds := mapping(n, "eds_cluster_config", mapping(n, "eds_config", mapping(n, "ads", mapping(n, "", nil))))
		whole.Content = append(eds.Content, whole.Content...)
	}
	prefix := strings.Join(path, ".")
	strip := func(list []*Error) {
		for _, e := range list {
			e.Resource = ""
			e.Field = strings.TrimPrefix(strings.TrimPrefix(e.Field, prefix), ".")
		}
	}
	p, err := d.ClusterNode(whole, s, form)
	if err != nil {
		if faults, ok := errors.AsType[*Errors](err); ok {
			strip(faults.List)
		}
		return nil, nil, err
	}
	warnings := p.Warnings()
	strip(warnings)
	return p.Cluster, warnings, nil
}

// mapping returns a mapping of one key, or an empty one if value is nil, at the
// position of at.
func mapping(at *yaml.Node, key string, value *yaml.Node) *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: at.Line, Column: at.Column}
	if value != nil {
		m.Content = []*yaml.Node{scalar(at, key), value}
	}
	return m
}

func scalar(at *yaml.Node, text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Line: at.Line, Column: at.Column}
}
