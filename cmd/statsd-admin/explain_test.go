package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/statsd/report"
)

// explainLines runs the subcommand on stdin.
func explainLines(stdin io.Reader, args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	p := program{stdin: stdin, stdout: &out, stderr: &err, hardware: 2}
	status = p.run(context.Background(), append([]string{"explain"}, args...))
	return status, out.String(), err.String()
}

// capture has lines of all kinds.
const capture = "cart.items:3|c|@0.1\nrt:12.5:13|ms|#route:/a,canary\r\n\n  \t\nhits;zone=eu:+1|g\nq:-2:+4|g\nu:anna:x|s\nd:1e3:-7|h\n" +
	"rt:1|ms:2|ms|@0.5:7|c\nhits,zone:1|c|#a:b\nx:1|c|T1700000000|c:ci-abc|z:1\n" +
	"_e{6,0}:deploy||t:error|d:1700000000|h:web|k:agg|p:low|s:src|#a:b,c\n_sc|db|2|d:1700000000|h:web|m:down|#a:b|x:y\n" +
	"a:x|zz\na|b:1|c\na:1\n a: 1|c\na:x|c\nb:x|c\nc:x|c\n_e{9,9}:a|b\n_sc|db|4\n\xff:1|c\n" +
	"na\"me\\:1|c\n<script>:1|c\na\x1b[2Jb\rc:1|c\nlast:1|c"

func TestExplain(t *testing.T) {
	status, stdout, stderr := explainLines(strings.NewReader(capture))
	if status != 1 || stderr != "" {
		t.Errorf("status %d, stderr %q", status, stderr)
	}
	golden.Check(t, "explain", []byte(stdout))
	status, stdout, _ = explainLines(nil, "--help")
	if status != 0 {
		t.Errorf("--help: status %d", status)
	}
	golden.Check(t, "explain-help", []byte(stdout))
}

func TestExplainStatus(t *testing.T) {
	const summary = "accepted: %d\nblank: %d\nrejected: %d\n"
	good, bad := write(t, "good.txt", "a:1|c\n\n"), write(t, "bad\n.txt", "\nb\n")
	plain := write(t, "plain.yaml", "statsd: {parse: {dogstatsd: false, influx: false, gauge_signs: absolute}, prefix: p, limits: {line_bytes: 20}}\n")
	scaled := write(t, "scaled.yaml", "statsd: {mapping: {rules: {mappings: [{match: rt, name: rt_seconds, scale: 0.001}, {match: n, name: m}]}}}\n")
	exporter := write(t, "exporter.yml", "mappings: [{match: rt.*, name: rt, labels: {to: $1}}]\n")
	wrong := write(t, "wrong.yaml", "statsd: {parse: 1}\n")
	tests := []struct {
		name, stdin    string
		args           []string
		status         int
		stdout, stderr []string // parts, in order; nil: nothing
	}{
		{"empty", "", nil, 0, []string{fmt.Sprintf(summary, 0, 0, 0)}, nil},
		{"accepted", "a:1|c\n", nil, 0, []string{"stdin:1: a:1|c\n", "\n\n" + fmt.Sprintf(summary, 1, 0, 0)}, nil},
		{"no-line-feed", "a:1|c\nb", nil, 1, []string{"stdin:2: b\n", fmt.Sprintf(summary, 1, 0, 1)}, nil},
		{"files", "c:1|c", []string{good, "-", bad}, 1, []string{good + ":1: a:1|c\n", "stdin:1: c:1|c\n", `bad\n.txt:2: b` + "\n", fmt.Sprintf(summary, 2, 2, 1)}, nil},
		{"file-named-like-a-flag", "", []string{"--", "-c"}, 1, nil, []string{"error: open -c: no such file or directory\n"}},
		{"no-file", "", []string{"/nowhere"}, 1, nil, []string{"error: open /nowhere: no such file or directory\n"}},
		{"line", "", []string{"a:1|c", "b|c"}, 1, []string{"argument:1: a:1|c\n", "argument:1: b|c\n", fmt.Sprintf(summary, 1, 0, 1)}, nil},
		{"directory", "", []string{t.TempDir()}, 1, nil, []string{"is a directory\n"}},
		{"config", "a,k=v:1|c|#x\nq:-1|g\n" + strings.Repeat("x", 21) + "\n", []string{"-c", plain}, 1, []string{
			"name:            a,k=v\n", "stat:          p.a,k=v\n", "series:        p_a_k_v{}\n", "unknown fields:  1\n",
			"values:        -1\n", "rejected:        line_too_long at byte 20\n"}, nil},
		{"scaled", "rt:1500|ms\nn:1|c\nrt:x|s\n", []string{"-c", scaled}, 0, []string{
			"rule:          1 (rt) at ", "scale:         0.001\n", "stat:          rt_seconds\n", "rule:          2 (n) at ", ":1:84\n      stat:          m\n", "rule:          1 (rt) at ", ":1:39\n      stat:          rt_seconds\n"}, nil},
		{"exporter", "rt.a:1500|ms\nn.:1|c\n", []string{"--statsd.mapping-config", exporter}, 0, []string{
			"rule:          1 (rt.*) at " + exporter + ":1:12\n", `series:        rt{to="a"}` + "\n      series unit:   seconds\n", "series:        n_{}\n"}, nil},
		{"exporter-missing", "", []string{"--statsd.mapping-config=/nowhere.yml"}, 1, nil, []string{"error: --statsd.mapping-config: stat /nowhere.yml: no such file or directory\n"}},
		{"exporter-and-config", "", []string{"--statsd.mapping-config", exporter, "-c", plain}, 2, nil, []string{"error: --statsd.mapping-config cannot be combined with a configuration, which has statsd.mapping.file and statsd.parse\n"}},
		{"exporter-parse", "n:1|c|#a:b\nm,c=d:1|c\n", []string{"--no-statsd.parse-dogstatsd-tags", "--statsd.parse-influxdb-tags=false", "--statsd.mapping-config", exporter}, 0, []string{
			"series:        n{}\n", "unknown fields:  1\n", "series:        m_c_d{}\n"}, nil},
		{"exporter-parse-alone", "n:1|c|#a:b\nm#c=d:1|c\n", []string{"--no-statsd.parse-librato-tags"}, 0, []string{"series:        n{a=\"b\"}\n", "series:        m_c_d{}\n"}, nil},
		{"exporter-parse-and-config", "", []string{"--statsd.parse-signalfx-tags", "-c", plain}, 2, nil, []string{"error: --statsd.parse-signalfx-tags cannot be combined with a configuration, which has"}},
		{"exporter-parse-wrong", "n:1|c\n", []string{"--statsd.parse-signalfx-tags=maybe"}, 2, nil, []string{"error: ", "maybe"}},
		{"config-yaml", "aa:1|c\n", []string{"--config-yaml", "statsd: {limits: {name_bytes: 1}}"}, 1, []string{"name_too_long at byte "}, nil},
		{"bad-config", "a:1|c\n", []string{"-c", wrong}, 1, nil, []string{wrong + ":1:17: statsd.parse: "}},
		{"no-config", "", []string{"-c", "/nowhere.yaml"}, 1, nil, []string{"bootstrap: open /nowhere.yaml: no such file or directory\n"}},
		{"unknown-flag", "", []string{"--mode", "validate"}, 2, nil, []string{"error: Couldn't find match for argument: --mode\n"}},
		{"no-value", "", []string{"-c"}, 2, nil, []string{"error: Missing a value for this argument: --config-path\n"}},
		{"empty-argument", "", []string{"a:1|c", ""}, 2, nil, []string{"error: argument 2 is '', not a file, a line with a | or -\n"}},
		{"bad-product", "", []string{"--product-name", "a b"}, 2, nil, []string{"error: invalid product-name 'a b'"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, stdout, stderr := explainLines(strings.NewReader(tt.stdin), tt.args...)
			if status != tt.status {
				t.Errorf("status %d, want %d", status, tt.status)
			}
			for _, out := range []struct {
				name, got string
				want      []string
			}{{"stdout", stdout, tt.stdout}, {"stderr", stderr, tt.stderr}} {
				if out.want == nil && out.got != "" {
					t.Errorf("%s: %q, want nothing", out.name, out.got)
				}
				rest, ok := out.got, true
				for _, part := range out.want {
					if _, rest, ok = strings.Cut(rest, part); !ok {
						t.Errorf("%s:\n%s\nlacks, or has elsewhere: %q", out.name, out.got, part)
						break
					}
				}
			}
		})
	}
}

// failing fails to be written to.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("disk is full") }

func TestExplainReportsFailures(t *testing.T) {
	for _, lines := range []string{"a:1|c\n", ""} {
		var stderr bytes.Buffer
		p := program{stdin: strings.NewReader(lines), stdout: failing{}, stderr: &stderr}
		if status := p.run(context.Background(), []string{"explain"}); status != 1 || stderr.String() != "error: disk is full\n" {
			t.Errorf("writing about %q: status %d, %q", lines, status, stderr.String())
		}
	}
	status, _, text := explainLines(iotest.ErrReader(errors.New("unplugged")))
	if status != 1 || text != "error: unplugged\n" {
		t.Errorf("reading: status %d, %q", status, text)
	}
}

// TestExplainNamesThePlaceOfAMissingFile explains with rules that are not there.
func TestExplainNamesThePlaceOfAMissingFile(t *testing.T) {
	file := write(t, "a.yaml", "statsd: {mapping: {file: /nowhere/rules}}\n")
	var stderr bytes.Buffer
	p := program{stdout: io.Discard, stderr: &stderr}
	status := p.run(t.Context(), []string{"explain", "-c", file, "a:1|c"})
	if want := file + ":1:26: statsd.mapping.file: \"/nowhere/rules\": no such file or directory\n"; status != 1 || stderr.String() != want {
		t.Errorf("status %d, %s", status, &stderr)
	}
}

// TestExplainBoundsLines: of a line that is far too long only the beginning is
// kept, and the next line is found.
func TestExplainBoundsLines(t *testing.T) {
	long := io.LimitReader(endless{}, 64<<20)
	status, stdout, _ := explainLines(io.MultiReader(long, strings.NewReader("\na:1|c\n")))
	want := "stdin:1: " + strings.Repeat("x", 512) + "…\n    rejected:        line_too_long at byte 8192\nstdin:2: a:1|c\n"
	if status != 1 || !strings.HasPrefix(stdout, want) {
		t.Errorf("status %d, %.700q", status, stdout)
	}
	most := strings.Repeat("x", 8190) // one byte less than fits
	if _, stdout, _ = explainLines(strings.NewReader(strings.Repeat(" ", 5000) + "a:" + most + "\n")); !strings.Contains(stdout, "missing_pipe") {
		t.Errorf("blanks around a line count: %.100q", stdout)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// FuzzReadLine checks that the lines are those between line feeds, cut.
func FuzzReadLine(f *testing.F) {
	for _, s := range []string{"", "\n", "a\nb", "a\r\n\n", strings.Repeat("x", 40) + "\ny\n"} {
		f.Add([]byte(s), uint8(20))
	}
	f.Fuzz(func(t *testing.T, text []byte, longest uint8) {
		in := bufio.NewReaderSize(iotest.OneByteReader(bytes.NewReader(text)), 16)
		for _, want := range bytes.Split(text, []byte("\n")) {
			got, err := readLine(in, nil, int(longest))
			if want = want[:min(len(want), int(longest))]; !bytes.Equal(got, want) || err != nil && !errors.Is(err, io.EOF) {
				t.Fatalf("%q: %q, %v; want %q", text, got, err, want)
			}
		}
		if rest, err := readLine(in, nil, math.MaxInt); len(rest) > 0 || !errors.Is(err, io.EOF) {
			t.Errorf("%q: at the end %q, %v", text, rest, err)
		}
	})
}

// FuzzExplain checks that any text is explained in printable lines, each line
// counted once.
func FuzzExplain(f *testing.F) {
	for line := range strings.SplitSeq(capture, "\n") {
		f.Add([]byte(line + "\n\na:1|c"))
	}
	cfg, err := loadConfig(&Options{CommandLine: server.CommandLine{ConfigYAML: "{}"}, Product: "proxy"})
	if err != nil {
		f.Fatal(err)
	}
	made, err := newExplainer(io.Discard, cfg)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var out bytes.Buffer
		e := explainer{out: bufio.NewWriter(&out), explain: made.explain, longest: made.longest, reasons: make(map[string]int)}
		if err := errors.Join(e.read("stdin", bytes.NewReader(text)), e.summary()); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		stdout := out.String()
		if strings.ContainsFunc(stdout, func(r rune) bool { return r != '\n' && !strconv.IsPrint(r) }) {
			t.Errorf("%q: the output is not printable: %q", text, stdout)
		}
		at := max(strings.LastIndex(stdout, "\naccepted: ")+1, 0)
		var accepted, blank, rejected int
		if _, err := fmt.Sscanf(stdout[at:], "accepted: %d\nblank: %d\nrejected: %d\n", &accepted, &blank, &rejected); err != nil {
			t.Fatalf("%q: summary %q: %v", text, stdout[at:], err)
		}
		lines := bytes.Count(text, []byte("\n"))
		if len(text) > 0 && text[len(text)-1] != '\n' {
			lines++
		}
		if accepted+blank+rejected != lines {
			t.Errorf("%q: %d lines, but %s", text, lines, stdout[at:])
		}
	})
}

// TestExplainOfTheBinary runs the real program as a shell does: on a file, and
// on a pipe that stays open until a signal ends it.
func TestExplainOfTheBinary(t *testing.T) {
	bin := programFor(t)
	cmd := exec.Command(bin, "explain")
	cmd.Stdin = strings.NewReader(capture)
	out, err := cmd.Output()
	if want, _ := os.ReadFile("testdata/explain.golden"); cmd.ProcessState.ExitCode() != 1 || !bytes.Equal(out, want) {
		t.Errorf("on the capture: %v\n%s", err, out)
	}
	if out, err := exec.Command(bin, "explain", write(t, "a.txt", "a:1|c\n")).CombinedOutput(); err != nil {
		t.Errorf("on an accepted line: %v\n%s", err, out)
	}

	cmd = exec.Command(bin, "explain")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	caught := make(chan os.Signal, 1) // a signal that this process ignored would be ignored by the child, too
	signal.Notify(caught, syscall.SIGINT)
	defer signal.Stop(caught)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(stdin, "live:1|c\n"); err != nil {
		t.Error(err)
	}
	if first, err := bufio.NewReader(stdout).ReadString('\n'); first != "stdin:1: live:1|c\n" {
		t.Errorf("before the end of the input: %q, %v", first, err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGINT {
		t.Errorf("after an interrupt: %v", cmd.ProcessState)
	}
}

// TestExplainedSamples expects what drops a sample, or the limit that holds it back.
func TestExplainedSamples(t *testing.T) {
	for want, s := range map[string]report.Sample{
		"  dropped:       by the mapping rules": {Dropped: true, Stat: "x"},
		"  dropped:       by filters.metrics":   {Dropped: true, Filter: "metrics"},
		"  over limit:    series":               {Limit: "series", Stat: "x", Series: "x{}"},
		"  series:        x{}\n":                {Stat: "x", Series: "x{}"},
	} {
		var b bytes.Buffer
		e := &explainer{out: bufio.NewWriter(&b)}
		e.sample(&s)
		_ = e.out.Flush()
		if got := b.String(); !strings.Contains(got, strings.TrimSpace(want)) || strings.Contains(got, "over limit") != (s.Limit != "") || strings.Contains(got, "stat:") == s.Dropped {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}

// TestExplainOfThePages runs the commands with explain that pages show, all but the first
// with a configuration or mapping rules above it, and expects the output below them.
func TestExplainOfThePages(t *testing.T) {
	command := regexp.MustCompile(`(?m)^    \$ (?:echo|printf '%s\\n') (.*) \| (?:bin/)?statsd-admin explain(?: (-c|--statsd.mapping-config) (\S+))?\n`)
	quoted := regexp.MustCompile(`'([^']*)'`)
	config := regexp.MustCompile(`(?m)^    (?:statsd|mappings):\n(?:    .*\n)+`)
	pages := []string{"../../README.md", "../../docs/statsd.md", "../../docs/migration.md"}
	for i, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		pages[i] = string(text)
	}
	t.Chdir(t.TempDir())
	for i, page := range pages {
		m := command.FindStringSubmatchIndex(page)
		if m == nil {
			t.Errorf("page %d shows no command with explain", i)
			continue
		}
		var want, stdin strings.Builder
		for line := range strings.Lines(page[m[1]:]) {
			inner, ok := strings.CutPrefix(line, "    ")
			if !ok && strings.TrimSpace(line) != "" {
				break
			}
			want.WriteString(cmp.Or(inner, "\n"))
		}
		for _, q := range quoted.FindAllStringSubmatch(page[m[2]:m[3]], -1) {
			fmt.Fprintln(&stdin, q[1])
		}
		configs, args := []string{""}, []string(nil)
		if m[4] >= 0 {
			configs, args = config.FindAllString(page[:m[0]], -1), []string{page[m[4]:m[5]], page[m[6]:m[7]]}
		}
		var outputs []string
		for _, c := range configs {
			if args != nil {
				if err := os.WriteFile(args[1], []byte(strings.ReplaceAll("\n"+c, "\n    ", "\n")[1:]), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, stdout, _ := explainLines(strings.NewReader(stdin.String()), args...)
			outputs = append(outputs, stdout)
		}
		if text := strings.TrimSpace(want.String()); !slices.ContainsFunc(outputs, func(out string) bool { return strings.HasPrefix(out, text) }) {
			t.Errorf("the page shows\n%s\nbut the output is one of %q", text, outputs)
		}
	}
}
