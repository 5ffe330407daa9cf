package decode

import (
	"go.yaml.in/yaml/v4"

	"github.com/statsd-admin/statsd-admin/internal/conftree"
)

// The tags of the core schema, a date, and the merge key.
var (
	scalarTags     = []string{"!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", "!!merge"}
	collectionTags = []string{"!!map", "!!seq"}
)

// member is one key of a mapping with its value.
type member struct{ key, value *yaml.Node }

// members returns the members of a mapping with merge keys (<<) applied: own keys win
// over merged ones, and earlier merged mappings over later ones. Each merged key is
// subtracted from left; below 0 the rest is omitted. r can be nil.
func members(n *yaml.Node, r *report, path string, left *int) []member {
	var merged []*yaml.Node
	list := make([]member, 0, len(n.Content)/2)
	first := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := dealias(n.Content[i]), n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode:
			r.nodeErrorf(Malformed, key, path, "a key must be text, not a list or a mapping")
			continue
		case key.ShortTag() == "!!merge":
			merged = append(merged, value)
			continue
		}
		if before := first[key.Value]; before != nil {
			r.nodeErrorf(Malformed, key, join(path, r.key(key.Value)), "duplicate key %q, first used in line %d", r.key(key.Value), before.Line)
			continue
		}
		first[key.Value] = key
		list = append(list, member{key, value})
	}
	for _, source := range merged {
		source = dealias(source)
		all := []*yaml.Node{source}
		if source.Kind == yaml.SequenceNode {
			all = source.Content
		}
		for _, m := range all {
			m = dealias(m)
			if m.Kind != yaml.MappingNode {
				r.nodeErrorf(Malformed, m, path, "a merge key (<<) needs a mapping or a list of mappings")
				continue
			}
			for i := 0; i+1 < len(m.Content); i += 2 {
				if *left--; *left < 0 {
					return list
				}
				key := dealias(m.Content[i])
				if key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge" {
					r.nodeErrorf(Malformed, key, path, "a merged mapping may not hold a merge key (<<) itself")
					continue
				}
				if key.Kind == yaml.ScalarNode && first[key.Value] == nil {
					first[key.Value] = key
					list = append(list, member{key, m.Content[i+1]})
				}
			}
		}
	}
	return list
}

func dealias(n *yaml.Node) *yaml.Node {
	for hops := 0; n.Kind == yaml.AliasNode && n.Alias != nil && hops < conftree.MaxDepth; hops++ {
		n = n.Alias
	}
	return n
}

// join appends a field name to a path.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}
