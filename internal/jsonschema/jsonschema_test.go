package jsonschema

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	const text = `{"$defs": {"n": {"type": "integer", "minimum": 1}}, "type": "object", "required": ["v"], "additionalProperties": false,
		"properties": {
			"v": {"const": 1},
			"list": {"type": "array", "minItems": 1, "prefixItems": [{"$ref": "#/$defs/n"}], "items": {"type": ["string", "null"], "pattern": "^a"}},
			"pair": {"prefixItems": [{}, {}], "items": false},
			"form": {"anyOf": [{"type": "boolean"}, {"enum": ["x"]}]},
			"map": {"additionalProperties": {"$ref": "#/$defs/n"}},
			"odd": {"multipleOf": 2}}}`
	var schema map[string]any
	if err := json.Unmarshal([]byte(text), &schema); err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{
		`{"v": 1, "list": [2, "a", null], "pair": [1, 2], "form": true, "map": {"x": 1}}`: "",
		`[]`:                            ": not of type [object]",
		`{}`:                            "v: missing",
		`{"v": 2}`:                      "v: not 1",
		`{"v": 1, "w": 1}`:              "w: unknown key",
		`{"v": 1, "list": []}`:          "list: fewer than 1 elements",
		`{"v": 1, "list": [0]}`:         "list[0]: out of range",
		`{"v": 1, "list": [1.5]}`:       "list[0]: not of type [integer]",
		`{"v": 1, "list": [1, "b", 2]}`: "list[1]: does not match; list[2]: not of type [string null]",
		`{"v": 1, "pair": [1, 2, 3]}`:   "pair[2]: one element too many",
		`{"v": 1, "form": "y"}`:         "form: has none of the allowed forms",
		`{"v": 1, "map": {"x": "y"}}`:   "map.x: not of type [integer]",
		`{"v": 1, "odd": 3}`:            `odd: unknown keyword "multipleOf"`,
	} {
		var v any
		if err := json.Unmarshal([]byte(value), &v); err != nil {
			t.Fatal(err)
		}
		faults := Validate(schema, v)
		slices.Sort(faults)
		if got := strings.Join(faults, "; "); got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}
