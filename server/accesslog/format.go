package accesslog

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/logfile"
	"github.com/statsd-admin/statsd-admin/internal/redact"
)

// Entry is one request and its response.
type Entry struct {
	Start    time.Time
	Duration time.Duration

	Method    string
	Target    string // path and query as received
	Authority string // host header
	Scheme    string
	Protocol  string // such as HTTP/1.1

	Status        int
	Flags         string // response flags; empty for none
	BytesReceived uint64 // of the body
	BytesSent     uint64
	UpstreamHost  string
	Remote        string // address of the client
	Principal     string // client identity, if known

	// RequestHeader and ResponseHeader return the value of the header with the given
	// lower-case name, or "" if it is absent. If nil, there are no headers. They are
	// called only during Log.
	RequestHeader, ResponseHeader func(name string) string
}

// DefaultFormat returns the default format. prefix is the prefix of the product's own
// headers, such as x-proxy.
func DefaultFormat(prefix string) string {
	prefix = strings.ToUpper(prefix)
	return `[%START_TIME%] "%REQ(:METHOD)% %REQ(` + prefix + `-ORIGINAL-PATH?:PATH)% %PROTOCOL%" ` +
		`%RESPONSE_CODE% %RESPONSE_FLAGS% %BYTES_RECEIVED% %BYTES_SENT% %DURATION% ` +
		`%RESP(` + prefix + `-UPSTREAM-SERVICE-TIME)% "%REQ(X-FORWARDED-FOR)%" "%REQ(USER-AGENT)%" ` +
		`"%REQ(X-REQUEST-ID)%" "%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%"` + "\n"
}

// operator formats one value of a request. text may return arbitrary bytes, and an
// empty string for a missing value; safe appends values that need no escaping, such
// as numbers.
type operator struct {
	text   func(e *Entry) string
	safe   func(dst []byte, e *Entry) []byte // used if text is nil
	number bool                              // safe appends a number
}

// appendLine appends the value to a line of text, and nothing if it is missing.
func (o *operator) appendLine(dst []byte, e *Entry) []byte {
	if o.text == nil {
		return o.safe(dst, e)
	}
	return logfile.AppendInQuotes(dst, o.text(e))
}

// plainOperators are the operators without an argument.
func plainOperators() map[string]operator {
	text := func(f func(e *Entry) string) operator { return operator{text: f} }
	unsigned := func(f func(e *Entry) uint64) operator {
		return operator{number: true, safe: func(dst []byte, e *Entry) []byte { return strconv.AppendUint(dst, f(e), 10) }}
	}
	return map[string]operator{
		"START_TIME": {safe: func(dst []byte, e *Entry) []byte {
			return e.Start.UTC().AppendFormat(dst, "2006-01-02T15:04:05.000Z")
		}},
		"PROTOCOL":       text(func(e *Entry) string { return e.Protocol }),
		"RESPONSE_CODE":  unsigned(func(e *Entry) uint64 { return uint64(max(e.Status, 0)) }),
		"RESPONSE_FLAGS": text(func(e *Entry) string { return e.Flags }),
		"BYTES_RECEIVED": unsigned(func(e *Entry) uint64 { return e.BytesReceived }),
		"BYTES_SENT":     unsigned(func(e *Entry) uint64 { return e.BytesSent }),
		"DURATION":       unsigned(func(e *Entry) uint64 { return uint64(max(e.Duration.Milliseconds(), 0)) }),
		"UPSTREAM_HOST":  text(func(e *Entry) string { return e.UpstreamHost }),

		"DOWNSTREAM_REMOTE_ADDRESS": text(func(e *Entry) string { return e.Remote }),
		"PRINCIPAL":                 text(func(e *Entry) string { return e.Principal }),
	}
}

// header returns a function that reads a header, or the part of the request line that
// a name starting with a colon refers to.
func header(name string, response bool) func(e *Entry) string {
	switch name = strings.ToLower(name); {
	case response:
	case name == ":method":
		return func(e *Entry) string { return e.Method }
	case name == ":path":
		return func(e *Entry) string { return e.shownTarget() }
	case name == ":authority", name == "host":
		return func(e *Entry) string { return e.Authority }
	case name == ":scheme":
		return func(e *Entry) string { return e.Scheme }
	}
	return func(e *Entry) string {
		read := e.RequestHeader
		if response {
			read = e.ResponseHeader
		}
		if read == nil {
			return ""
		}
		return read(name)
	}
}

// shownTarget returns the target without the values of parameters that look secret,
// which a client can send to any endpoint.
func (e *Entry) shownTarget() string {
	path, query, ok := strings.Cut(e.Target, "?")
	if !ok || !strings.Contains(query, "=") {
		return e.Target
	}
	pieces := strings.Split(query, "&")
	for i, piece := range pieces {
		if name, value, _ := strings.Cut(piece, "="); secretParameter(name, value) {
			pieces[i] = name
		}
	}
	return path + "?" + strings.Join(pieces, "&")
}

// secretParameter reports whether a parameter looks secret. Both parts are encoded.
func secretParameter(name, value string) bool {
	if plain, err := url.QueryUnescape(name); err == nil {
		name = plain
	}
	if plain, err := url.QueryUnescape(value); err == nil {
		value = plain
	}
	return value != "" && redact.Masked(name, value) == redact.Mark
}

// secretHeaders are never logged.
var secretHeaders = []string{"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"}

// piece is either literal text or an operator.
type piece struct {
	text  string
	value *operator
}

func compile(format string) ([]piece, error) {
	var pieces []piece
	for rest := format; rest != ""; {
		before, after, ok := strings.Cut(rest, "%")
		if before != "" {
			pieces = append(pieces, piece{text: before})
		}
		if !ok {
			break
		}
		if strings.HasPrefix(after, "%") {
			pieces = append(pieces, piece{text: "%"})
			rest = after[1:]
			continue
		}
		command, next, ok := strings.Cut(after, "%")
		if !ok {
			return nil, fmt.Errorf("accesslog: format: missing closing %% in %q", "%"+after)
		}
		value, err := compileOperator(command)
		if err != nil {
			return nil, err
		}
		pieces = append(pieces, piece{value: value})
		rest = next
	}
	return pieces, nil
}

// compileOperator parses NAME, REQ(FIRST?SECOND):LENGTH or RESP(FIRST?SECOND):LENGTH.
func compileOperator(command string) (*operator, error) {
	plain := plainOperators()
	if value, ok := plain[command]; ok {
		return &value, nil
	}
	name, rest, _ := strings.Cut(command, "(")
	argument, length, closed := strings.Cut(rest, ")")
	if name != "REQ" && name != "RESP" || !closed {
		known := append(slices.Sorted(maps.Keys(plain)), "REQ(header)", "RESP(header)")
		return nil, fmt.Errorf("accesslog: format: operator %q is not one of %s", command, strings.Join(known, ", "))
	}
	limit := 0
	if length != "" {
		var err error
		if limit, err = strconv.Atoi(strings.TrimPrefix(length, ":")); err != nil || limit <= 0 || length[0] != ':' {
			return nil, fmt.Errorf("accesslog: format: %q: length %q is not a positive number", command, length)
		}
	}
	main, alternative, hasAlternative := strings.Cut(argument, "?")
	names := []string{main}
	if hasAlternative {
		names = append(names, alternative)
	}
	sources := make([]func(*Entry) string, len(names))
	for i, n := range names {
		if n == "" {
			return nil, fmt.Errorf("accesslog: format: %q names no header", command)
		}
		if slices.Contains(secretHeaders, strings.ToLower(n)) {
			return nil, fmt.Errorf("accesslog: format: header %q is secret and cannot be logged", n)
		}
		sources[i] = header(n, name == "RESP")
	}
	return &operator{text: func(e *Entry) string {
		for _, source := range sources {
			if v := source(e); v != "" {
				if limit > 0 {
					v = v[:min(limit, len(v))]
				}
				return v
			}
		}
		return ""
	}}, nil
}
