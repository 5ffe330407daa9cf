// Package conftree is the front end of all configuration texts. YAML and JSON become
// the same trees of nodes with positions, in which aliases and merge keys are
// written out within a budget. Every failure, a panic of a parser included, is an
// [Error] with a position that shows no secret.
package conftree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Limits of one text.
const (
	MaxBytes = 64 << 20
	MaxNodes = 5_000_000 // with all aliases written out
	MaxDepth = 100

	nodesPerByte  = 10
	minNodeBudget = 1000 // small texts can use aliases freely
)

// nodeBudget returns the number of values that a text of size bytes can stand for
// once all aliases are written out.
func nodeBudget(size int) int {
	return min(MaxNodes, max(minNodeBudget, nodesPerByte*size))
}

// Position is a position in a text. Lines and columns count from 1; 0 means
// unknown, as always for messages that came as bytes.
type Position struct {
	File         string
	Line, Column int
}

// String returns file:line:column without the parts that are unknown.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Error is one error in a text.
type Error struct {
	Line, Column int        // 0 if unknown
	Node         *yaml.Node // nil if the text cannot be parsed
	Field        string     // path of the value; empty for the whole text
	Message      string
}

// Error returns the message without field and position.
func (e *Error) Error() string { return e.Message }

// In returns the position of e in a file.
func (e *Error) In(file string) Position { return Position{file, e.Line, e.Column} }

// NoDocument is the message about a YAML text without values.
const NoDocument = "not valid YAML: no document"

// Format is the format of a text.
type Format uint8

// The formats.
const (
	Detect Format = iota // valid JSON in braces is JSON, whose escapes YAML does not know
	YAML
	JSON
)

// Parse parses a text with one value into a tree without aliases and merge keys. See
// [Resolve].
func Parse(data []byte, f Format) (*yaml.Node, []*Error) {
	if len(data) > MaxBytes {
		return nil, []*Error{{Message: fmt.Sprintf("%d bytes are more than the limit of %d", len(data), MaxBytes)}}
	}
	if f == Detect {
		f = YAML
		if bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) && json.Valid(data) {
			f = JSON
		}
	}
	parse := parseYAML
	if f == JSON {
		parse = parseJSON
	}
	root, err := parse(data)
	if err != nil {
		return nil, []*Error{err}
	}
	return Resolve(root, len(data))
}

// parseYAML parses one YAML document. The tree can hold aliases and merge keys.
func parseYAML(data []byte) (root *yaml.Node, err *Error) {
	defer func() {
		if r := recover(); r != nil {
			root, err = nil, &Error{Message: fmt.Sprintf("not valid YAML: parser gave up: %v", r)}
		}
	}()
	var doc yaml.Node
	if err := yaml.Load(data, &doc); err != nil {
		return nil, yamlError(err, data)
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, &Error{Line: 1, Column: 1, Message: NoDocument}
	}
	return doc.Content[0], nil
}

// yamlError returns an error of the YAML parser of data with its position.
func yamlError(err error, data []byte) *Error {
	if list, ok := errors.AsType[*yaml.LoadErrors](err); ok && len(list.Errors) == 1 && strings.Contains(list.Errors[0].Message, "no documents in stream") {
		return &Error{Line: 1, Column: 1, Message: NoDocument}
	}
	syntax, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		return &Error{Message: fmt.Sprintf("not valid YAML: %v", err)}
	}
	message := syntax.Message
	if strings.HasPrefix(message, "unknown anchor") {
		message = "unknown anchor" // the name could be a part of a secret that begins with "*"
	}
	if strings.Contains(message, "cannot start any token") && tabIndents(data, syntax.Mark.Line) {
		message = "a tab cannot indent YAML; use spaces"
	} else if syntax.ContextMsg != "" {
		message += " " + syntax.ContextMsg
	}
	return &Error{Line: syntax.Mark.Line, Column: max(syntax.Mark.Column, 1), Message: "not valid YAML: " + strings.TrimPrefix(message, "yaml: ")}
}

// tabIndents reports whether the indentation of a line, counted from 1, has a tab.
func tabIndents(data []byte, line int) bool {
	for text := range bytes.Lines(data) {
		if line--; line == 0 {
			return bytes.Contains(text[:len(text)-len(bytes.TrimLeft(text, " \t"))], []byte{'\t'})
		}
	}
	return false
}
