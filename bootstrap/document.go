package bootstrap

import (
	"bytes"

	"go.yaml.in/yaml/v4"

	"github.com/statsd-admin/statsd-admin/internal/conftree"
)

// document is one parsed tree, or several merged into one, without aliases.
// Nodes may be shared between places and must not be changed.
type document struct {
	root *yaml.Node
	file string
	// overlay holds the nodes that came from the text merged over the file,
	// and overlayFile is the name to print for them.
	overlay     map[*yaml.Node]struct{}
	overlayFile string

	files    []fileField // that the values of fields name
	contents []fileContent
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
	return parseTree(name, data, conftree.YAML)
}

// parseJSON parses one JSON value.
func parseJSON(name string, data []byte) (*yaml.Node, []*Error) {
	return parseTree(name, data, conftree.JSON)
}

// parseTree parses a text. An empty one is an empty mapping.
func parseTree(name string, data []byte, format conftree.Format) (*yaml.Node, []*Error) {
	root, errs := conftree.Parse(data, format)
	if root == nil && (errs[0].Message == conftree.NoDocument || len(bytes.TrimSpace(data)) == 0) {
		return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: 1, Column: 1}, nil
	}
	var list []*Error
	for _, e := range errs {
		list = append(list, &Error{Position: e.In(name), Message: e.Message})
	}
	return root, list
}
