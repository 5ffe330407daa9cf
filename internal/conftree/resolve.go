package conftree

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/statsd-admin/statsd-admin/internal/redact"
)

// mergeBytes is the size of a text for each key that its merge keys can copy.
const mergeBytes = 4

// maxErrors is the number of errors that [Resolve] reports.
const maxErrors = 100

// plainTags are the tags of values that state none.
var plainTags = []string{"!!str", "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq", "!!timestamp", "!!merge"}

// Pairs returns the keys and values of a mapping.
func Pairs(n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(key, value *yaml.Node) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

// Member returns the value of a key of a mapping, nil if there is none.
func Member(n *yaml.Node, name string) *yaml.Node {
	if n.Kind == yaml.MappingNode {
		for key, value := range Pairs(n) {
			if key.Value == name {
				return value
			}
		}
	}
	return nil
}

// IsNull reports whether n is null.
func IsNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// SnakeCase turns the lowerCamelCase name of a field into snake_case; other names are
// returned unchanged.
func SnakeCase(name string) string {
	if strings.ToLower(name) == name {
		return name
	}
	var b strings.Builder
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			b.WriteByte('_')
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

// Resolve returns root, from a text of size bytes, without aliases and merge keys: own
// keys win over merged ones, and earlier merged mappings over later ones. It does not
// change root, with which the result shares nodes. Targets of aliases are shared, so a
// small text stays small in memory.
//
// Mappings have unique keys, all of them text. Trees deeper than MaxDepth, or with too
// many values once aliases are written out, are errors. The tree has the parts without
// errors, and is nil if it would be unbounded.
func Resolve(root *yaml.Node, size int) (*yaml.Node, []*Error) {
	limit := nodeBudget(size)
	r := resolver{anchors: make(map[*yaml.Node]resolved), merges: min(MaxNodes, max(minNodeBudget, size/mergeBytes))}
	out := r.resolve(root, 1)
	switch {
	case r.deepest > MaxDepth:
		return nil, append(r.errs, r.errorAt(root, "", "nested deeper than %d levels", MaxDepth))
	case out.nodes > limit || r.merges < 0:
		return nil, append(r.errs, r.errorAt(root, "", "more than %d values once aliases are written out", limit))
	}
	return out.node, r.errs
}

// resolved is a tree without aliases.
type resolved struct {
	node         *yaml.Node // nil while it is being resolved
	nodes, depth int        // with all aliases written out
}

type resolver struct {
	anchors map[*yaml.Node]resolved
	merges  int // keys that merge keys may still copy; negative: too many
	deepest int
	path    []string // the keys and indexes above the current node
	hidden  int      // above 0 inside a field whose values are secrets
	errs    []*Error
}

// errorAt returns an error about n, a value or key at the current path and below.
func (r *resolver) errorAt(n *yaml.Node, below, format string, args ...any) *Error {
	path := strings.TrimPrefix(strings.Join(r.path, "")+below, ".")
	return &Error{Line: n.Line, Column: n.Column, Node: n, Field: path, Message: fmt.Sprintf(format, args...)}
}

func (r *resolver) errorf(n *yaml.Node, below, format string, args ...any) {
	if len(r.errs) < maxErrors {
		r.errs = append(r.errs, r.errorAt(n, below, format, args...))
	}
}

// step returns a key as a part of a path.
func (r *resolver) step(key *yaml.Node) string { return "." + Key(key.Value, r.hidden > 0) }

// resolve returns the tree that takes the place of n at that depth.
func (r *resolver) resolve(n *yaml.Node, depth int) resolved {
	if n.Kind == yaml.AliasNode {
		target, seen := r.anchors[n.Alias]
		switch {
		case !seen:
			return r.resolve(n.Alias, depth)
		case target.node == nil:
			r.errorf(n, "", "alias %s contains itself", Quote(n.Value, r.hidden > 0))
			return resolved{&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: n.Line, Column: n.Column}, 1, 1}
		}
		r.deepest = max(r.deepest, depth+target.depth-1)
		return target
	}
	if done := r.anchors[n]; done.node != nil {
		return done
	}
	if r.deepest = max(r.deepest, depth); depth > MaxDepth {
		return resolved{n, 1, 1}
	}
	out := resolved{n, 1, 1}
	if tag := n.ShortTag(); !slices.Contains(plainTags, tag) {
		r.errorf(n, "", "tag %s is not supported; values have no tags here", Quote(tag, r.hidden > 0))
		out.node = replica(n, slices.Clone(n.Content))
		out.node.Tag = "" // the value decides
	}
	if n.Anchor != "" {
		r.anchors[n] = resolved{}
	}
	for i, child := range n.Content {
		step, secret := "["+strconv.Itoa(i)+"]", false
		if n.Kind == yaml.MappingNode {
			key := n.Content[i&^1]
			step, secret = r.step(key), i%2 == 1 && redact.Path(SnakeCase(key.Value))
		}
		r.path = append(r.path, step)
		if secret {
			r.hidden++
		}
		c := r.resolve(child, depth+1)
		if secret {
			r.hidden--
		}
		r.path = r.path[:len(r.path)-1]
		if c.node != child {
			if out.node == n {
				out.node = replica(n, slices.Clone(n.Content))
			}
			out.node.Content[i] = c.node
		}
		out.nodes = min(out.nodes+c.nodes, MaxNodes+1)
		out.depth = max(out.depth, c.depth+1)
	}
	if n.Kind == yaml.MappingNode {
		out.node = r.keys(out.node)
	}
	if n.Anchor != "" {
		r.anchors[n] = out
	}
	return out
}

func replica(n *yaml.Node, content []*yaml.Node) *yaml.Node {
	c := *n
	c.Content = content
	return &c
}

// keys returns a mapping without keys that are not text or come twice, and with the
// members of its merge keys (<<).
func (r *resolver) keys(n *yaml.Node) *yaml.Node {
	first := make(map[string]*yaml.Node, len(n.Content)/2)
	var merges []*yaml.Node
	for key, value := range Pairs(n) {
		before := first[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			r.errorf(key, "", "a key must be text, not a list or a mapping")
		case key.ShortTag() == "!!merge":
			merges = append(merges, value)
		case before != nil:
			r.errorf(key, r.step(key), "duplicate key %s, first used in line %d", Quote(key.Value, r.hidden > 0), before.Line)
		default:
			first[key.Value] = key
		}
	}
	if 2*len(first) == len(n.Content) {
		return n
	}
	kept := make([]*yaml.Node, 0, len(n.Content))
	for key, value := range Pairs(n) {
		if first[key.Value] == key {
			kept = append(kept, key, value)
		}
	}
	for _, source := range merges {
		all := []*yaml.Node{source}
		if source.Kind == yaml.SequenceNode {
			all = source.Content
		}
		for _, m := range all {
			if m.Kind != yaml.MappingNode {
				r.errorf(m, "", "a merge key (<<) needs a mapping or a list of mappings")
				continue
			}
			for key, value := range Pairs(m) {
				if r.merges--; r.merges < 0 {
					return replica(n, kept)
				}
				if first[key.Value] == nil {
					first[key.Value] = key
					kept = append(kept, key, value)
				}
			}
		}
	}
	return replica(n, kept)
}
