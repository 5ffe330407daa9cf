package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// link is a relative link of a document, outside code.
type link struct {
	line           int
	target, anchor string
}

// linksOf returns the relative links of a document in Markdown. Code is not
// read, neither between fences nor within backquotes. A link that is not closed
// has a target that ends in a space, which does not exist.
func linksOf(text string) []link {
	inline := regexp.MustCompile("`[^`]*`")
	target := regexp.MustCompile(`\]\(([^)\s]*[^)]?)`)
	var all []link
	fenced := false
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if fenced || strings.HasPrefix(line, "    ") {
			continue
		}
		for _, m := range target.FindAllStringSubmatch(inline.ReplaceAllString(line, ""), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			all = append(all, link{i + 1, path, anchor})
		}
	}
	return all
}

// anchorsOf returns the anchors that the headings of a document have where it is
// shown: in lower case, spaces as dashes, without punctuation.
func anchorsOf(text string) map[string]bool {
	drop := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	all := map[string]bool{}
	for line := range strings.SplitSeq(text, "\n") {
		heading := strings.TrimLeft(line, "#")
		if len(heading) == len(line) || !strings.HasPrefix(heading, " ") {
			continue
		}
		all[strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), ""), " ", "-")] = true
	}
	return all
}

// documents returns all documents of the repository by their path below its
// root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	root := filepath.Join("..", "..")
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(name) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, path)
		all[filepath.ToSlash(below)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestLinks follows the relative links of all documents to files, and in
// documents to headings, that exist.
func TestLinks(t *testing.T) {
	docs := documents(t)
	if len(docs) < 5 {
		t.Fatalf("only %d documents were found", len(docs))
	}
	followed := 0
	for name, text := range docs {
		for _, l := range linksOf(text) {
			followed++
			to := name
			if l.target != "" {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(name), l.target))
			}
			if _, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(to))); err != nil {
				t.Errorf("%s:%d links to %s, which does not exist", name, l.line, to)
			}
			if heads, ok := docs[to]; ok && l.anchor != "" && !anchorsOf(heads)[l.anchor] {
				t.Errorf("%s:%d links to the heading #%s of %s, which does not exist", name, l.line, l.anchor, to)
			}
		}
	}
	if followed == 0 {
		t.Error("no links were found")
	}
}

// badRows returns the lines of a document that are rows of a table with another number
// of cells than its header. A bar in code separates cells too, unless escaped.
func badRows(text string) (lines []int) {
	bar := regexp.MustCompile(`(^|[^\\])\|`)
	fenced, cells := false, 0
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		switch n := len(bar.FindAllString(line, -1)); {
		case fenced || !strings.HasPrefix(line, "|"):
			cells = 0
		case cells == 0:
			cells = n
		case n != cells:
			lines = append(lines, i+1)
		}
	}
	return lines
}

// TestTables finds rows that are not shown as written.
func TestTables(t *testing.T) {
	for name, text := range documents(t) {
		for _, line := range badRows(text) {
			t.Errorf("%s:%d has another number of cells than the header of its table; write \\| for a bar", name, line)
		}
	}
}

func TestBadRows(t *testing.T) {
	got := badRows("| a | b |\n|---|---|\n| `c|d` | e |\n| `c\\|d` | e |\n| f |\n\n```\n| g | h |\n| i |\n```\n")
	if want := []int{3, 5}; !slices.Equal(got, want) {
		t.Errorf("rows %v are bad, not %v", got, want)
	}
}

func TestLinksOf(t *testing.T) {
	got := linksOf("a [b](c.md#d) [n](o.md p [e](https://f) `[g](h)`\n```\n[i](j)\n```\n    [k](l)\n[m](#n)")
	want := []link{{1, "c.md", "d"}, {1, "o.md ", ""}, {6, "", "n"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if heads := anchorsOf("# A `b`, c\n##d\n## /clusters\n"); len(heads) != 2 || !heads["a-b-c"] || !heads["clusters"] {
		t.Errorf("headings: %v", heads)
	}
}

// TestPackagesAreDescribed keeps a row for every package on the page that shows the
// module to newcomers.
func TestPackagesAreDescribed(t *testing.T) {
	page := documents(t)["docs/architecture.md"]
	for _, p := range loadTree(t) {
		if len(p.files) > 0 && p.dir != "." && !under(p.dir, "examples", "bench") && !strings.Contains(page, "| `"+p.dir+"` |") {
			t.Errorf("docs/architecture.md has no row for %s: say in one sentence what it is for", p.dir)
		}
	}
}
