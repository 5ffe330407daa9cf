package redact

import (
	"math"
	"reflect"
	"testing"
)

func TestFields(t *testing.T) {
	const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln"
	given := map[string]any{
		"team": "edge", "port": 1, "on": true, "none": nil, "raw": jwt,
		"tokens":  []any{"a", 1.5, map[string]any{"b": "c", "d": []string{"e"}}},
		"headers": map[string]any{"x-team": "a"},
		"list":    []any{map[string]any{"Password": "a", "user": "b"}, jwt, "plain"},
	}
	want := map[string]any{
		"team": "edge", "port": 1.0, "on": true, "none": nil, "raw": Mark,
		"tokens":  []any{Mark, nil, map[string]any{"b": Mark, "d": []any{Mark}}},
		"headers": map[string]any{"x-team": Mark},
		"list":    []any{map[string]any{"Password": Mark, "user": "b"}, Mark, "plain"},
	}
	if got := Fields(given); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if given["raw"] != jwt || given["list"].([]any)[1] != jwt {
		t.Error("the original changed")
	}
	if got := Plain(given); got["raw"] != jwt || got["port"] != 1.0 {
		t.Errorf("plain: %v", got)
	}
	for _, f := range []map[string]any{nil, {"a": make(chan int)}, {"a": math.NaN()}} {
		if got := Fields(f); got == nil || len(got) != 0 {
			t.Errorf("%v became %v", f, got)
		}
	}
}
