package conftree

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/statsd-admin/statsd-admin/internal/redact"
)

// maxShown is the length limit of values in error texts, in bytes.
const maxShown = 80

// Quote returns a text for error texts: quoted, shortened, and redacted if it is
// secret or looks like a secret.
func Quote(s string, secret bool) string {
	if secret || redact.LooksSecret(s) {
		return redact.Mark
	}
	if len(s) > maxShown {
		return strconv.Quote(strings.ToValidUTF8(s[:maxShown], "")) + "…"
	}
	return strconv.Quote(s)
}

// Key returns a key or word for error texts, which is quoted only if it is long or
// not on one line. Without a space after its colon, the value of a key is a part of it.
func Key(s string, secret bool) string {
	if last := strings.LastIndexAny(s, ":= "); last > 0 && !secret {
		if end := redact.KeyEnd(s[:last]); end > 0 {
			end += strings.IndexAny(s[end:], ":= ")
			return Key(s[:end], false) + s[end:end+1] + redact.Mark
		}
	}
	if q := Quote(s, secret); q != `"`+s+`"` {
		return q
	}
	return s
}

// Show returns a value for error texts.
func Show(n *yaml.Node, secret bool) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case IsNull(n):
		return "null"
	}
	return Quote(n.Value, secret)
}
