package conftree

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestNodeBudget(t *testing.T) {
	for size, want := range map[int]int{0: 1000, 100: 1000, 101: 1010, 499_999: 4_999_990, 500_000: 5_000_000, 64 << 20: 5_000_000} {
		if got := nodeBudget(size); got != want {
			t.Errorf("%d bytes: %d values, want %d", size, got, want)
		}
	}
}

func TestTooManyJSONValues(t *testing.T) {
	for before, ok := range map[int]bool{MaxNodes - 3: true, MaxNodes - 2: false} {
		p := jsonParser{data: []byte("[1, 2]"), dec: json.NewDecoder(strings.NewReader("[1, 2]")), nodes: before}
		if _, err := p.value(1); ok != (err == nil) || err != nil && !strings.Contains(err.Error(), "more than 5000000 values") {
			t.Errorf("3 values behind %d: %v", before, err)
		}
	}
}

// TestYAMLMessages has texts whose errors say what to change, and where if the parser
// knows.
func TestYAMLMessages(t *testing.T) {
	for text, want := range map[string]string{
		"a:\n\tb: 1\n":             "f:2:1: a tab cannot indent YAML; use spaces",
		"a: @x\n":                  "f:1:4: found character that cannot start any token while scanning for the next token",
		"a:\n\tb: 1\nc: @x\n":      "f:2:1: a tab cannot indent YAML; use spaces",
		"a: 1\n---\nb: 2\n":        "f: expected single document, found multiple",
		"a:\n - 1\n - @\t\n\tb: 2": "f:3:4: found character that cannot start any token while scanning for the next token",
	} {
		root, errs := Parse([]byte(text), YAML)
		if root != nil || len(errs) != 1 {
			t.Errorf("%q: %v, %v", text, root, errs)
		} else if got := errs[0].In("f").String() + ": " + strings.TrimPrefix(errs[0].Message, "not valid YAML: "); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestErrorPosition covers texts with the error in front of further lines.
func TestErrorPosition(t *testing.T) {
	for _, tt := range []struct{ text, json, yaml string }{
		{"", "f:1:1", "f:1:1"},
		{"# nothing\n", "f:1:1", "f:1:1"},
		{"{\"a\": [1,\n 2}\n}\n", "f:2:3", "f:2:3"},
		{"{\"a\": 1}\n{\"b\": 2}\n", "f:2:1", "f:2:1"},
	} {
		if _, errs := Parse([]byte(tt.text), JSON); len(errs) != 1 || errs[0].In("f").String() != tt.json {
			t.Errorf("JSON %q: %v, want %s", tt.text, errs, tt.json)
		}
		if _, errs := Parse([]byte(tt.text), YAML); len(errs) != 1 || errs[0].In("f").String() != tt.yaml {
			t.Errorf("YAML %q: %v, want %s", tt.text, errs, tt.yaml)
		}
	}
	if _, errs := Parse([]byte("# nothing\n"), YAML); len(errs) != 1 || errs[0].Message != NoDocument {
		t.Errorf("a comment alone: %v", errs)
	}
}
