package bootstrap

import (
	"bytes"
	"encoding/json"
)

// jsonPattern writes members as one JSON object, keys sorted, whose text is a
// log pattern: the percent flags in it stay as they are.
func jsonPattern(members map[string]any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(members); err != nil {
		return "" // plain values always encode
	}
	return string(bytes.TrimRight(b.Bytes(), "\n"))
}
