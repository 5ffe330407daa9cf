package configdump

import (
	"encoding/json"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/statsd-admin/statsd-admin/internal/wire"
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
		got := ""
		if masked := maskedSettings(settings, wire.ParseMask(mask)); masked != nil {
			text, err := json.Marshal(masked.AsMap())
			if err != nil {
				t.Fatal(err)
			}
			got = string(text)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", mask, got, want)
		}
	}
}
