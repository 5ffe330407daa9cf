// Package jsonschema validates values by the JSON Schemas of the repository, in
// tests. It knows the keywords that these schemas have, and reports others.
package jsonschema

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// keywords are the known keywords, including ones without effect on values.
const keywords = " $schema $id title $defs $ref description type properties additionalProperties required" +
	" items prefixItems minItems enum const anyOf minimum maximum not pattern "

// Load reads a schema.
func Load(t testing.TB, path string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return root
}

// Check fails the test unless text is a JSON value that the schema at path allows.
func Check(t testing.TB, path string, text []byte) {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Errorf("%v in %.200q", err, text)
		return
	}
	for _, fault := range Validate(Load(t, path), v) {
		t.Errorf("%s does not allow %s in %.200q", path, fault, text)
	}
}

// Validate returns the faults of v, a value as of encoding/json, by a schema. Each
// begins with the path of the faulty value.
func Validate(root map[string]any, v any) []string {
	return (&validator{root}).validate(root, v, "")
}

type validator struct{ root map[string]any }

func (va *validator) validate(schema map[string]any, v any, path string) (faults []string) {
	fault := func(format string, args ...any) {
		faults = append(faults, strings.TrimPrefix(path, ".")+": "+fmt.Sprintf(format, args...))
	}
	for word := range schema {
		if !strings.Contains(keywords, " "+word+" ") {
			fault("unknown keyword %q", word)
		}
	}
	if ref, ok := schema["$ref"].(string); ok {
		defs := va.root["$defs"].(map[string]any)
		faults = append(faults, va.validate(defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any), v, path)...)
	}
	if types := listOf(schema["type"]); types != nil && !slices.ContainsFunc(types, func(name any) bool { return isOf(v, name) }) {
		fault("not of type %v", types)
		return faults
	}
	if words, ok := schema["enum"].([]any); ok && !slices.Contains(words, v) {
		fault("not a listed value")
	}
	if want, ok := schema["const"]; ok && v != want {
		fault("not %v", want)
	}
	if forms, ok := schema["anyOf"].([]any); ok && !slices.ContainsFunc(forms, func(form any) bool {
		return len(va.validate(form.(map[string]any), v, path)) == 0
	}) {
		fault("has none of the allowed forms")
	}
	switch v := v.(type) {
	case map[string]any:
		faults = append(faults, va.object(schema, v, path)...)
	case []any:
		faults = append(faults, va.list(schema, v, path)...)
	case string:
		if pattern, ok := schema["pattern"].(string); ok && !regexp.MustCompile(pattern).MatchString(v) {
			fault("does not match")
		}
	case float64:
		least, from := schema["minimum"].(float64)
		most, to := schema["maximum"].(float64)
		if from && v < least || to && v > most {
			fault("out of range")
		}
		if schema["not"] != nil && v == 0 {
			fault("excluded value")
		}
	}
	return faults
}

func (va *validator) object(schema, v map[string]any, path string) (faults []string) {
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range listOf(schema["required"]) {
		if _, ok := v[name.(string)]; !ok {
			faults = append(faults, strings.TrimPrefix(path+"."+name.(string), ".")+": missing")
		}
	}
	for name, value := range v {
		at := path + "." + name
		if child, ok := properties[name].(map[string]any); ok {
			faults = append(faults, va.validate(child, value, at)...)
		} else if child, ok := schema["additionalProperties"].(map[string]any); ok {
			faults = append(faults, va.validate(child, value, at)...)
		} else if schema["additionalProperties"] == false {
			faults = append(faults, strings.TrimPrefix(at, ".")+": unknown key")
		}
	}
	return faults
}

func (va *validator) list(schema map[string]any, v []any, path string) (faults []string) {
	first := listOf(schema["prefixItems"])
	if least, ok := schema["minItems"].(float64); ok && float64(len(v)) < least {
		faults = append(faults, fmt.Sprintf("%s: fewer than %v elements", strings.TrimPrefix(path, "."), least))
	}
	for i, value := range v {
		at := fmt.Sprintf("%s[%d]", path, i)
		if i < len(first) {
			faults = append(faults, va.validate(first[i].(map[string]any), value, at)...)
		} else if items, ok := schema["items"].(map[string]any); ok {
			faults = append(faults, va.validate(items, value, at)...)
		} else if schema["items"] == false {
			faults = append(faults, strings.TrimPrefix(at, ".")+": one element too many")
		}
	}
	return faults
}

// listOf returns v as a list: a single name is a list of one.
func listOf(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	default:
		return []any{v}
	}
}

// isOf reports whether v is of the type with a name.
func isOf(v, name any) bool {
	if v == nil {
		return name == "null"
	}
	switch reflect.ValueOf(v).Kind() {
	case reflect.Map:
		return name == "object"
	case reflect.Slice:
		return name == "array"
	case reflect.String:
		return name == "string"
	case reflect.Bool:
		return name == "boolean"
	default:
		return name == "number" || name == "integer" && v.(float64) == float64(int64(v.(float64)))
	}
}
