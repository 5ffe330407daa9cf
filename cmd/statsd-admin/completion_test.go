package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/golden"
)

// completions are command lines with what completes their last word.
var completions = []struct {
	line string
	want []string
}{
	{"statsd-admin --mo", []string{"--mode"}},
	{"statsd-admin --mode ", []string{"init_only", "serve", "validate"}},
	{"statsd-admin --mode v", []string{"validate"}},
	{"statsd-admin he", []string{"healthcheck"}},
	{"statsd-admin get /server", []string{"/server_info"}},
	{"statsd-admin send --ti", []string{"--timeout"}},
	{"statsd-admin completion f", []string{"fish"}},
	{"statsd-admin --config-path conf", []string{"config.yaml"}},
	{"statsd-admin explain conf", []string{"config.yaml"}},
	{"statsd-admin top --sort v", []string{"value"}},
	{"statsd-admin lint conf", []string{"config.yaml"}},
	{"statsd-admin lint --format ", []string{"0.0.4", "1.0.0", "openmetrics"}},
}

// runShell runs a script of a shell, which Debian's package of the same name has, in
// a directory with a configuration file. It returns what the script prints.
func runShell(t *testing.T, dir, shell string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(shell); err != nil {
		t.Skip(shell + " is not installed")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, shell, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "TERM=dumb")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", shell, err, out)
	}
	return string(out)
}

// completionScript writes the script of a shell to a directory with a
// configuration file, which it returns with the path of the script.
func completionScript(t *testing.T, shell string) (dir, path string) {
	t.Helper()
	status, script, stderr := invoke(nil, "completion", shell)
	if status != 0 || stderr != "" {
		t.Fatalf("completion %s: status %d, %q", shell, status, stderr)
	}
	golden.Check(t, "completion-"+shell, []byte(script))
	dir = t.TempDir()
	path = filepath.Join(dir, "_statsd-admin")
	for name, text := range map[string]string{path: script, filepath.Join(dir, "config.yaml"): ""} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, path
}

func checkCompletion(t *testing.T, line, got string, want []string) {
	t.Helper()
	words := strings.Fields(got)
	slices.Sort(words)
	if !slices.Equal(words, want) {
		t.Errorf("%q: %q, want %q", line, words, want)
	}
}

func TestCompletionInBash(t *testing.T) {
	dir, path := completionScript(t, "bash")
	for _, tt := range append(completions, struct {
		line string
		want []string
	}{"statsd-admin --mode = v", []string{"validate"}}) { // as bash cuts --mode=v
		got := runShell(t, dir, "bash", "-c", `. "$0"; COMP_WORDS=(${1% } ); [[ $1 == *" " ]] && COMP_WORDS+=(""); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _statsd_admin; printf '%s\n' "${COMPREPLY[@]}"`, path, tt.line)
		checkCompletion(t, tt.line, got, tt.want)
	}
}

func TestCompletionInFish(t *testing.T) {
	dir, path := completionScript(t, "fish")
	for _, tt := range completions {
		got := runShell(t, dir, "fish", "--no-config", "-c", `source $argv[1]; complete -C $argv[2] | string replace -r '\t.*' ''; true`, path, tt.line)
		checkCompletion(t, tt.line, got, tt.want)
	}
}

// TestCompletionInZsh types each line and two tabs into an interactive shell on a
// pseudo-terminal, and waits for what completes it. The outer shell ends by exec: its own
// end, which cleans up the pseudo-terminal, hangs now and then.
func TestCompletionInZsh(t *testing.T) {
	dir, _ := completionScript(t, "zsh")
	const script = `
zmodload zsh/zpty
zpty -b z zsh -f -i
zpty -w z "stty columns 200 rows 50; PS1=; fpath=($PWD \$fpath); autoload -U compinit; compinit -D -u; echo rea''dy"
zpty -r -m z out '*ready*'
zpty -w -n z "$1"$'\t\t'
zpty -r -m z out "$2"
print found
exec true
`
	for _, tt := range completions {
		want := tt.want[0]
		if len(tt.want) > 1 {
			want = strings.Join(tt.want, "*")
		}
		line := tt.line[:strings.LastIndexByte(tt.line, ' ')+1]
		if len(tt.want) == 1 {
			want = line + want
		}
		if got := runShell(t, dir, "zsh", "-f", "-c", script, "zsh", tt.line, "*"+want+"*"); got != "found\n" {
			t.Errorf("%q: %q", tt.line, got)
		}
	}
}

func TestCompletionReportsFailures(t *testing.T) {
	for args, want := range map[string]string{
		"completion":      "error: completion needs the name of a shell: bash, fish or zsh\n",
		"completion tcsh": "error: unknown shell 'tcsh': want bash, fish or zsh\n",
		"completion a b":  "error: Couldn't find match for argument: b\n",
	} {
		if status, stdout, stderr := invoke(nil, strings.Fields(args)...); status != exitUsage || stdout != "" || stderr != want {
			t.Errorf("%s: status %d, %q, %q", args, status, stdout, stderr)
		}
	}
}

// TestManual checks the manual page with the tools that show and check such
// pages, and that it has every flag of every command.
func TestManual(t *testing.T) {
	status, page, stderr := invoke(nil, "man")
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, %q", status, stderr)
	}
	golden.Check(t, "man", []byte(page))
	dir := t.TempDir()
	path := filepath.Join(dir, "statsd-admin.8")
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	// A page without a date is the only warning.
	if out := runShell(t, dir, "mandoc", "-T", "lint", "-W", "error", path); out != "" {
		t.Error(out)
	}
	shown := runShell(t, dir, "mandoc", "-T", "ascii", "-O", "width=200", path)
	shown = overstruck(shown) // bold letters are written twice
	for _, s := range (&program{}).scopes() {
		for _, f := range s.flags {
			if !strings.Contains(shown, "--"+f.name) {
				t.Errorf("%s --%s is missing", s.command, f.name)
			}
		}
	}
}

// overstruck returns s without the letters that a backspace deletes.
func overstruck(s string) string {
	var b []byte
	for i := range len(s) {
		if s[i] == '\b' && len(b) > 0 {
			b = b[:len(b)-1]
			continue
		}
		b = append(b, s[i])
	}
	return string(b)
}

// TestRoff: examples are between .nf and .fi, also at the end, and paragraphs between blank lines.
func TestRoff(t *testing.T) {
	for text, want := range map[string]string{
		"a\n\nb\n":                  "a\n.PP\nb\n",
		"a\n  b\n\n  c\nd\n":        "a\n.nf\n  b\n  c\n.fi\n.PP\nd\n",
		"a\n  b":                    "a\n.nf\n  b\n.fi\n",
		".a\n'b\n-c \"d\" \\e .f\n": "\\&.a\n\\&'b\n\\-c \\(dqd\\(dq \\ee .f\n",
	} {
		if got := roffLines(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
