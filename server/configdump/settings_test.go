package configdump

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/statsd-admin/statsd-admin/admin/dump"
)

func TestMaskedSettings(t *testing.T) {
	settings, err := structpb.NewStruct(map[string]any{
		"statsd": map[string]any{"limits": map[string]any{"a": 1, "b": 2}, "ttl": "1s"},
		"sinks":  []any{"x"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for mask, want := range map[string]string{
		"bootstrap.sinks":      `{"sinks":["x"]}`,
		"bootstrap.statsd.ttl": `{"statsd":{"ttl":"1s"}}`,
		"bootstrap.statsd.limits.b,bootstrap.statsd.limits.a": `{"statsd":{"limits":{"a":1,"b":2}}}`,
		"bootstrap.statsd.limits.b,bootstrap.sinks":           `{"sinks":["x"],"statsd":{"limits":{"b":2}}}`,
		"bootstrap.statsd,bootstrap.statsd.ttl":               `{"statsd":{"limits":{"a":1,"b":2},"ttl":"1s"}}`,
		"bootstrap.statsd.ttl,bootstrap.statsd":               `{"statsd":{"limits":{"a":1,"b":2},"ttl":"1s"}}`,
		"bootstrap.none":                                      "",
		"bootstrap.sinks.x":                                   "",
		"bootstrap.statsd.ttl.x":                              "",
		"bootstrap":                                           `{"sinks":["x"],"statsd":{"limits":{"a":1,"b":2},"ttl":"1s"}}`,
		"bootstrap.statsd.ttl,bootstrap":                      `{"sinks":["x"],"statsd":{"limits":{"a":1,"b":2},"ttl":"1s"}}`,
		"sinks":                                               "",
		"bootstrap.sinks,bootstrap.none":                      "",
	} {
		// Behind a section that no mask fits, which is left out.
		sections := Source(func(bool) []Section { return []Section{{Message: &emptypb.Empty{}}, {Message: settings}} })
		var b bytes.Buffer
		err := sections.Write(&b, dump.Query{Mask: mask})
		if want == "" {
			var refused *dump.Error
			if !errors.As(err, &refused) || b.Len() > 0 {
				t.Errorf("%s: %v, and wrote %q; want a refusal", mask, err, &b)
			}
			continue
		}
		var got struct{ Configs []struct{ Value any } }
		if err := errors.Join(err, json.Unmarshal(b.Bytes(), &got)); err != nil || len(got.Configs) != 1 {
			t.Errorf("%s: %v, %s; want one section", mask, err, &b)
			continue
		}
		if text, err := json.Marshal(got.Configs[0].Value); err != nil || string(text) != want {
			t.Errorf("%s: %s, %v, want %s", mask, text, err, want)
		}
	}
}
