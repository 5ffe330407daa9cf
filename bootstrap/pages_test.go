package bootstrap

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/jsonschema"
	"go.yaml.in/yaml/v4"
)

// codeBlocks returns the blocks of code of a page by the number of their first line:
// fenced ones, and paragraphs that are indented by at least four spaces.
func codeBlocks(page string) map[int]string {
	blocks := make(map[int]string)
	fenced, first := false, 0
	for i, line := range strings.Split(page+"\n", "\n") {
		text := strings.TrimSpace(line)
		switch indented := strings.HasPrefix(line, "    "); {
		case strings.HasPrefix(text, "```"):
			fenced, first = !fenced, 0
		case fenced || indented || text == "" && first > 0:
			if first == 0 {
				first = i + 1
			}
			blocks[first] += line + "\n"
		default:
			first = 0
		}
	}
	return blocks
}

// configuration returns the block as a configuration, and reports whether it is one: YAML
// with a field of the bootstrap at its top.
func configuration(block string, fields map[string]any) (string, bool) {
	lines := strings.Split(block, "\n")
	indent := lines[0][:len(lines[0])-len(strings.TrimLeft(lines[0], " "))]
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, indent)
	}
	block = strings.Join(lines, "\n")
	var top map[string]any
	if err := yaml.Unmarshal([]byte(block), &top); err != nil {
		for field := range fields { // it looks like one
			if strings.HasPrefix(block, field+":\n") {
				return block, true
			}
		}
		return "", false
	}
	for name := range top {
		if _, ok := fields[name]; ok {
			return block, true
		}
	}
	return "", false
}

// TestConfigurationsOfThePagesAreValid loads each configuration that a page shows, and
// compares it with the schema.
func TestConfigurationsOfThePagesAreValid(t *testing.T) {
	schema := jsonschema.Load(t, "../docs/bootstrap.schema.json")
	fields := schema["properties"].(map[string]any)
	pages, _ := filepath.Glob("../docs/*.md")
	below, _ := filepath.Glob("../docs/*/*.md")
	seen := make(map[string]int)
	for _, page := range append(append(pages, below...), "../README.md", "../SECURITY.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for line, block := range codeBlocks(string(text)) {
			config, ok := configuration(block, fields)
			if !ok {
				continue
			}
			seen[filepath.Base(page)]++
			for _, fault := range jsonschema.Validate(schema, parsed(t, config)) {
				t.Errorf("%s:%d: the schema does not allow it: %s", page, line, fault)
			}
			c, err := Parse("page.yaml", []byte(config), Options{})
			var errs *Errors
			if errors.As(err, &errs) {
				errs.List = slices.DeleteFunc(errs.List, func(e *Error) bool { return strings.HasSuffix(e.Message, "no such file or directory") })
				if len(errs.List) > 0 {
					t.Errorf("%s:%d: %v", page, line, err)
				}
			} else if err != nil || len(c.Warnings) > 0 {
				t.Errorf("%s:%d: %v, warnings %q", page, line, err, c.Warnings)
			}
		}
	}
	for page, least := range map[string]int{"statsd.md": 4, "sinks.md": 6, "scaling.md": 2, "migration.md": 1, "security.md": 6, "clusters.md": 1} {
		if seen[page] < least {
			t.Errorf("found %d configurations in %s, want at least %d", seen[page], page, least)
		}
	}
}
