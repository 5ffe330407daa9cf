package decode

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/statsd-admin/statsd-admin/internal/conftree"
)

// locate returns the node at path: the key of a field or map entry, or the element of
// a list. Where the path leaves the tree it returns the last node on the way. It is
// called only to report errors.
func locate(root *yaml.Node, path string) *yaml.Node {
	at, n := root, root
	for path != "" {
		var key, value *yaml.Node
		switch {
		case path[0] == '.':
			path = path[1:]
			continue
		case strings.HasPrefix(path, "[\""):
			quoted, err := strconv.QuotedPrefix(path[1:])
			end := strings.IndexByte(path[min(len(path), 1+len(quoted)):], ']')
			if err != nil || end < 0 {
				return at
			}
			entry := path[1 : 1+len(quoted)+end] // a cut key has a mark behind its quotes
			path = path[len(entry)+2:]
			key, value = find(n, func(k string) bool { return quote(k, false) == entry })
		case path[0] == '[':
			digits, rest, _ := strings.Cut(path[1:], "]")
			i, err := strconv.Atoi(digits)
			if err != nil || n.Kind != yaml.SequenceNode || i >= len(n.Content) {
				return at
			}
			path, key, value = rest, n.Content[i], n.Content[i]
		default:
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			name := path[:end]
			path = path[end:]
			key, value = find(n, func(k string) bool { return conftree.SnakeCase(k) == name })
		}
		if key == nil {
			return at
		}
		at, n = key, value
	}
	if n.Kind == yaml.MappingNode { // a value that is written as a message
		if key, _ := find(n, func(k string) bool { return k == "value" }); key != nil && len(n.Content) == 2 {
			return key
		}
	}
	return at
}

// find returns the first matching member of a mapping.
func find(n *yaml.Node, fits func(key string) bool) (key, value *yaml.Node) {
	if n.Kind == yaml.MappingNode {
		for key, value := range conftree.Pairs(n) {
			if fits(key.Value) {
				return key, value
			}
		}
	}
	return nil, nil
}
