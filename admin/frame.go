package admin

import (
	"fmt"
	"strconv"
	"strings"
)

// Field is a header field of a request or a response.
type Field struct{ Name, Value string }

// parseFields splits the raw block of header fields, which ends in an empty
// line or is empty. It reports false if a line is continued by the next one,
// does not end in CR LF, or has no name.
func parseFields(raw string) ([]Field, bool) {
	fields := make([]Field, 0, 16)
	for raw != "" {
		line, rest, ok := strings.Cut(raw, "\r\n")
		if !ok {
			return nil, false
		}
		raw = rest
		if line == "" {
			return fields, raw == ""
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" || strings.ContainsAny(name, " \t") || strings.ContainsRune(line, '\n') {
			return nil, false
		}
		fields = append(fields, Field{name, strings.Trim(value, " \t")})
	}
	return fields, true
}

// values returns the values of all fields with the given lower-case name.
func values(fields []Field, name string) []string {
	var out []string
	for _, f := range fields {
		if strings.EqualFold(f.Name, name) {
			out = append(out, f.Value)
		}
	}
	return out
}

// hasToken reports whether any of the comma-separated values contains token, ignoring
// case.
func hasToken(list []string, token string) bool {
	for _, value := range list {
		for item := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.Trim(item, " \t"), token) {
				return true
			}
		}
	}
	return false
}

// refusal is the response to a request refused because of its framing. It closes the
// connection, since the following bytes need not be a request.
type refusal struct {
	status int
	reason string
}

// checkFrame returns the refusal for a badly framed request, or nil. An accepted
// request is unambiguous: it has a known method, a target within the limit, fields on
// separate lines, and a body, if any, of stated length.
func checkFrame(method, proto, target string, fieldBytes int, fields []Field, ok bool, l *Limits) *refusal {
	refuse := func(status int, format string, args ...any) *refusal {
		return &refusal{status, fmt.Sprintf(format, args...) + "\n"}
	}
	switch {
	case proto != "HTTP/1.1" && proto != "HTTP/1.0":
		return refuse(400, "only HTTP/1.0 and HTTP/1.1 are spoken here")
	case !knownMethod(method):
		return refuse(400, "method not supported")
	case over(len(target), l.TargetBytes):
		return refuse(414, "request target over %d bytes", l.TargetBytes)
	case over(fieldBytes, l.HeaderBytes):
		return refuse(431, "request header over %d bytes", l.HeaderBytes)
	case !ok:
		return refuse(400, "malformed header field")
	case over(len(fields), l.Headers):
		return refuse(400, "more than %d header fields", l.Headers)
	}
	for _, f := range fields {
		switch strings.ToLower(f.Name) {
		case "transfer-encoding":
			return refuse(400, "transfer-encoding is not supported, send a content-length")
		case "upgrade":
			return refuse(400, "upgrade is not supported")
		case "expect":
			return refuse(417, "expect is not supported")
		case "content-encoding":
			return refuse(415, "content-encoding is not supported, send the body as it is")
		case "content-length":
			if (method == "GET" || method == "HEAD") && strings.Trim(f.Value, "0") != "" {
				return refuse(400, "a %s request has no body", method)
			}
		}
	}
	return nil
}

// bodyTooLarge is the refusal of a body over the limit.
func (l *Limits) bodyTooLarge() *refusal {
	return &refusal{413, "request body over " + strconv.Itoa(l.BodyBytes) + " bytes\n"}
}

// over reports whether n exceeds a limit. A negative limit is unlimited.
func over(n, limit int) bool { return limit >= 0 && n > limit }

// knownMethod reports whether the server accepts a method.
func knownMethod(method string) bool {
	switch method {
	case "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS":
		return true
	}
	return false
}

// splitTarget returns the path and query of a request target, and its authority if
// the target is in absolute form.
func splitTarget(target string) (authority, pathAndQuery string, ok bool) {
	if strings.HasPrefix(target, "/") || target == "*" {
		return "", target, true
	}
	scheme, rest, ok := strings.Cut(target, "://")
	if !ok || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return "", "", false
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		return rest, "/", rest != ""
	}
	authority, pathAndQuery = rest[:end], rest[end:]
	if pathAndQuery[0] == '?' {
		pathAndQuery = "/" + pathAndQuery
	}
	return authority, pathAndQuery, authority != ""
}
