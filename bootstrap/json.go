package bootstrap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"

	"go.yaml.in/yaml/v4"
)

// parseJSON parses one JSON value into the same tree that a YAML file gives,
// with positions. An empty text is an empty mapping.
func parseJSON(name string, data []byte) (*yaml.Node, []*Error) {
	p := jsonParser{name: name, data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	p.dec.UseNumber()
	for i, c := range data {
		if c == '\n' {
			p.newlines = append(p.newlines, int64(i))
		}
	}
	if len(data) > maxFileBytes {
		p.fail(0, "%d bytes are more than the limit of %d", len(data), maxFileBytes)
		return nil, p.errs
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: 1, Column: 1}, nil
	}
	root, err := p.value(1)
	if err == nil {
		start := p.start()
		if _, extra := p.dec.Token(); extra == nil {
			p.fail(start, "not valid JSON: more text after the value")
		} else if !errors.Is(extra, io.EOF) {
			err = extra
		}
	}
	if err != nil && len(p.errs) == 0 {
		offset := p.dec.InputOffset()
		// The decoder counts from somewhere within; the text as a whole has the place.
		var whole json.RawMessage
		var syntax *json.SyntaxError
		if errors.As(json.Unmarshal(data, &whole), &syntax) {
			offset = syntax.Offset - 1
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("unexpected end of file")
			offset = int64(len(data))
		}
		p.fail(offset, "not valid JSON: %v", err)
	}
	if len(p.errs) > 0 {
		return nil, p.errs
	}
	return root, nil
}

type jsonParser struct {
	name     string
	data     []byte
	dec      *json.Decoder
	newlines []int64
	nodes    int
	hidden   int // above 0 inside a field whose values are secrets
	errs     []*Error
}

// errStop ends parsing after an error that was already noted.
var errStop = errors.New("stop")

// fail notes an error at a byte offset.
func (p *jsonParser) fail(offset int64, format string, args ...any) {
	line, column := p.place(offset)
	p.errs = append(p.errs, &Error{Position: Position{p.name, line, column}, Message: fmt.Sprintf(format, args...)})
}

// place turns a byte offset into line and column.
func (p *jsonParser) place(offset int64) (line, column int) {
	offset = max(0, min(offset, int64(len(p.data))))
	line = sort.Search(len(p.newlines), func(i int) bool { return p.newlines[i] >= offset })
	lineStart := int64(0)
	if line > 0 {
		lineStart = p.newlines[line-1] + 1
	}
	return line + 1, int(offset-lineStart) + 1
}

// start returns the offset of the next token.
func (p *jsonParser) start() int64 {
	offset := p.dec.InputOffset()
	for offset < int64(len(p.data)) && bytes.IndexByte([]byte(" \t\r\n,:"), p.data[offset]) >= 0 {
		offset++
	}
	return offset
}

func (p *jsonParser) value(depth int) (*yaml.Node, error) {
	start := p.start()
	token, err := p.dec.Token()
	if err != nil {
		return nil, err
	}
	if p.nodes++; p.nodes > maxNodes {
		p.fail(start, "more than %d values", maxNodes)
		return nil, errStop
	}
	if depth > maxDepth {
		p.fail(start, "nested deeper than %d levels", maxDepth)
		return nil, errStop
	}
	n := &yaml.Node{Kind: yaml.ScalarNode}
	n.Line, n.Column = p.place(start)
	switch token := token.(type) {
	case json.Delim:
		if token == '{' {
			n.Kind, n.Tag = yaml.MappingNode, "!!map"
			err = p.members(n, depth)
		} else {
			n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
			err = p.elements(n, depth)
		}
	case string:
		n.Tag, n.Value, n.Style = "!!str", token, yaml.DoubleQuotedStyle
	case json.Number:
		n.Tag, n.Value = "!!float", token.String()
		if _, err := token.Int64(); err == nil {
			n.Tag = "!!int"
		}
	case bool:
		n.Tag, n.Value = "!!bool", fmt.Sprint(token)
	default:
		n.Tag, n.Value = "!!null", "null"
	}
	return n, err
}

func (p *jsonParser) elements(n *yaml.Node, depth int) error {
	for p.dec.More() {
		child, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		n.Content = append(n.Content, child)
	}
	_, err := p.dec.Token() // the closing bracket
	return err
}

func (p *jsonParser) members(n *yaml.Node, depth int) error {
	first := make(map[string]int)
	for p.dec.More() {
		start := p.start()
		key, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		if line, dup := first[key.Value]; dup {
			p.fail(start, "duplicate key %s, first used in line %d", quoteKey(key.Value, p.hidden > 0), line)
		} else {
			first[key.Value] = key.Line
		}
		secret := sensitive(snakeCase(key.Value))
		if secret {
			p.hidden++
		}
		value, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		if secret {
			p.hidden--
		}
		n.Content = append(n.Content, key, value)
	}
	_, err := p.dec.Token() // the closing brace
	return err
}
