package arch

import (
	"go/ast"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// turn is a turn of phrase that reads as translated.
type turn struct {
	name    string
	pattern *regexp.Regexp
	instead string
}

func turns() []turn {
	return []turn{
		{"what is", regexp.MustCompile(`(?i)\bwhat (is|was|were|are|has|had|it|they|came|comes)\b`), "use a noun: the accepted lines, the configured limit"},
		{"tell", regexp.MustCompile(`(?i)\b(tell|tells|told|telling)\b`), "report, return, notify, distinguish"},
		{"those that", regexp.MustCompile(`(?i)\b(those|one|ones|he|she|who) (that|who|of)\b`), "name the things: callers that, hosts that, the other listener"},
		{"nobody", regexp.MustCompile(`(?i)\b(nobody|everybody|anybody|whoever)\b`), "no caller, each client; or say what does not happen"},
	}
}

// linesPerTurn is how many lines of comments there must be for each occurrence of a turn.
// The standard library has one in 800 to 5,000.
const linesPerTurn = 2000

// comment returns the comment in a line of a Go file, or of a YAML file or Makefile, or "".
// Comments behind Go code are not found.
func comment(name, line string) string {
	if filepath.Ext(name) == ".go" {
		if text := strings.TrimSpace(line); strings.HasPrefix(text, "//") && !strings.HasPrefix(text, "//go") {
			return text
		}
		return ""
	}
	if _, text, found := strings.Cut(" "+line, " #"); found {
		return "#" + text
	}
	return ""
}

// TestProse counts turns of phrase in the comments of all Go and YAML files and
// Makefiles, nested modules included.
func TestProse(t *testing.T) {
	lines := 0
	found := map[string][]string{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if ext := filepath.Ext(name); d.IsDir() || ext != ".go" && ext != ".yaml" && d.Name() != "Makefile" {
			return nil
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(src), "\n") {
			text := comment(name, line)
			if text == "" {
				continue
			}
			lines++
			for _, turn := range turns() {
				if turn.pattern.MatchString(text) {
					found[turn.name] = append(found[turn.name], position(name, i)+": "+text)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if lines < 1000 {
		t.Fatalf("only %d lines of comments were found", lines)
	}
	for _, turn := range turns() {
		if most := lines / linesPerTurn; len(found[turn.name]) > most {
			t.Errorf("%d of %d comment lines use %q, at most %d may (%s):\n%s",
				len(found[turn.name]), lines, turn.name, most, turn.instead, strings.Join(found[turn.name], "\n"))
		}
	}
}

func position(name string, i int) string {
	return filepath.ToSlash(strings.TrimPrefix(name, filepath.Join("..", "..")+string(filepath.Separator))) + ":" + strconv.Itoa(i+1)
}

func TestComment(t *testing.T) {
	for _, tt := range []struct{ name, line, want string }{
		{"a.go", "\t// Inc adds one.", "// Inc adds one."},
		{"a.go", "//go:build linux", ""},
		{"a.go", "f(x) # y", ""},
		{"a.yaml", "# A server.", "# A server."},
		{"a.yaml", "ttl: 1h   # of gauges", "# of gauges"},
		{"a.yaml", "color: a#b", ""},
		{"Makefile", "run: ## start it", "## start it"},
	} {
		if got := comment(tt.name, tt.line); got != tt.want {
			t.Errorf("comment(%q, %q) = %q, want %q", tt.name, tt.line, got, tt.want)
		}
	}
}

func TestTurns(t *testing.T) {
	for text, want := range map[string]string{
		"// What is left is what was asked for.":                 "what is",
		"// It tells the server.":                                "tell",
		"// those that wait, and one of them":                    "those that",
		"// Nobody waits.":                                       "nobody",
		"// Whoever waits.":                                      "nobody",
		"// The caller owns the returned slice; whatever it is.": "",
		"// An intellect, a storyteller, a clone of it.":         "",
	} {
		got := ""
		for _, turn := range turns() {
			if turn.pattern.MatchString(text) {
				got = turn.name
			}
		}
		if got != want {
			t.Errorf("%q: found %q, want %q", text, got, want)
		}
	}
}

// maxParagraph bounds the paragraphs of documents, in bytes.
const maxParagraph = 600

// longParagraphs returns the first lines of the paragraphs of a document that are too
// long. Code, tables and list items count by themselves.
func longParagraphs(text string) (all []string) {
	var paragraph strings.Builder
	end := func() {
		if s := paragraph.String(); len(s) > maxParagraph {
			all = append(all, s[:min(len(s), 80)])
		}
		paragraph.Reset()
	}
	fenced := false
	item := regexp.MustCompile(`^\s*([-*]|\d+\.) `)
	for line := range strings.SplitSeq(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "```") {
			fenced = !fenced
		}
		switch {
		case fenced, trimmed == "", strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "|"), strings.HasPrefix(trimmed, "#"):
			end()
		case paragraph.Len() == 0 && strings.HasPrefix(line, "    "): // code
		case item.MatchString(line):
			end()
			paragraph.WriteString(trimmed)
		default:
			paragraph.WriteString(" " + trimmed)
		}
	}
	end()
	return all
}

func TestParagraphs(t *testing.T) {
	for name, text := range documents(t) {
		for _, p := range longParagraphs(text) {
			t.Errorf("%s: a paragraph has more than %d bytes, break it up: %s…", name, maxParagraph, p)
		}
	}
	long := strings.Repeat("word ", maxParagraph/5+1)
	for text, want := range map[string]int{
		long:                             1,
		"a\n\n" + long + "\n\nb":         1,
		"- " + long + "\n- " + long:      2,
		"```\n" + long + "\n```":         0,
		"| " + long + " |":               0,
		"    " + long:                    0,
		long[:300] + "\n" + long[:400]:   1,
		long[:300] + "\n\n" + long[:400]: 0,
	} {
		if got := len(longParagraphs(text)); got != want {
			t.Errorf("%d long paragraphs, want %d in %.40q…", got, want, text)
		}
	}
}

// minExamples is how many Example functions the module has at least.
const minExamples = 40

// TestExamples keeps an example in each package that users can import.
func TestExamples(t *testing.T) {
	total := 0
	for _, p := range loadTree(t) {
		if under(p.dir, "internal", "cmd", "examples", "bench", "e2e") || slices.Contains(testOnly(), p.dir) || len(p.files) == 0 {
			continue
		}
		n, exported := 0, 0
		for _, f := range p.tests {
			for _, d := range f.ast.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Example") {
					n++
				}
			}
		}
		for _, f := range p.files {
			for _, d := range f.ast.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.IsExported() {
					exported++
				}
			}
		}
		total += n
		if n == 0 && exported > 0 {
			t.Errorf("%s has no Example function: show in example_test.go how to use it", p.dir)
		}
	}
	if total < minExamples {
		t.Errorf("%d Example functions, want at least %d", total, minExamples)
	}
}
