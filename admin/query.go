package admin

import (
	"fmt"
	"slices"
	"strings"
)

// Pair is one parameter of a request. Name and value are percent-decoded.
type Pair struct{ Name, Value string }

// Query holds the parameters of a request in order of appearance. If a name occurs
// more than once, the first one counts.
type Query []Pair

// Has reports whether a parameter occurs, with or without a value.
func (q Query) Has(name string) bool {
	return slices.ContainsFunc(q, func(p Pair) bool { return p.Name == name })
}

// Value returns the first value of a parameter, or "" if it is absent or empty.
func (q Query) Value(name string) string {
	for _, p := range q {
		if p.Name == name {
			return p.Value
		}
	}
	return ""
}

// Distinct returns the first occurrence of each parameter.
func (q Query) Distinct() Query {
	var out Query
	seen := make(map[string]bool, len(q))
	for _, p := range q {
		if !seen[p.Name] {
			seen[p.Name] = true
			out = append(out, p)
		}
	}
	return out
}

// Keys returns the distinct names in order of appearance.
func (q Query) Keys() []string {
	var keys []string
	for _, p := range q.Distinct() {
		keys = append(keys, strings.Clone(p.Name)) // the audit log keeps names, and not the query
	}
	return keys
}

// parseQuery splits text at '&' and each part at its first '='. '+' is not a space,
// and malformed escapes are kept. An empty part is a parameter with an empty name,
// except at the end. If there are more than maxParams parts or a value is longer than
// maxValue bytes, it returns the reason to refuse; a negative limit is unlimited.
func parseQuery(text string, maxParams, maxValue int) (q Query, refused string) {
	for len(text) > 0 {
		piece, rest, _ := strings.Cut(text, "&")
		text = rest
		name, value, _ := strings.Cut(piece, "=")
		p := Pair{unescape(name), unescape(value)}
		if maxParams >= 0 && len(q) == maxParams {
			return nil, fmt.Sprintf("more than %d parameters\n", maxParams)
		}
		if maxValue >= 0 && len(p.Value) > maxValue {
			return nil, fmt.Sprintf("a parameter value over %d bytes\n", maxValue)
		}
		q = append(q, p)
	}
	return q, ""
}

// unescape decodes the well-formed %XX escapes of s.
func unescape(s string) string {
	at := strings.IndexByte(s, '%')
	if at < 0 {
		return s
	}
	out := append(make([]byte, 0, len(s)), s[:at]...)
	for i := at; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			high, low := unhex(s[i+1]), unhex(s[i+2])
			if high >= 0 && low >= 0 {
				out = append(out, byte(high<<4|low))
				i += 2
				continue
			}
		}
		out = append(out, s[i])
	}
	return string(out)
}

// unhex returns the value of a hex digit, or -1.
func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
