package redact

import "encoding/json"

// Fields returns a copy of free-form fields, as encoding/json decodes them, without
// secrets: a text below a name that [Key] recognizes, or below "headers", and a text
// that [LooksSecret] recognizes becomes [Mark]. Other values below such a name become
// nil. The copy is empty if the fields cannot be encoded as JSON, and so not be checked.
func Fields(fields map[string]any) map[string]any {
	out := Plain(fields)
	hideFields(out, false)
	return out
}

// Plain returns a copy of free-form fields as encoding/json decodes them. It is empty
// if they cannot be encoded as JSON.
func Plain(fields map[string]any) map[string]any {
	var out map[string]any
	if text, err := json.Marshal(fields); err != nil || json.Unmarshal(text, &out) != nil || out == nil {
		return map[string]any{}
	}
	return out
}

func hideFields(fields map[string]any, secret bool) {
	for name, v := range fields {
		fields[name] = hideValue(v, secret || Key(name) || name == "headers")
	}
}

func hideValue(v any, secret bool) any {
	switch v := v.(type) {
	case string:
		if secret || LooksSecret(v) {
			return Mark
		}
	case []any:
		for i := range v {
			v[i] = hideValue(v[i], secret)
		}
	case map[string]any:
		hideFields(v, secret)
	default:
		if secret {
			return nil
		}
	}
	return v
}
