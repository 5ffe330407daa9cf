package decode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Limits of a text.
const (
	maxTextBytes     = 64 << 20
	maxNodes         = 5_000_000
	maxNodesPerByte  = 10
	minNodeAllowance = 1000 // small texts may use aliases freely
	maxDepth         = 100
)

// nodeBudget returns how many values a text of that size may stand for once all
// aliases are written out.
func nodeBudget(size int) int {
	return min(maxNodes, max(minNodeAllowance, maxNodesPerByte*size))
}

// textError is a text that cannot be parsed.
type textError struct {
	line, column int
	message      string
}

func (e *textError) Error() string { return e.message }

// parseText parses one YAML or JSON document into a tree that may still hold
// aliases and merge keys. A text is taken as JSON if it is valid JSON, so that
// escapes that only JSON has are understood.
func parseText(data []byte) (*yaml.Node, error) {
	if len(data) > maxTextBytes {
		return nil, &textError{0, 0, fmt.Sprintf("%d bytes exceed %d", len(data), maxTextBytes)}
	}
	if t := bytes.TrimLeft(data, " \t\r\n"); len(t) > 0 && t[0] == '{' && json.Valid(data) {
		return parseJSON(data)
	}
	return parseYAML(data)
}

// parseYAML shields the caller from a panic of the parser: whatever the text
// is, the answer is an error.
func parseYAML(data []byte) (root *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			root, err = nil, &textError{0, 0, fmt.Sprintf("not valid YAML: %v", r)}
		}
	}()
	var doc yaml.Node
	if err := yaml.Load(data, &doc); err != nil {
		line, column, message := YAMLMistake(err)
		return nil, &textError{line, column, message}
	}
	if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
		return doc.Content[0], nil
	}
	return nil, &textError{1, 1, "not valid YAML: no document"}
}

// YAMLMistake says where a text is wrong that the YAML parser gave up on with
// err, and how. Line and column are 0 if they are not known.
func YAMLMistake(err error) (line, column int, message string) {
	var syntax *yaml.LoadError
	if !errors.As(err, &syntax) {
		return 0, 0, fmt.Sprintf("not valid YAML: %v", err)
	}
	message = syntax.Message
	if strings.HasPrefix(message, "unknown anchor") {
		message = "unknown anchor" // without its name: "*" may have been meant as a part of a secret
	}
	if syntax.ContextMsg != "" {
		message += " " + syntax.ContextMsg
	}
	return syntax.Mark.Line, max(syntax.Mark.Column, 1), "not valid YAML: " + strings.TrimPrefix(message, "yaml: ")
}

// parseJSON parses a text that is known to be valid JSON.
func parseJSON(data []byte) (*yaml.Node, error) {
	p := jsonTree{data: data, dec: json.NewDecoder(bytes.NewReader(data)), left: nodeBudget(len(data))}
	p.dec.UseNumber()
	for i := 0; i < len(data); i++ {
		if data[i] == '\n' {
			p.ends = append(p.ends, i)
		}
	}
	return p.value(0)
}

// jsonTree builds the tree of a JSON text.
type jsonTree struct {
	data []byte
	dec  *json.Decoder
	ends []int // offsets of newlines
	left int   // values that may still come
}

// node makes the node of the next token, with its place.
func (p *jsonTree) node() *yaml.Node {
	i := int(p.dec.InputOffset())
	for i < len(p.data) && strings.IndexByte(" \t\r\n,:", p.data[i]) >= 0 {
		i++
	}
	line := sort.SearchInts(p.ends, i)
	column := i + 1
	if line > 0 {
		column = i - p.ends[line-1]
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Line: line + 1, Column: column}
}

func (p *jsonTree) value(depth int) (*yaml.Node, error) {
	n := p.node()
	if p.left--; p.left < 0 {
		return nil, &textError{n.Line, n.Column, "too many values"}
	}
	if depth > maxDepth {
		return nil, &textError{n.Line, n.Column, fmt.Sprintf("nested deeper than %d levels", maxDepth)}
	}
	token, err := p.dec.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, &textError{n.Line, n.Column, fmt.Sprintf("not valid JSON: %v", err)}
	}
	switch t := token.(type) {
	case json.Delim:
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		if t == '{' {
			n.Kind, n.Tag = yaml.MappingNode, "!!map"
		}
		for p.dec.More() { // keys and values of an object take turns
			child, err := p.value(depth + 1)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, child)
		}
		if _, err := p.dec.Token(); err != nil {
			return nil, &textError{n.Line, n.Column, fmt.Sprintf("not valid JSON: %v", err)}
		}
	case string:
		n.Tag, n.Style, n.Value = "!!str", yaml.DoubleQuotedStyle, t
	case json.Number:
		n.Tag, n.Value = "!!float", t.String()
		if strings.Trim(n.Value, "-0123456789") == "" {
			n.Tag = "!!int"
		}
	case bool:
		n.Tag, n.Value = "!!bool", fmt.Sprint(t)
	default:
		n.Tag, n.Value = "!!null", "null"
	}
	return n, nil
}
