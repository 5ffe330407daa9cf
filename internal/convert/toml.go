package convert

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
	"go.yaml.in/yaml/v4"

	"github.com/statsd-admin/statsd-admin/internal/conftree"
)

// maxDepth limits how deeply values and tables nest.
const maxDepth = 50

// tomlReader builds a tree of a TOML document.
type tomlReader struct {
	parser unstable.Parser
	lines  lineIndex
	closed map[*yaml.Node]bool // written as {…} or […]: nothing may be added
	opened map[*yaml.Node]bool // have a header of their own
	values map[tomlKey]*yaml.Node
	err    *conftree.Error
}

// tomlKey is the place of a value.
type tomlKey struct {
	table *yaml.Node
	key   string
}

// parseTOML parses a TOML document.
func parseTOML(text []byte) (*yaml.Node, []*conftree.Error) {
	if i := strings.IndexByte(string(text), 0); i >= 0 || tooDeep(text) {
		return nil, []*conftree.Error{{Line: 1, Column: 1, Message: "not valid TOML: a NUL byte, or values nested too deeply"}}
	}
	r := &tomlReader{lines: newLineIndex(text), closed: map[*yaml.Node]bool{}, opened: map[*yaml.Node]bool{}, values: map[tomlKey]*yaml.Node{}}
	root := mappingNode(1, 1)
	table := root
	r.parser.Reset(text)
	for r.err == nil && r.parser.NextExpression() {
		switch e := r.parser.Expression(); e.Kind {
		case unstable.KeyValue:
			r.assign(table, e)
		case unstable.Table, unstable.ArrayTable:
			table = r.header(root, e)
		}
	}
	if err := r.parser.Error(); err != nil && r.err == nil {
		r.err = &conftree.Error{Line: 1, Column: 1, Message: "not valid TOML: " + err.Error()}
		if syntax, ok := errors.AsType[*unstable.ParserError](err); ok {
			r.err.Message = "not valid TOML: " + syntax.Message
			at := len(text)
			if len(syntax.Highlight) > 0 {
				at = int(r.parser.Range(syntax.Highlight).Offset)
			}
			r.err.Line, r.err.Column = r.lines.at(at)
		}
	}
	if r.err != nil {
		return nil, []*conftree.Error{r.err}
	}
	return root, nil
}

// tooDeep reports whether brackets nest deeper than maxDepth. It counts those in
// strings too, of which a real file has few.
func tooDeep(text []byte) bool {
	depth := 0
	for _, c := range text {
		switch c {
		case '[', '{':
			if depth++; depth > 20*maxDepth {
				return true
			}
		case ']', '}':
			depth--
		}
	}
	return false
}

func (r *tomlReader) fail(n *unstable.Node, format string, args ...any) {
	r.failAt(n.Raw, format, args...)
}

func (r *tomlReader) failAt(at unstable.Range, format string, args ...any) {
	if r.err == nil {
		line, column := r.lines.at(int(at.Offset))
		r.err = &conftree.Error{Line: line, Column: column, Message: "not valid TOML: " + fmt.Sprintf(format, args...)}
	}
}

// header returns the table that a header opens.
func (r *tomlReader) header(root *yaml.Node, e *unstable.Node) *yaml.Node {
	table := root
	depth := 0
	for it := e.Key(); it.Next(); {
		if depth++; depth > maxDepth {
			r.fail(it.Node(), "a key of more than %d parts", maxDepth)
			return table
		}
		if !it.IsLast() {
			table = r.step(table, it.Node())
		} else {
			table = r.open(table, it.Node(), e.Kind == unstable.ArrayTable)
		}
		if r.err != nil {
			return table
		}
	}
	return table
}

// step returns the table with a key, which it creates. Of a list it is the last table.
func (r *tomlReader) step(table *yaml.Node, key *unstable.Node) *yaml.Node {
	at := r.values[tomlKey{table, string(key.Data)}]
	switch {
	case at == nil:
		at = mappingNode(r.lines.at(int(key.Raw.Offset)))
		r.put(table, key, at)
	case r.closed[at]:
		r.fail(key, "%s cannot be extended", conftree.Key(string(key.Data), false))
	case at.Kind == yaml.SequenceNode:
		at = at.Content[len(at.Content)-1]
	case at.Kind != yaml.MappingNode:
		r.fail(key, "%s is not a table", conftree.Key(string(key.Data), false))
	}
	return at
}

// open returns the table with a header, which must not have had one, or appends a table
// to a list.
func (r *tomlReader) open(table *yaml.Node, key *unstable.Node, list bool) *yaml.Node {
	at := r.values[tomlKey{table, string(key.Data)}]
	made := mappingNode(r.lines.at(int(key.Raw.Offset)))
	switch {
	case at == nil && list:
		at = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: made.Line, Column: made.Column}
		r.put(table, key, at)
		fallthrough
	case at != nil && list && at.Kind == yaml.SequenceNode && !r.closed[at]:
		at.Content = append(at.Content, made)
		return made
	case at == nil:
		r.put(table, key, made)
		at = made
	case list || at.Kind != yaml.MappingNode || r.closed[at] || r.opened[at]:
		r.fail(key, "%s is defined twice", conftree.Key(string(key.Data), false))
	}
	r.opened[at] = true
	return at
}

// assign sets a value in a table.
func (r *tomlReader) assign(table *yaml.Node, e *unstable.Node) {
	depth := 0
	for it := e.Key(); it.Next() && r.err == nil; {
		key := it.Node()
		if depth++; depth > maxDepth {
			r.fail(key, "a key of more than %d parts", maxDepth)
			return
		}
		if !it.IsLast() {
			if at := r.values[tomlKey{table, string(key.Data)}]; at != nil && r.opened[at] {
				r.fail(key, "%s has a header of its own", conftree.Key(string(key.Data), false))
				return
			}
			if table = r.step(table, key); table.Kind != yaml.MappingNode {
				return
			}
			continue
		}
		if r.values[tomlKey{table, string(key.Data)}] != nil {
			r.fail(key, "%s is defined twice", conftree.Key(string(key.Data), false))
			return
		}
		r.put(table, key, r.value(e.Value(), key.Raw, 0))
	}
}

// put appends an entry to a table.
func (r *tomlReader) put(table *yaml.Node, key *unstable.Node, value *yaml.Node) {
	line, column := r.lines.at(int(key.Raw.Offset))
	r.values[tomlKey{table, string(key.Data)}] = value
	table.Content = append(table.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: string(key.Data), Line: line, Column: column}, value)
}

// value returns the tree of a value. The parser does not say where lists are: they get
// the place of their key.
func (r *tomlReader) value(v *unstable.Node, key unstable.Range, depth int) *yaml.Node {
	if v.Raw.Length > 0 {
		key = v.Raw
	}
	line, column := r.lines.at(int(key.Offset))
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: string(v.Data), Line: line, Column: column}
	if depth > maxDepth {
		r.failAt(key, "values nest deeper than %d", maxDepth)
		return n
	}
	switch v.Kind {
	case unstable.Bool:
		n.Tag = "!!bool"
	case unstable.Integer:
		n.Tag = "!!int"
	case unstable.Float:
		n.Tag = "!!float"
	case unstable.Array:
		n.Kind, n.Tag, n.Value = yaml.SequenceNode, "!!seq", ""
		for it := v.Children(); it.Next(); {
			n.Content = append(n.Content, r.value(it.Node(), key, depth+1))
		}
		r.closed[n] = true
	case unstable.InlineTable:
		n = mappingNode(line, column)
		for it := v.Children(); it.Next() && r.err == nil; {
			r.assign(n, it.Node())
		}
		r.closed[n] = true
	}
	return n
}

func mappingNode(line, column int) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: line, Column: column}
}

// lineIndex finds lines and columns of offsets.
type lineIndex struct {
	starts []int // offsets of lines
}

func newLineIndex(text []byte) lineIndex {
	x := lineIndex{starts: []int{0}}
	for i := 0; ; {
		n := bytes.IndexByte(text[i:], '\n')
		if n < 0 {
			return x
		}
		i += n + 1
		x.starts = append(x.starts, i)
	}
}

// at returns the position of an offset, in bytes. Both count from 1.
func (x lineIndex) at(offset int) (line, column int) {
	line, found := slices.BinarySearch(x.starts, offset)
	if !found {
		line--
	}
	return line + 1, offset - x.starts[line] + 1
}
