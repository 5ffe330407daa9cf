package redact

import (
	"bytes"
	"strings"
	"testing"
)

// scrubbed writes text in pieces of n bytes.
func scrubbed(text string, n int) string {
	var out bytes.Buffer
	s := NewScrubber(&out)
	for len(text) > 0 {
		k := min(n, len(text))
		_, _ = s.Write([]byte(text[:k]))
		text = text[k:]
	}
	_ = s.Close()
	return out.String()
}

func TestScrubber(t *testing.T) {
	const token = "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.c2ln"
	for text, want := range map[string]string{
		"":                                 "",
		"plain: 5\nno newline":             "plain: 5\nno newline",
		"api_token: abc\n":                 "api_token: [redacted]\n",
		"x.token: 5\nx.secret: true":       "x.token: 5\nx.secret: true",
		"token_time: P0(1,2)\n":            "token_time: P0(1,2)\n",
		`"password": "a\"b", "c": 1`:       `"password": "[redacted]", "c": 1`,
		`"tokens": ["a"]`:                  `"tokens": ["a"]`,
		"Authorization: Bearer abc.def, x": "Authorization: [redacted], x",
		"sent Bearer 0123456789abcdef01== twice, authorization: bearer 0123456789abcdef": "sent Bearer [redacted] twice, authorization: [redacted]",
		"cookie=a; password=b":              "cookie=[redacted]; password=[redacted]",
		"url https://u:p@host/ http://h:1/": "url https://[redacted]@host/ http://h:1/",
		"at a://u:p/q@host/v, then b":       "at a://[redacted]@host/v, then b",
		"at a://u:p@q@host/v":               "at a://[redacted]@host/v",
		"a " + token + " b":                 "a [redacted] b",
		"a\n-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----\nb\n":          "a\n[redacted]\nb\n",
		`"k": "-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\n"`: `"k": "[redacted]\n"`,
		"-----BEGIN PRIVATE KEY-----\nMII":                                             "[redacted]\n",
		"-----BEGIN CERTIFICATE-----\nMII":                                             "-----BEGIN CERTIFICATE-----\nMII",
	} {
		for _, n := range []int{1, 7, 1 << 20} {
			if got := scrubbed(text, n); got != want {
				t.Errorf("in pieces of %d: %q, want %q", n, got, want)
			}
		}
	}
	if got := scrubbed(strings.Repeat("x", 3*maxScrubbed), 1000); len(got) != 3*maxScrubbed {
		t.Errorf("%d bytes of a long line, want %d", len(got), 3*maxScrubbed)
	}
}

// FuzzScrubber checks that the result does not depend on the pieces.
func FuzzScrubber(f *testing.F) {
	for _, seed := range []string{"password: a\n", "a\n-----BEGIN PRIVATE KEY-----\nb\n-----END PRIVATE KEY-----", "token='x' secret=\"y", "x://a:b@c", "eyJaaaaaaaaa.bbbbbbbbbb.c"} {
		f.Add(seed, uint8(3))
	}
	f.Fuzz(func(t *testing.T, text string, n uint8) {
		whole := scrubbed(text, len(text)+1)
		if got := scrubbed(text, int(n)+1); got != whole {
			t.Errorf("%q in pieces of %d: %q, as a whole %q", text, n, got, whole)
		}
	})
}
