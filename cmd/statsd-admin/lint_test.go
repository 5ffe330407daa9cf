package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestLintOfAServer: the expositions of a server are clean in all formats, over TCP and
// a unix socket.
func TestLintOfAServer(t *testing.T) {
	dir := shortDir(t)
	tcp := running(t, "admin: {"+onLoopback+"}")
	running(t, "admin: {address: {pipe: {path: "+dir+"/s}}}")
	base := "http://" + tcp.Admin().Addr().String()
	for _, source := range []string{base, base + "/", base + "/stats/metrics?text_readouts&hidden=include", base + "/metrics?histogram_buckets=summary", "unix:" + dir + "/s", "unix:" + dir + "/s:/stats/prometheus?usedonly"} {
		for format, want := range map[string]string{"": "0.0.4", "0.0.4": "0.0.4", "1.0.0": "1.0.0", "openmetrics": "openmetrics"} {
			args := []string{"lint", source}
			if format != "" {
				args = append(args, "--format", format)
			}
			status, stdout, stderr := invoke(nil, args...)
			if status != 0 || !strings.HasPrefix(stdout, "errors: 0, families: ") || !strings.HasSuffix(stdout, ", format: "+want+"\n") || stderr != "" {
				t.Errorf("%q: status %d, %s%s", args, status, stdout, stderr)
			}
		}
	}
	for _, tt := range [][2]string{
		{base + "/nowhere", "error: GET /nowhere: 404 Not Found"},
		{base + "/stats/metrics?prom_protobuf", "is not a text exposition"},
		{"unix:" + dir + "/no", "no such file or directory"},
		{dir + "/no", "no such file or directory"},
		{dir, "is a directory"},
	} {
		if status, stdout, stderr := invoke(nil, "lint", tt[0]); status != exitUsage || stdout != "" || !strings.Contains(stderr, tt[1]) {
			t.Errorf("%s: status %d, %s%s", tt[0], status, stdout, stderr)
		}
	}
}

// TestLintFindsErrors: findings have a line, are on one line themselves, and cannot
// write to the terminal.
func TestLintFindsErrors(t *testing.T) {
	const bad = "# TYPE a counter\na -1\nb{c=\"\x1b[2J\"} 1\nb{c=\"\x1b[2J\"} 1\n"
	const findings = ":2: a is -1: want a number that is not negative\nNAME:4: duplicate series b{c=\"\\\\x1b[2J\"}; the first is on line 3\nerrors: 2, families: 2, series: 2, format: "
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = w.Write([]byte(bad)) // the client sees it
	}))
	defer server.Close()
	file := write(t, "metrics", bad)
	for source, format := range map[string]string{"-": "1.0.0", file: "1.0.0", server.URL: "0.0.4"} {
		status, stdout, stderr := invoke(strings.NewReader(bad), "lint", source)
		if want := source + strings.ReplaceAll(findings, "NAME", source) + format + "\n"; status != exitFailed || stdout != want || stderr != "" {
			t.Errorf("%s: status %d, %q, %q; want %q", source, status, stdout, stderr, want)
		}
	}
	// --format decides, whatever the text looks like.
	for _, tt := range []struct {
		text, format string
		status       int
		want         string
	}{
		{"a 1\n", "openmetrics", exitFailed, "-:1: # EOF is missing"},
		{"a 1\n# EOF\n", "0.0.4", 0, "errors: 0, families: 1, series: 1"},
	} {
		status, stdout, _ := invoke(strings.NewReader(tt.text), "lint", "-", "--format", tt.format)
		if status != tt.status || !strings.HasPrefix(stdout, tt.want) || !strings.HasSuffix(stdout, ", format: "+tt.format+"\n") {
			t.Errorf("%s: status %d, %q", tt.format, status, stdout)
		}
	}
}
