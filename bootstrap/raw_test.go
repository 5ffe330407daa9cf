package bootstrap

import (
	"reflect"
	"testing"
)

func TestRawValue(t *testing.T) {
	c, err := Parse("a.yaml", []byte("node: {id: n, metadata: {a: [1, 0x10, true, ~, 'x'], b: {c: 1.5}}}\nadmin: &a {}\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"admin": map[string]any{}, "node": map[string]any{"id": "n", "metadata": map[string]any{
		"a": []any{1.0, 16.0, true, nil, "x"}, "b": map[string]any{"c": 1.5}}}}
	if got := c.Root.Value(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := (Raw{}).Value(); got != nil {
		t.Errorf("an absent part has the value %v", got)
	}
}
