package bootstrap

import (
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/statsd-admin/statsd-admin/internal/conftree"
)

// tapIDs returns the IDs by which requests to /tap refer to the tap filters and tap
// transport sockets in a part of a file, in any form of typed or untyped extensions:
// only taps have a field of this path. A tap that the file itself configures has no
// ID.
func tapIDs(n *yaml.Node) (ids []string) {
	if n == nil {
		return nil
	}
	if id := scalarAt(n, "common_config", "admin_config", "config_id"); id != "" {
		ids = append(ids, id)
	}
	for _, child := range n.Content {
		for _, id := range tapIDs(child) {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// scalarAt returns the scalar at a path of field names, or nothing.
func scalarAt(n *yaml.Node, path ...string) string {
	for _, name := range path {
		n = member(n, name)
	}
	if n == nil || n.Kind != yaml.ScalarNode || conftree.IsNull(n) {
		return ""
	}
	return n.Value
}

// member returns the value of a field of a mapping. Both can be nil.
func member(n *yaml.Node, name string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for key, value := range conftree.Pairs(n) {
		if conftree.SnakeCase(key.Value) == name {
			return value
		}
	}
	return nil
}
