//go:build !race

package bootstrap

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// allowedIn are the names of all fields of a message, the text of which stands
// around that of a field.
func allowedIn(t *testing.T, message string) []string {
	t.Helper()
	_, err := Parse("a.yaml", fmt.Appendf(nil, message, "nothing: 1"), Options{})
	if err == nil {
		t.Fatal("a field that there is not")
	}
	_, allowed, _ := strings.Cut(err.Error(), "allowed: ")
	allowed, _, _ = strings.Cut(allowed, "\n")
	names := strings.Split(allowed, ", ")
	if len(names) < 2 {
		t.Fatalf("%s: %v", message, err)
	}
	return names
}

// TestShapes gives each field, and each two of a message in both orders, values of
// all shapes: whatever they are, there is a configuration, or errors with places.
func TestShapes(t *testing.T) {
	alone := []string{"", "null", "{}", "[]", "''", "x", "0", "-1", "1.5", "true", "1s", "[{}]", "[null]", "[[]]", "{a: b}", "{a: {}}"}
	parse := func(text string) {
		t.Helper()
		_, err := Parse("a.yaml", []byte(text), Options{})
		var errs *Errors
		if err != nil && (!errors.As(err, &errs) || len(errs.List) == 0 || errs.List[0].Position.File != "a.yaml") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, message := range []string{
		"{%s}", "{admin: {%s}}", "{stats_config: {%s}}", "{statsd: {%s}}", "{statsd: {listeners: [{%s}]}}", "{layered_runtime: {layers: [{%s}]}}", "{runtime: {%s}}",
		"{health_listeners: [{%s}]}", "{static_resources: {%s}}", "{dynamic_resources: {%s}}", "{cluster_manager: {%s}}", "{stats_sinks: [{%s}]}", "{node: {%s}}",
	} {
		names := allowedIn(t, message)
		for _, a := range names {
			for _, shape := range alone {
				parse(fmt.Sprintf(message, a+": "+shape))
			}
			for _, b := range names {
				if a != b {
					parse(fmt.Sprintf(message, a+": {}, "+b+": {}"))
				}
			}
		}
	}
}

// TestSocketPaths: a path or a name is as long as the system lets it be, and no longer.
func TestSocketPaths(t *testing.T) {
	for path, ok := range map[string]bool{
		"/s": true, "'@s'": true, "'@'": true, "s": false, "''": false,
		"/" + strings.Repeat("s", 106): true, "/" + strings.Repeat("s", 107): false,
		"'@" + strings.Repeat("s", 106) + "'": true, "'@" + strings.Repeat("s", 107) + "'": false,
	} {
		_, err := Parse("a.yaml", []byte("admin: {address: {pipe: {path: "+path+"}}}"), Options{})
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "is not a socket address: want /path or @name of at most 107 bytes") {
			t.Errorf("%s of %d bytes: %v", path, len(path), err)
		}
	}
}

// TestEveryFieldIsRead puts a wrong shape in the place of every value of a full
// configuration, one at a time. Each must be reported under its own path, so no
// setting is accepted without being looked at.
func TestEveryFieldIsRead(t *testing.T) {
	data, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc yaml.Node
	if err := yaml.Load(data, &doc); err != nil {
		t.Fatal(err)
	}
	free := []string{ // parts of any form
		"node.metadata.", "stats_sinks[0].typed_config", "layered_runtime.layers[0].static_layer.", "layered_runtime.layers[2].rtds_layer.rtds_config",
		"tracing", "application_log_config.log_format.json_format.",
	}
	var visit func(n *yaml.Node, path string)
	fields := 0
	visit = func(n *yaml.Node, path string) {
		for _, f := range free {
			if strings.HasPrefix(path, f) {
				return
			}
		}
		if path != "" {
			saved := *n
			*n = yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{{Kind: yaml.SequenceNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: "x"}}}}}
			if saved.Kind == yaml.SequenceNode {
				*n = yaml.Node{Kind: yaml.ScalarNode, Value: "x"}
			}
			text, err := yaml.Dump(&doc)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Parse("a.yaml", text, Options{}); err == nil || !strings.Contains(err.Error(), " "+path) {
				t.Errorf("%s: a wrong shape gives %v", path, err)
			}
			*n = saved
			fields++
		}
		for i, child := range n.Content {
			switch {
			case n.Kind == yaml.SequenceNode:
				visit(child, fmt.Sprintf("%s[%d]", path, i))
			case n.Kind == yaml.MappingNode && i%2 == 1:
				visit(child, join(path, n.Content[i-1].Value))
			}
		}
	}
	visit(doc.Content[0], "")
	if fields < 150 {
		t.Errorf("only %d fields were tried", fields)
	}
}
