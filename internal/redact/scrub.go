package redact

import (
	"bytes"
	"cmp"
	"io"

	"github.com/statsd-admin/statsd-admin/internal/lazyregexp"
)

var (
	// assignment matches a name that ends like the name of a secret, and its value.
	assignment = lazyregexp.New(`(?i)((?:password|passwd|secret|token|private[-_]?key|api[-_]?key|authorization|cookie|credential)s?["']?\s*[:=]\s*)` +
		`("(?:[^"\\]|\\.)*"|'[^']*'|(?:(?:bearer|basic)\s+)?[^\s,;&|"'{\[\]}]+)`)
	keyBlock = lazyregexp.New(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`)
	harmless = lazyregexp.New(`^["']?(?:-?[0-9.]*|true|false|null|none)["']?$`)

	beginKey, endKey = []byte("-----BEGIN "), []byte("-----END ")
	privateWords     = []byte("PRIVATE KEY-----")
)

// maxScrubbed is the longest line that is looked at as a whole.
const maxScrubbed = 1 << 20

// Scrubber is a writer of text without secrets, as the last guard of texts whose parts
// are redacted already. It replaces private keys, signed tokens, bearer tokens, passwords
// of URLs, and values with names such as password or api_token, numbers excepted. A line
// is written when it ends, or at Close.
type Scrubber struct {
	w     io.Writer
	line  []byte
	inKey bool // within a private key
}

// NewScrubber returns a Scrubber that writes to w.
func NewScrubber(w io.Writer) *Scrubber { return &Scrubber{w: w} }

// Write implements io.Writer.
func (s *Scrubber) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n') + 1
		end = cmp.Or(end, len(p))
		s.line = append(s.line, p[:end]...)
		if p[end-1] == '\n' || len(s.line) >= maxScrubbed {
			if err := s.flush(); err != nil {
				return 0, err
			}
		}
		p = p[end:]
	}
	return n, nil
}

// Close writes the last line. It does not close the writer.
func (s *Scrubber) Close() error { return s.flush() }

func (s *Scrubber) flush() error {
	line := s.line
	s.line = s.line[:0]
	if s.inKey {
		if bytes.Contains(line, endKey) {
			s.inKey = false
		}
		return nil
	}
	if bytes.Contains(line, privateWords) {
		s.inKey = bytes.LastIndex(line, beginKey) > bytes.LastIndex(line, endKey)
		body, ended := bytes.CutSuffix(line, []byte("\n"))
		line = keyBlock().ReplaceAllLiteral(body, []byte(Mark))
		if ended {
			line = append(line, '\n')
		}
	}
	if bytes.Contains(line, []byte("eyJ")) {
		line = signedToken().ReplaceAllLiteral(line, []byte(Mark))
	}
	if bytes.Contains(line, []byte("@")) {
		line = userInfo().ReplaceAllLiteral(line, []byte("://"+Mark+"@"))
	}
	if bytes.ContainsAny(line, ":=") && namesSecret(line) {
		line = assignment().ReplaceAllFunc(line, hide)
	}
	if bytes.Contains(bytes.ToLower(line), []byte("bearer ")) {
		line = bearer().ReplaceAll(line, []byte("${1}"+Mark))
	}
	_, err := s.w.Write(line)
	return err
}

// namesSecret reports whether the expression for assignments can match, in less time.
func namesSecret(line []byte) bool {
	lower := bytes.ToLower(line)
	for _, word := range [...]string{"passw", "secret", "token", "key", "authorization", "cookie", "credential"} {
		if bytes.Contains(lower, []byte(word)) {
			return true
		}
	}
	return false
}

// hide replaces the value of an assignment, and keeps its quotes.
func hide(match []byte) []byte {
	parts := assignment().FindSubmatch(match)
	name, value := parts[1], parts[2]
	if harmless().Match(value) {
		return match
	}
	mark := Mark
	if q := value[0]; q == '"' || q == '\'' {
		mark = string(q) + Mark + string(q)
	}
	return append(bytes.Clone(name), mark...)
}
