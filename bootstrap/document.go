package bootstrap

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/statsd-admin/statsd-admin/internal/conftree"
	"github.com/statsd-admin/statsd-admin/internal/redact"
)

// mergeBytes is the size of a text for each key that its merge keys can copy.
const mergeBytes = 4

// document is one parsed tree, or several merged into one, without aliases.
// Nodes may be shared between places and must not be changed.
type document struct {
	root *yaml.Node
	file string
	// overlay holds the nodes that came from the text merged over the file,
	// and overlayFile is the name to print for them.
	overlay     map[*yaml.Node]struct{}
	overlayFile string

	files []fileField // that the values of fields name
}

// position returns where n was written.
func (d *document) position(n *yaml.Node) Position {
	file := d.file
	if _, ok := d.overlay[n]; ok {
		file = d.overlayFile
	}
	return Position{File: file, Line: n.Line, Column: n.Column}
}

// parseYAML parses one YAML document.
func parseYAML(name string, data []byte) (*yaml.Node, []*Error) {
	return parseTree(name, data, conftree.ParseYAML)
}

// parseJSON parses one JSON value.
func parseJSON(name string, data []byte) (*yaml.Node, []*Error) {
	return parseTree(name, data, conftree.ParseJSON)
}

// parseTree parses a text and resolves its aliases and merge keys. An empty text is
// an empty mapping.
func parseTree(name string, data []byte, parse func([]byte) (*yaml.Node, error)) (*yaml.Node, []*Error) {
	fail := func(p Position, format string, args ...any) (*yaml.Node, []*Error) {
		return nil, []*Error{{Position: p, Message: fmt.Sprintf(format, args...)}}
	}
	root, err := parse(data)
	switch {
	case errors.Is(err, conftree.ErrNoDocument), err != nil && len(bytes.TrimSpace(data)) == 0:
		return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: 1, Column: 1}, nil
	case err != nil:
		return fail(conftree.ErrorPosition(name, err), "%v", err)
	}
	at := Position{File: name, Line: root.Line, Column: root.Column}
	allowed := conftree.NodeBudget(len(data))
	r := resolver{name: name, sizes: make(map[*yaml.Node]extent), merges: min(conftree.MaxNodes, max(conftree.NodeBudget(0), len(data)/mergeBytes))}
	root = r.resolve(root)
	if r.sizes[root].nodes > allowed || r.merges < 0 {
		return fail(at, "more than %d values after aliases are written out", allowed)
	}
	if len(r.errs) > 0 {
		return nil, r.errs
	}
	if r.sizes[root].depth > conftree.MaxDepth {
		return fail(at, "nested deeper than %d levels", conftree.MaxDepth)
	}
	return root, nil
}

// extent is what a tree would measure with all aliases written out.
type extent struct{ nodes, depth int }

// resolver replaces aliases by their targets, expands merge keys and
// refuses duplicate and structured keys. Resolved nodes are shared, so a small
// text stays small in memory. sizes holds the size of each node after expansion.
type resolver struct {
	name   string
	errs   []*Error
	sizes  map[*yaml.Node]extent // depth 0: being resolved, so it contains itself
	merges int                   // keys that merge keys may still copy; negative: too many
	hidden int                   // above 0 inside a field whose values are secrets
}

func (r *resolver) errorf(n *yaml.Node, format string, args ...any) {
	r.errs = append(r.errs, &Error{Position: Position{File: r.name, Line: n.Line, Column: n.Column}, Message: fmt.Sprintf(format, args...)})
}

// quoteKey returns a key, tag or anchor as error texts print it. In a secret it
// may be a part of that: the blank after a colon is easily forgotten.
func quoteKey(name string, secret bool) string {
	if secret || redact.LooksSecret(name) {
		return redacted
	}
	return strconv.Quote(name)
}

// plainTags are the tags that values have without writing any.
var plainTags = []string{"!!str", "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq", "!!timestamp", "!!merge"}

// resolve returns the node that takes the place of n. Children are replaced in
// n itself.
func (r *resolver) resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		target := n.Alias
		if size, ok := r.sizes[target]; ok && size.depth == 0 {
			r.errorf(n, "alias %s contains itself", quoteKey(n.Value, r.hidden > 0))
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: n.Line, Column: n.Column}
		}
		return r.resolve(target)
	}
	if size, ok := r.sizes[n]; ok && size.depth > 0 {
		return n
	}
	if !slices.Contains(plainTags, n.Tag) {
		r.errorf(n, "tag %s is not supported; values have no tags here", quoteKey(n.Tag, r.hidden > 0))
	}
	r.sizes[n] = extent{}
	for i, child := range n.Content {
		secret := n.Kind == yaml.MappingNode && i%2 == 1 && sensitive(snakeCase(n.Content[i-1].Value))
		if secret {
			r.hidden++
		}
		n.Content[i] = r.resolve(child)
		if secret {
			r.hidden--
		}
	}
	if n.Kind == yaml.MappingNode {
		r.checkKeys(n)
	}
	size := extent{nodes: 1, depth: 1}
	for _, child := range n.Content {
		c := r.sizes[child]
		size.nodes = min(size.nodes+c.nodes, math.MaxInt32) // stays far from overflow
		size.depth = max(size.depth, c.depth+1)
	}
	r.sizes[n] = size
	return n
}

// checkKeys refuses keys that are not plain text or come twice, and writes out
// merge keys (<<): own keys win over merged ones.
func (r *resolver) checkKeys(n *yaml.Node) {
	first := make(map[string]*yaml.Node, len(n.Content)/2)
	var merges []*yaml.Node
	kept := n.Content[:0:0]
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode:
			r.errorf(key, "a key must be text, not a list or a mapping")
			continue
		case key.Tag == "!!merge":
			merges = append(merges, value)
			continue
		}
		if before, dup := first[key.Value]; dup {
			r.errorf(key, "duplicate key %s, first used in line %d", quoteKey(key.Value, r.hidden > 0), before.Line)
			continue
		}
		first[key.Value] = key
		kept = append(kept, key, value)
	}
	if len(merges) == 0 {
		return // duplicates are errors, so what is left in n does not matter
	}
	n.Content = kept
	for _, source := range merges {
		list := []*yaml.Node{source}
		if source.Kind == yaml.SequenceNode {
			list = source.Content
		}
		for _, m := range list {
			if m.Kind != yaml.MappingNode {
				r.errorf(m, "a merge key (<<) wants a mapping or a list of mappings")
				continue
			}
			for i := 0; i+1 < len(m.Content); i += 2 {
				if r.merges--; r.merges < 0 {
					return
				}
				if _, own := first[m.Content[i].Value]; !own {
					first[m.Content[i].Value] = m.Content[i]
					n.Content = append(n.Content, m.Content[i], m.Content[i+1])
				}
			}
		}
	}
}
