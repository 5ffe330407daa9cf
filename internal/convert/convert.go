package convert

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/statsd-admin/statsd-admin/internal/conftree"
	"github.com/statsd-admin/statsd-admin/internal/oneline"
)

// Program is a program whose configuration can be converted.
type Program string

// The programs.
const (
	Gostatsd Program = "gostatsd" // TOML, YAML or JSON
	Statsd   Program = "statsd"   // StatsD for Node.js, or its proxy: a JavaScript object
	Telegraf Program = "telegraf" // TOML
	Brubeck  Program = "brubeck"  // JSON
)

// Programs returns all programs.
func Programs() []Program { return []Program{Gostatsd, Statsd, Telegraf, Brubeck} }

// MaxBytes limits the size of a file.
const MaxBytes = 1 << 20

// maxErrors limits the errors of a file.
const maxErrors = 100

// Note names a setting that has no equivalent.
type Note struct {
	Position conftree.Position
	Field    string // path of the setting, such as graphite.globalSuffix
	Text     string // why, or its effect on the result
}

// String returns the note on one line.
func (n Note) String() string { return fmt.Sprintf("%s: %s: %s", n.Position, n.Field, n.Text) }

// Error is an error in a file.
type Error struct {
	Position conftree.Position
	Field    string // "" for an error of syntax
	Text     string
}

// Error returns the error with its position.
func (e *Error) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("%s: %s", e.Position, e.Text)
	}
	return fmt.Sprintf("%s: %s: %s", e.Position, e.Field, e.Text)
}

// Result is a converted configuration.
type Result struct {
	YAML  []byte
	Notes []Note // in the order of the file
}

// conversion is a running conversion.
type conversion struct {
	file    string
	out     *section
	notes   []Note
	errs    []error
	sinks   map[string]int // by name
	targets map[target]bool

	lookup func(string) (string, bool) // environment variables; nil: texts have none
}

// Convert converts the configuration of a program. The name of the file selects its
// syntax if there are several, and is in the positions of notes and errors. lookup
// returns an environment variable, to which only texts of Telegraf refer. An error
// joins an [Error] for each setting that cannot be read.
func Convert(from Program, file string, text []byte, lookup func(string) (string, bool)) (*Result, error) {
	c := &conversion{file: oneline.Clean(file), sinks: map[string]int{}, targets: map[target]bool{}}
	if from == Telegraf {
		c.lookup = lookup
	}
	parse, convert := c.program(from, file)
	if parse == nil {
		return nil, fmt.Errorf("convert: unknown program %q", from)
	}
	if len(text) > MaxBytes {
		return nil, &Error{Position: conftree.Position{File: c.file}, Text: fmt.Sprintf("%d bytes are more than the limit of %d", len(text), MaxBytes)}
	}
	tree, errs := parse(bytes.TrimPrefix(text, []byte("\ufeff"))) // a byte order mark, as editors on Windows write
	for _, e := range errs {
		c.errs = append(c.errs, &Error{Position: e.In(c.file), Field: e.Field, Text: e.Message})
	}
	if len(errs) > 0 {
		return nil, errors.Join(c.errs...)
	}
	root := c.newObject(tree, "")
	if root == nil {
		return nil, errors.Join(c.errs...)
	}
	c.out = new(section)
	convert(root)
	root.rest(nil, c.out)
	if len(c.errs) > 0 {
		return nil, errors.Join(c.errs...)
	}
	slices.SortStableFunc(c.notes, func(a, b Note) int {
		return cmp.Or(cmp.Compare(a.Position.Line, b.Position.Line), cmp.Compare(a.Position.Column, b.Position.Column))
	})
	head := fmt.Sprintf("# Converted from the configuration of %s in %s.\n", from, c.file)
	if n := len(c.notes); n > 0 {
		head += fmt.Sprintf("# Settings without an equivalent: %d. Each has a comment with its line in that file.\n", n)
	}
	return &Result{YAML: c.out.append([]byte(head), 0), Notes: c.notes}, nil
}

// program returns the parser and the converter for a file.
func (c *conversion) program(from Program, file string) (parse func([]byte) (*yaml.Node, []*conftree.Error), convert func(*object)) {
	format := func(f conftree.Format) func([]byte) (*yaml.Node, []*conftree.Error) {
		return func(text []byte) (*yaml.Node, []*conftree.Error) { return conftree.Parse(text, f) }
	}
	switch from {
	case Gostatsd:
		switch strings.ToLower(filepath.Ext(file)) {
		case ".yaml", ".yml":
			return format(conftree.YAML), c.gostatsd
		case ".json":
			return format(conftree.JSON), c.gostatsd
		}
		return parseTOML, c.gostatsd
	case Statsd:
		return parseLiteral, c.statsd
	case Telegraf:
		return parseTOML, c.telegraf
	case Brubeck:
		return format(conftree.JSON), c.brubeck
	}
	return nil, nil
}

// errorf adds an error at n.
func (c *conversion) errorf(n *yaml.Node, field, format string, args ...any) {
	if len(c.errs) < maxErrors {
		c.errs = append(c.errs, &Error{Position: c.at(n), Field: field, Text: fmt.Sprintf(format, args...)})
	}
}

// notef adds a note about the setting at n, and a comment where the result is.
func (c *conversion) notef(n *yaml.Node, field string, at *section, format string, args ...any) {
	note := Note{Position: c.at(n), Field: field, Text: fmt.Sprintf(format, args...)}
	c.notes = append(c.notes, note)
	at.comment(fmt.Sprintf("%s (line %d): %s", note.Field, note.Position.Line, note.Text))
}

func (c *conversion) at(n *yaml.Node) conftree.Position {
	return conftree.Position{File: c.file, Line: n.Line, Column: n.Column}
}
