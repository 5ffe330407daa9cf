package decode

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/statsd-admin/statsd-admin/internal/conftree"
)

// maxErrors is the number of errors that one message reports.
const maxErrors = 100

// Position is a position in a text. Lines and columns count from 1; 0 means
// unknown, as always for messages that came as bytes.
type Position = conftree.Position

// Kind classifies errors, for statistics.
type Kind uint8

// The kinds of errors.
const (
	Malformed    Kind = iota // not decodable: syntax, a wrong type, a limit of the format
	UnknownField             // a field that the message does not have
	BadValue                 // a field breaks its own rule
	Conflict                 // fields contradict each other or the loaded configuration
)

// Error is one error in a message.
type Error struct {
	Position Position
	Kind     Kind
	Resource string // `cluster "name"`, `cluster #3` or `load assignment "name"`; can be empty
	Field    string // path in the names of the original form; empty for the whole message
	Message  string // includes the value, unless it is sensitive, and the allowed values
}

// Error returns the error on one line.
func (e *Error) Error() string {
	var b strings.Builder
	if p := e.Position.String(); p != "" {
		b.WriteString(p)
		b.WriteString(": ")
	}
	if e.Resource != "" {
		b.WriteString(e.Resource)
		b.WriteString(": ")
	}
	if e.Field != "" {
		b.WriteString(e.Field)
		b.WriteString(": ")
	}
	b.WriteString(e.Message)
	return b.String()
}

// Errors are all errors of one or several messages.
type Errors struct {
	List    []*Error
	Dropped int // errors beyond the first 100 of a message
}

// Error returns one line per error.
func (e *Errors) Error() string {
	lines := make([]string, len(e.List), len(e.List)+1)
	for i, err := range e.List {
		lines[i] = err.Error()
	}
	if e.Dropped > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", e.Dropped))
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find an [Error].
func (e *Errors) Unwrap() []error {
	list := make([]error, len(e.List))
	for i, err := range e.List {
		list[i] = err
	}
	return list
}

// Count returns the number of errors of kind k.
func (e *Errors) Count(k Kind) int {
	n := 0
	for _, err := range e.List {
		if err.Kind == k {
			n++
		}
	}
	return n
}

// report collects the errors and warnings of one message.
type report struct {
	resource     string
	source       Source
	root         *yaml.Node               // the text; nil for bytes
	originalPath func(path string) string // returns a path in the names of the original form; can be nil
	hidden       int                      // above 0 inside a field with secrets

	errs     []*Error
	dropped  int
	warnings []*Error
	unknown  int // number of accepted unknown fields
}

// errorf adds an error in the field at path.
func (r *report) errorf(kind Kind, path, format string, args ...any) {
	r.add(&Error{Kind: kind, Field: path, Message: fmt.Sprintf(format, args...)})
}

// nodeErrorf adds an error with the position of a node.
func (r *report) nodeErrorf(kind Kind, n *yaml.Node, path, format string, args ...any) {
	r.add(&Error{Position: r.source.position(n), Kind: kind, Field: path, Message: fmt.Sprintf(format, args...)})
}

func (r *report) add(e *Error) {
	if len(r.errs) == maxErrors {
		r.dropped++
		return
	}
	r.errs = append(r.errs, r.finish(e))
}

// parsed adds the errors of a text or a tree.
func (r *report) parsed(errs []*conftree.Error) {
	for _, e := range errs {
		at := e.In(r.source.File)
		if e.Node != nil {
			at = r.source.position(e.Node)
		}
		r.add(&Error{Position: at, Kind: Malformed, Field: e.Field, Message: e.Message})
	}
}

// said reports whether there is an error in the field at path.
func (r *report) said(path string) bool {
	if r.originalPath != nil {
		path = r.originalPath(path)
	}
	return slices.ContainsFunc(r.errs, func(e *Error) bool { return e.Field == path })
}

// warnf adds a warning.
func (r *report) warnf(path, format string, args ...any) {
	r.warn(&Error{Kind: BadValue, Field: path, Message: fmt.Sprintf(format, args...)})
}

func (r *report) warn(e *Error) {
	if len(r.warnings) < maxErrors {
		r.warnings = append(r.warnings, r.finish(e))
	}
}

// finish sets the resource, the original field names and the position of e.
func (r *report) finish(e *Error) *Error {
	e.Resource = r.resource
	if r.originalPath != nil {
		e.Field = r.originalPath(e.Field)
	}
	if e.Position == (Position{}) {
		e.Position = r.position(e.Field)
	}
	return e
}

// position returns the position of path or of the nearest enclosing field.
func (r *report) position(path string) Position {
	if r.root == nil {
		return Position{File: r.source.File}
	}
	return r.source.position(locate(r.root, path))
}

// err returns all errors, nil if there are none.
func (r *report) err() error {
	if len(r.errs) == 0 {
		return nil
	}
	return &Errors{List: r.errs, Dropped: r.dropped}
}
