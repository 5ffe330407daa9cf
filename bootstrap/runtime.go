package bootstrap

import (
	"fmt"

	"go.yaml.in/yaml/v4"

	"github.com/statsd-admin/statsd-admin/internal/conftree"
	"github.com/statsd-admin/statsd-admin/server/layers"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// The kinds of runtime layers, as the file names them.
const (
	staticLayer = "static_layer"
	diskLayer   = "disk_layer"
	adminLayer  = "admin_layer"
	rtdsLayer   = "rtds_layer"
)

// RuntimeLayer is one layer of runtime values.
type RuntimeLayer struct {
	layers.Layer

	RTDSName   string               // resource name of an RTDS layer
	RTDSSource *config.ConfigSource // where it comes from
}

func newLayer(name string, kind layers.Kind) RuntimeLayer {
	return RuntimeLayer{Layer: layers.Layer{Name: name, Kind: kind}}
}

// maxNameBytes bounds names of things in a configuration; from longName on a
// warning is given.
const (
	maxNameBytes = 1024
	longName     = 60
)

func (c *Config) setLayeredRuntime(d *decoder, n *yaml.Node, path string) {
	var all []RuntimeLayer
	seen := d.message(n, path, []field{
		{"layers", list(&all, func(l *RuntimeLayer) setter { return l.set })},
	})
	c.Runtime = all
	if len(all) == 0 {
		c.Runtime = []RuntimeLayer{newLayer("", layers.Admin)} // present but empty: one unnamed admin layer
	}
	names, admins := make(map[string]bool), 0
	for i, l := range all {
		at := fmt.Sprintf("%s.layers[%d]", path, i)
		node := seen["layers"].Content[i]
		switch {
		case l.Name == "":
		case names[l.Name]:
			d.errorf(node, at, "Duplicate layer name: %s", l.Name)
		}
		names[l.Name] = true
		if l.Kind == layers.Admin {
			if admins++; admins == 2 {
				d.errorf(node, at, "Too many admin layers specified in LayeredRuntime, at most one may be specified")
			}
		}
	}
}

func (l *RuntimeLayer) set(d *decoder, n *yaml.Node, path string) {
	seen := d.message(n, path, []field{
		{"name", text(&l.Name)},
		{"static_layer", l.setStatic},
		{"disk_layer", func(d *decoder, n *yaml.Node, path string) {
			d.message(n, path, []field{
				{"symlink_root", text(&l.SymlinkRoot)},
				{"subdirectory", text(&l.Subdirectory)},
				{"append_service_cluster", boolean(&l.AppendServiceCluster)},
			})
		}},
		{"admin_layer", nested()},
		{"rtds_layer", nested(
			field{"name", text(&l.RTDSName)},
			field{"rtds_config", part(d.messages, &l.RTDSSource, (*decode.Decoder).ConfigSourceNode)},
		)},
	})
	d.require(n, path, seen, "name")
	if at, ok := seen["name"]; ok {
		checkName(d, at, join(path, "name"), l.Name)
	}
	kinds := []string{staticLayer, diskLayer, adminLayer, rtdsLayer}
	kind := d.oneOf(n, path, seen, false, kinds...)
	l.Kind = map[string]layers.Kind{staticLayer: layers.Static, diskLayer: layers.Disk, adminLayer: layers.Admin, rtdsLayer: layers.RTDS}[kind]
	for _, k := range kinds {
		if _, ok := seen[k]; ok || d.misspelled(path, k) {
			return
		}
	}
	if n.Kind == yaml.MappingNode {
		d.errorf(n, path, "layer specifier not set; one of static_layer, disk_layer, admin_layer, rtds_layer must be set")
	}
}

func (l *RuntimeLayer) setStatic(d *decoder, n *yaml.Node, path string) {
	structure(&l.Values)(d, n, path)
	checkRuntimeValues(d, n, path, "")
}

// checkRuntimeValues reports lists and nulls: no runtime value has these forms.
func checkRuntimeValues(d *decoder, n *yaml.Node, path, prefix string) {
	if n.Kind != yaml.MappingNode {
		return
	}
	for name, value := range conftree.Pairs(n) {
		key := join(prefix, conftree.Key(name.Value, false))
		switch {
		case value.Kind == yaml.MappingNode:
			checkRuntimeValues(d, value, path, key)
		case value.Kind == yaml.SequenceNode, conftree.IsNull(value):
			d.errorf(value, join(path, key), "Invalid runtime entry value for %s", key)
		}
	}
}

// setRuntime reads the older form and translates it to layers.
func (c *Config) setRuntime(d *decoder, n *yaml.Node, path string) {
	var root, subdirectory, override string
	base := newLayer("base", layers.Static)
	d.message(n, path, []field{
		{"symlink_root", text(&root)},
		{"subdirectory", text(&subdirectory)},
		{"override_subdirectory", text(&override)},
		{"base", base.setStatic},
	})
	c.Runtime = []RuntimeLayer{base}
	if root != "" {
		tree, over := newLayer("root", layers.Disk), newLayer("override", layers.Disk)
		tree.SymlinkRoot, tree.Subdirectory = root, subdirectory
		over.SymlinkRoot, over.Subdirectory, over.AppendServiceCluster = root, override, true
		c.Runtime = append(c.Runtime, tree, over)
	}
	c.Runtime = append(c.Runtime, newLayer("admin", layers.Admin))
}

// checkName reports a name that is too long.
func checkName(d *decoder, n *yaml.Node, path, name string) {
	switch {
	case len(name) > maxNameBytes:
		d.errorf(n, path, "name of %d bytes is longer than %d", len(name), maxNameBytes)
	case len(name) > longName:
		d.warnf(n, path, "name of %d bytes; names up to %d are advised", len(name), longName)
	}
}
