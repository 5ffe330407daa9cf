// Package conftree parses configuration texts. YAML and JSON become the same trees
// of nodes with positions, and every failure, a panic of a parser included, is an
// [Error] with a position that quotes no part of the text, as that can be a secret.
package conftree

import (
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

// NodeBudget returns the number of values that a text of size bytes can stand for
// once all aliases are written out.
func NodeBudget(size int) int {
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

// Error reports a text that cannot be parsed. Line and Column are 0 if they are
// unknown.
type Error struct {
	Line, Column int
	Message      string
}

// Error returns the message without the position.
func (e *Error) Error() string { return e.Message }

// ErrorPosition returns the position of err in file, which is that of the file
// itself unless err comes from this package.
func ErrorPosition(file string, err error) Position {
	p := Position{File: file}
	if e, ok := errors.AsType[*Error](err); ok {
		p.Line, p.Column = e.Line, e.Column
	} else if errors.Is(err, ErrNoDocument) {
		p.Line, p.Column = 1, 1
	}
	return p
}

// ErrNoDocument is returned by [ParseYAML] for a text without values.
var ErrNoDocument = errors.New("not valid YAML: no document")

// ParseYAML parses one YAML document. The tree can hold aliases and merge keys.
func ParseYAML(data []byte) (root *yaml.Node, err error) {
	if err := checkSize(data); err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil {
			root, err = nil, &Error{Message: fmt.Sprintf("not valid YAML: parser gave up: %v", r)}
		}
	}()
	var doc yaml.Node
	if err := yaml.Load(data, &doc); err != nil {
		return nil, yamlError(err)
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, ErrNoDocument
	}
	return doc.Content[0], nil
}

func checkSize(data []byte) error {
	if len(data) > MaxBytes {
		return &Error{Message: fmt.Sprintf("%d bytes are more than the limit of %d", len(data), MaxBytes)}
	}
	return nil
}

// yamlError returns an error of the YAML parser with its position.
func yamlError(err error) error {
	if list, ok := errors.AsType[*yaml.LoadErrors](err); ok && len(list.Errors) == 1 && strings.Contains(list.Errors[0].Message, "no documents in stream") {
		return ErrNoDocument
	}
	syntax, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		return &Error{Message: fmt.Sprintf("not valid YAML: %v", err)}
	}
	message := syntax.Message
	if strings.HasPrefix(message, "unknown anchor") {
		message = "unknown anchor" // the name could be a part of a secret that begins with "*"
	}
	if syntax.ContextMsg != "" {
		message += " " + syntax.ContextMsg
	}
	return &Error{syntax.Mark.Line, max(syntax.Mark.Column, 1), "not valid YAML: " + strings.TrimPrefix(message, "yaml: ")}
}
