package bootstrap

import (
	"fmt"
	"strings"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3" // types that a file may name
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stream/v3"
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/statsd-admin/statsd-admin/internal/conftree"
)

// parseWire parses a bootstrap message in wire form. Errors in it have no
// position.
func parseWire(name string, data []byte) (*yaml.Node, []*Error) {
	m := new(bootstrapv3.Bootstrap)
	if err := (proto.UnmarshalOptions{RecursionLimit: conftree.MaxDepth}).Unmarshal(data, m); err != nil {
		return nil, []*Error{{Position: Position{File: name}, Message: "not the message " + string(m.ProtoReflect().Descriptor().FullName()) + " in wire form"}}
	}
	return tree(name, m)
}

// plain returns the text of an error of the message parsers with ordinary spaces:
// the parsers vary their spaces so that no program relies on the text.
func plain(err error) string { return strings.ReplaceAll(err.Error(), "\u00a0", " ") }

// tree returns the nodes of the same configuration as JSON.
func tree(name string, m *bootstrapv3.Bootstrap) (*yaml.Node, []*Error) {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return nil, []*Error{{Position: Position{File: name}, Message: plain(err)}}
	}
	root, errs := parseJSON(name, text)
	for _, e := range errs {
		e.Position.Line = 0
	}
	if root == nil {
		return nil, errs
	}
	all := make(map[*yaml.Node]struct{})
	collect(root, all)
	for n := range all {
		n.Line, n.Column = 0, 0 // the text is not what somebody wrote
	}
	addUnknown(root, m.ProtoReflect())
	return root, errs
}

// addUnknown adds a node for each unknown field of m, at any level that is not
// packed, so that it is handled like an unknown field of a YAML file.
func addUnknown(n *yaml.Node, m protoreflect.Message) {
	if n.Kind != yaml.MappingNode {
		return
	}
	seen := make(map[protowire.Number]bool)
	for b := m.GetUnknown(); len(b) > 0; {
		number, _, size := protowire.ConsumeField(b) // an unmarshalled message is whole
		if b = b[size:]; !seen[number] {
			seen[number] = true
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: fmt.Sprint("field ", number)},
				&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"})
		}
	}
	for key, value := range conftree.Pairs(n) {
		fd := m.Descriptor().Fields().ByName(protoreflect.Name(key.Value))
		if fd == nil || fd.Message() == nil || fd.IsMap() {
			continue
		}
		if !fd.IsList() {
			addUnknown(value, m.Get(fd).Message())
			continue
		}
		for j, child := range value.Content {
			addUnknown(child, m.Get(fd).List().Get(j).Message())
		}
	}
}
