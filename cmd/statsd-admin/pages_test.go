package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
)

// outputOnPage returns the lines below a command on a page, up to an empty line or the
// end of the code.
func outputOnPage(t *testing.T, page, command string) (output string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), command+"\n")
	if !ok {
		t.Fatalf("%s does not show %s", page, command)
	}
	for line := range strings.Lines(rest) {
		if line == "\n" || line == "```\n" {
			break
		}
		output += line
	}
	return output
}

// TestErrorsOfReadme has the errors of README.md for a file with three mistakes.
func TestErrorsOfReadme(t *testing.T) {
	want := strings.ReplaceAll(outputOnPage(t, "../../README.md", "    $ bin/statsd-admin --config-path bad.yaml --mode validate"), "\n    ", "\n")[4:]
	t.Chdir(t.TempDir())
	const bad = "admin: {" + onLoopback + ",\n  mode: readonly}\nstatsd:\n  listeners:\n  - address: \"udp//:8125\"\nstatic_resources:\n  clusters:\n  - {name: web, connect_timeout: -1s, type: STATIC}\n"
	if err := os.WriteFile("bad.yaml", []byte(bad), 0o600); err != nil {
		t.Fatal(err)
	}
	status, stdout, stderr := invoke(nil, "--config-path", "bad.yaml", "--mode", "validate")
	if got := stdout + stderr; status != 1 || got != want {
		t.Errorf("status %d and\n%s, want\n%s", status, got, want)
	}
}

// TestStatusOfSinksOnThePage has the fields and texts that docs/sinks.md shows for a sink
// whose receiver is down. Counts and times differ.
func TestStatusOfSinksOnThePage(t *testing.T) {
	numbers := regexp.MustCompile(`(?m)^( +(?:snapshots|packets|bytes|age_seconds|failed|retries|time|next_retry): ).*$`)
	want := numbers.ReplaceAllString(outputOnPage(t, "../../docs/sinks.md", "$ curl -s 'localhost:9901/sinks?name=prom'"), "$1*")
	d := running(t, `{admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}, stats_flush_interval: 1s,
	sinks: [{name: prom, remote_write: {url: "http://127.0.0.1:1/api/v1/write"}}]}`)
	waittest.Equal(t, "/sinks", want, func() string {
		status, stdout, stderr := invoke(nil, "get", "--address", "http://"+d.Admin().Addr().String(), "/sinks?name=prom")
		if status != 0 {
			t.Fatal(stderr)
		}
		return numbers.ReplaceAllString(stdout, "$1*")
	})
}
