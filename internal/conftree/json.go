package conftree

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

// parseJSON parses one JSON value into the tree that parseYAML returns for it. Keys
// can occur twice.
func parseJSON(data []byte) (*yaml.Node, *Error) {
	p := jsonParser{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	p.dec.UseNumber()
	for i, c := range data {
		if c == '\n' {
			p.newlines = append(p.newlines, i)
		}
	}
	root, err := p.value(1)
	if err == nil {
		start := p.start()
		_, err = p.dec.Token()
		switch {
		case err == nil:
			err = p.errorf(start, "not valid JSON: more text after the value")
		case errors.Is(err, io.EOF):
			return root, nil
		}
	}
	if own, ok := errors.AsType[*Error](err); ok {
		return nil, own
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, p.errorf(len(data), "not valid JSON: unexpected end of file")
	}
	// The decoder counts from the token it was reading; parsing the whole text
	// yields the offset.
	offset := int(p.dec.InputOffset())
	var whole json.RawMessage
	if syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(data, &whole)); ok {
		offset = int(syntax.Offset) - 1
	}
	return nil, p.errorf(offset, "not valid JSON: %v", err)
}

type jsonParser struct {
	data     []byte
	dec      *json.Decoder
	newlines []int // offsets
	nodes    int
}

func (p *jsonParser) errorf(offset int, format string, args ...any) *Error {
	line, column := p.position(offset)
	return &Error{Line: line, Column: column, Message: fmt.Sprintf(format, args...)}
}

// position turns a byte offset into line and column.
func (p *jsonParser) position(offset int) (line, column int) {
	offset = max(0, min(offset, len(p.data)))
	line = sort.SearchInts(p.newlines, offset)
	if line > 0 {
		offset -= p.newlines[line-1] + 1
	}
	return line + 1, offset + 1
}

// start returns the offset of the next token.
func (p *jsonParser) start() int {
	offset := int(p.dec.InputOffset())
	for offset < len(p.data) && strings.IndexByte(" \t\r\n,:", p.data[offset]) >= 0 {
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
	if p.nodes++; p.nodes > MaxNodes {
		return nil, p.errorf(start, "more than %d values", MaxNodes)
	}
	if depth > MaxDepth {
		return nil, p.errorf(start, "nested deeper than %d levels", MaxDepth)
	}
	n := &yaml.Node{Kind: yaml.ScalarNode}
	n.Line, n.Column = p.position(start)
	switch token := token.(type) {
	case json.Delim:
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		if token == '{' {
			n.Kind, n.Tag = yaml.MappingNode, "!!map"
		}
		for p.dec.More() { // keys and values of an object alternate
			child, err := p.value(depth + 1)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, child)
		}
		if _, err := p.dec.Token(); err != nil { // the closing bracket
			return nil, err
		}
	case string:
		n.Tag, n.Value, n.Style = "!!str", token, yaml.DoubleQuotedStyle
	case json.Number:
		n.Tag, n.Value = "!!float", token.String()
		if strings.Trim(n.Value, "-0123456789") == "" {
			n.Tag = "!!int"
		}
	case bool:
		n.Tag, n.Value = "!!bool", fmt.Sprint(token)
	default:
		n.Tag, n.Value = "!!null", "null"
	}
	return n, nil
}
