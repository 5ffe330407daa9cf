package accesslog

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/statsd-admin/statsd-admin/internal/logfile"
)

// loggedJSON returns the lines that a logger with cfg writes for entries.
func loggedJSON(t testing.TB, cfg Config, entries ...*Entry) string {
	t.Helper()
	cfg.Path = filepath.Join(t.TempDir(), "a.log")
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		l.Log(e)
		if err := l.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(cfg.Path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestJSONLine(t *testing.T) {
	e := request()
	e.Remote, e.Principal = "10.0.0.9:5", `ops "x"`
	members := map[string]any{
		"when": "%START_TIME%", "code": "%RESPONSE_CODE%", "ms": "%DURATION%", "line": "%REQ(:METHOD)% %RESPONSE_CODE% 100%%",
		"none": "%REQ(X-NONE)%", "empty": "", "two": "%REQ(X-NONE)%%PROTOCOL%", "part": "<%REQ(X-NONE)%>", "odd": "%REQ(X-ODD)%", "who": "%PRINCIPAL%@%DOWNSTREAM_REMOTE_ADDRESS%",
		"fixed": "text", "n": 1.5, "ok": true, "nil": nil, "sub": map[string]any{"flags": "%RESPONSE_FLAGS%", "list": []any{"%PROTOCOL%", 2.0}},
	}
	for _, tt := range []struct {
		name             string
		typed, omitEmpty bool
		want             string
	}{
		{"text", false, false, `{"code":"200","empty":"","fixed":"text","line":"GET 200 100%","ms":"1234","n":1.5,"nil":null,"none":"-","odd":"a\"b\\","ok":true,"part":"<->",` +
			`"sub":{"flags":"-","list":["HTTP/1.1",2]},"two":"-HTTP/1.1","when":"2026-03-04T04:06:07.089Z","who":"ops \"x\"@10.0.0.9:5"}`},
		{"typed", true, false, `{"code":200,"empty":"","fixed":"text","line":"GET 200 100%","ms":1234,"n":1.5,"nil":null,"none":null,"odd":"a\"b\\","ok":true,"part":"<->",` +
			`"sub":{"flags":null,"list":["HTTP/1.1",2]},"two":"-HTTP/1.1","when":"2026-03-04T04:06:07.089Z","who":"ops \"x\"@10.0.0.9:5"}`},
		{"omit", true, true, `{"code":200,"empty":"","fixed":"text","line":"GET 200 100%","ms":1234,"n":1.5,"nil":null,"odd":"a\"b\\","ok":true,"part":"<->",` +
			`"sub":{"list":["HTTP/1.1",2]},"two":"-HTTP/1.1","when":"2026-03-04T04:06:07.089Z","who":"ops \"x\"@10.0.0.9:5"}`},
	} {
		got := loggedJSON(t, Config{JSON: members, Typed: tt.typed, OmitEmpty: tt.omitEmpty}, e, e)
		if d := cmp.Diff(tt.want+"\n"+tt.want+"\n", got); d != "" {
			t.Errorf("%s:\n%s", tt.name, d)
		}
	}
	e.Target = "/a\x00\x1b\u0085\u202e\u2028é\xff\u007f"
	if got, want := loggedJSON(t, Config{JSON: map[string]any{"t": "%REQ(:PATH)%"}}, e), `{"t":"/a\u0000\u001b\u0085\u202e\u2028é�\u007f"}`+"\n"; got != want {
		t.Errorf("controls: %q, want %q", got, want)
	}
	if got := loggedJSON(t, Config{JSON: map[string]any{}}, e); got != "{}\n" {
		t.Errorf("no members: %q", got)
	}
}

func TestJSONErrors(t *testing.T) {
	for want, members := range map[string]map[string]any{
		`operator "NOPE"`: {"a": "%NOPE%"},
		`header "cookie" is secret and cannot be logged`:       {"a": map[string]any{"b": []any{"%REQ(cookie)%"}}},
		"int is not a valid JSON value":                        {"a": 1},
		"NaN is not a valid JSON number":                       {"a": math.NaN()},
		"a line without values has 4097 bytes, more than 4096": {"a": strings.Repeat("x", 4089)},
	} {
		_, err := New(Config{Path: "/dev/stdout", JSON: members})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", members, err)
		}
	}
}

// TestLongestJSONLine has the longest line without values, and the longest of all.
func TestLongestJSONLine(t *testing.T) {
	fixed := map[string]any{"a": strings.Repeat("x", logfile.MaxLineBytes/2-len(`{"a":""}`))}
	if got := loggedJSON(t, Config{JSON: fixed}, &Entry{}); len(got) != logfile.MaxLineBytes/2+1 {
		t.Errorf("%d bytes without values", len(got))
	}
	target := strings.Repeat("x", logfile.MaxLineBytes-len(`{"a":""}`))
	for extra, want := range []int{logfile.MaxLineBytes, logfile.MaxLineBytes/4 + len(`{"a":""}`)} {
		e := &Entry{Target: target + strings.Repeat("y", extra)}
		if got := loggedJSON(t, Config{JSON: map[string]any{"a": "%REQ(:PATH)%"}}, e); len(got) != want+1 {
			t.Errorf("%d bytes of a path of %d, want %d", len(got), len(e.Target), want+1)
		}
	}
}

// FuzzJSONLine checks that every request is logged as one line of valid JSON within
// the size limit, with as much of the text as possible.
func FuzzJSONLine(f *testing.F) {
	f.Add("/a\"b\\\n\x00\xff", "x\u202ey\u2028")
	f.Add(strings.Repeat("\x01", 9000), strings.Repeat("ä", 9000))
	root, err := compileJSON(&Config{JSON: map[string]any{"path": "%REQ(:PATH)%", "host": "%REQ(:AUTHORITY)%", "both": "%REQ(:PATH)% %REQ(:AUTHORITY)%"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, target, host string) {
		line := root.appendLine(nil, &Entry{Target: target, Authority: host})
		if len(line) > logfile.MaxLineBytes || !utf8.Valid(line) || strings.ContainsFunc(string(line), func(r rune) bool { return r < 0x20 || r == '\u202e' }) {
			t.Errorf("line %q", line)
		}
		var got map[string]string
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		if len(target)+len(host) < 200 && utf8.ValidString(target) && target != "" && got["path"] != target {
			t.Errorf("%q is logged as %q", target, got["path"])
		}
	})
}
