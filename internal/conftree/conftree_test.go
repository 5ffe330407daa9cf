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
	p := jsonParser{data: []byte("[1, 2]"), dec: json.NewDecoder(strings.NewReader("[1, 2]")), nodes: MaxNodes - 2}
	if _, err := p.value(1); err == nil || !strings.Contains(err.Error(), "more than 5000000 values") {
		t.Errorf("one value too many: %v", err)
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
