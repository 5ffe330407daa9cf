package wire

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

// TestHeadersAreRedacted: any header of a sink can be a key, whatever its name.
func TestHeadersAreRedacted(t *testing.T) {
	s, err := structpb.NewStruct(map[string]any{
		"otlp":    map[string]any{"url": "http://a", "headers": map[string]any{"x-team": "hunter2", "Authorization": "Bearer hunter2"}},
		"api-key": "hunter2", "X-Api-Key": "hunter2",
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := protojson.Marshal(Redactor{Untyped: true}.Redact(s))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(text); strings.Contains(got, "hunter2") || !strings.Contains(got, "http://a") || !strings.Contains(got, "x-team") {
		t.Error(got)
	}
}
