package bootstrap

import (
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/statsd-admin/statsd-admin/internal/conftree"
)

// exclusive lists fields of which a message holds one at most, by the name of
// the field that holds the message. When the text merged over the file sets one
// of them, it takes the place of the others.
var exclusive = map[string][]string{
	"address":        {"socket_address", "pipe"},
	"stats_matcher":  {"reject_all", "exclusion_list", "inclusion_list"},
	"log_format":     {"text_format", "json_format"},
	"socket_address": {"port_value", "named_port"},
	"cds_config":     configSourceKinds,
	"lds_config":     configSourceKinds,
}

var configSourceKinds = []string{"path", "path_config_source", "api_config_source", "ads", "self"}

// mergeNodes merges over into base as messages merge: scalars are replaced,
// messages merged field by field, lists appended. Neither argument is changed.
// name is the field that holds them.
func mergeNodes(name string, base, over *yaml.Node) *yaml.Node {
	switch {
	case conftree.IsNull(over):
		return base
	case base.Kind == yaml.MappingNode && over.Kind == yaml.MappingNode:
		return mergeMappings(name, base, over)
	case base.Kind == yaml.SequenceNode && over.Kind == yaml.SequenceNode:
		merged := *base
		merged.Content = append(append(make([]*yaml.Node, 0, len(base.Content)+len(over.Content)), base.Content...), over.Content...)
		return &merged
	default:
		return over
	}
}

func mergeMappings(name string, base, over *yaml.Node) *yaml.Node {
	merged := *base
	merged.Content = nil
	index := make(map[string]int)
	replaced := ousted(name, over)
	for key, value := range conftree.Pairs(base) {
		field := conftree.SnakeCase(key.Value)
		if replaced[field] {
			continue
		}
		index[field] = len(merged.Content) + 1
		merged.Content = append(merged.Content, key, value)
	}
	for key, value := range conftree.Pairs(over) {
		field := conftree.SnakeCase(key.Value)
		if at, ok := index[field]; ok {
			merged.Content[at] = mergeNodes(field, merged.Content[at], value)
			continue
		}
		merged.Content = append(merged.Content, key, value)
	}
	return &merged
}

// ousted returns the fields that the members of over push out.
func ousted(name string, over *yaml.Node) map[string]bool {
	group := exclusive[name]
	out := make(map[string]bool)
	for key, value := range conftree.Pairs(over) {
		set := conftree.SnakeCase(key.Value)
		if slices.Contains(group, set) && !conftree.IsNull(value) {
			for _, member := range group {
				out[member] = member != set
			}
		}
	}
	return out
}

// collect adds every node of a tree to set. The tree may share nodes.
func collect(n *yaml.Node, set map[*yaml.Node]struct{}) {
	if _, ok := set[n]; ok {
		return
	}
	set[n] = struct{}{}
	for _, child := range n.Content {
		collect(child, set)
	}
}
