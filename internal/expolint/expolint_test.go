package expolint

import (
	"fmt"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/golden"
)

// formatOf returns the format of a file by its name.
func formatOf(name string) Format {
	switch {
	case strings.HasSuffix(name, ".om"):
		return OpenMetrics
	case strings.HasSuffix(name, ".004.prom"):
		return Text004
	}
	return Text100
}

func TestSeededDefectsAreFound(t *testing.T) {
	for name, text := range golden.Files(t, "testdata/defects") {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			for _, f := range Check(text, formatOf(name)).Findings {
				fmt.Fprintf(&b, "%d: %s\n", f.Line, f.Text)
			}
			if b.Len() == 0 {
				t.Errorf("nothing found in\n%s", text)
			}
			golden.Check(t, "findings/"+name, []byte(b.String()))
		})
	}
}

func TestCleanExpositions(t *testing.T) {
	for name, text := range golden.Files(t, "testdata/clean") {
		r := Check(text, formatOf(name))
		for _, f := range r.Findings {
			t.Errorf("%s:%d: %s", name, f.Line, f.Text)
		}
		if want := map[string][2]int{"all.prom": {6, 19}, "all.om": {7, 15}}[name]; want != [2]int{} && want != [2]int{r.Families, r.Series} {
			t.Errorf("%s: %d families and %d series, want %v", name, r.Families, r.Series, want)
		}
	}
}

func TestDetect(t *testing.T) {
	for text, want := range map[string]Format{"": Text100, "# EOF\n": OpenMetrics, "a 1\n# EOF\n": OpenMetrics, "a{b=\"# EOF\"} 1\n": Text100} {
		if got := Detect(text); got != want {
			t.Errorf("Detect(%q) = %d, want %d", text, got, want)
		}
	}
}

// TestEscapes has values of labels that differ, or do not, once their escapes are read.
func TestEscapes(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{`x\ny`, `xy`, false}, {`x\ny`, `x\\ny`, false}, {`\\`, `\\\\`, false}, {`\"`, ``, false}, {`\"`, `\\`, false},
		{`x\ny`, `x\ny`, true}, {`\\\"`, `\\\"`, true},
	} {
		r := Check("u{a=\""+tt.a+"\"} 1\nu{a=\""+tt.b+"\"} 1\n", Text004)
		if (len(r.Findings) != 0) != tt.same || r.Series != 2 && !tt.same {
			t.Errorf("%s and %s: %d series, %v", tt.a, tt.b, r.Series, r.Findings)
		}
	}
}

// TestNulBytes: Prometheus takes a NUL byte for the end, except in the value of a label.
func TestNulBytes(t *testing.T) {
	for text, want := range map[string]int{"# TYPE\x00 b\n": 1, "a\x00 1\n": 1, "a{b=\"\x00\"} 1\n": 0, "# TYPE a counter\na_total 1 # {c=\"\x00\"} 1\n# EOF\n": 1} {
		if r := Check(text, Detect(text)); len(r.Findings) != want {
			t.Errorf("%q: %v, want %d findings", text, r.Findings, want)
		}
	}
}

// TestFindingsAreBounded: neither many errors nor long ones fill the memory.
func TestFindingsAreBounded(t *testing.T) {
	r := Check(strings.Repeat("-\n", 5000), Text004)
	if len(r.Findings) != maxFindings || r.More != 5000-maxFindings {
		t.Errorf("%d findings and %d more", len(r.Findings), r.More)
	}
	r = Check(strings.Repeat("ä", 5000)+" 1\n", Text004)
	if len(r.Findings) != 1 || len(r.Findings[0].Text) > maxText {
		t.Errorf("findings %v", r.Findings)
	}
}

// TestLimits: the last finding, the longest finding and the longest labels of an
// exemplar that fit, and the next ones.
func TestLimits(t *testing.T) {
	for n, more := range map[int]int{1000: 0, 1001: 1} {
		if r := Check(strings.Repeat("-\n", n), Text004); len(r.Findings) != 1000 || r.More != more {
			t.Errorf("%d errors: %d findings and %d more", n, len(r.Findings), r.More)
		}
	}
	for n, want := range map[int]string{1024: strings.Repeat("x", 1024), 1025: strings.Repeat("x", 1021) + "…"} {
		var c checker
		c.find("%s", strings.Repeat("x", n))
		if got := c.result.Findings[0].Text; got != want {
			t.Errorf("a finding of %d bytes has %d, and ends with %q", n, len(got), got[len(got)-4:])
		}
	}
	for n, findings := range map[int]int{128: 0, 129: 1} {
		text := "# TYPE a counter\na_total 1 # {id=\"" + strings.Repeat("é", n-2) + "\"} 1\n# EOF\n"
		if r := Check(text, OpenMetrics); len(r.Findings) != findings {
			t.Errorf("an exemplar of %d characters: %v", n, r.Findings)
		}
	}
}

// FuzzCheck checks that any input gets findings with lines of its own, and that a
// sample that comes twice is found.
func FuzzCheck(f *testing.F) {
	for _, dir := range []string{"defects", "clean"} {
		for name, text := range golden.Files(f, "testdata/"+dir) {
			f.Add(text, byte(formatOf(name)))
		}
	}
	f.Fuzz(func(t *testing.T, text string, b byte) {
		format := Format(b % 3)
		r := Check(text, format)
		lines := max(1, strings.Count(text, "\n")+1)
		for _, f := range r.Findings {
			if f.Line < 1 || f.Line > lines || f.Text == "" || len(f.Text) > maxText {
				t.Fatalf("finding %+v in %d lines", f, lines)
			}
		}
		if len(r.Findings) > 0 || format == OpenMetrics || r.Series == 0 {
			return
		}
		all := strings.SplitAfter(text, "\n")
		for i := len(all) - 1; i >= 0; i-- {
			line := strings.Trim(all[i], " \t\n")
			if line != "" && line[0] != '#' {
				if r := Check(text+all[i], format); len(r.Findings) == 0 {
					t.Fatalf("line %d twice in %q", i+1, text)
				}
				return
			}
		}
	})
}

// TestEscapesInHelp has the invalid escape behind text and valid escapes.
func TestEscapesInHelp(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "plain": true, `a\\b\nc`: true, `a\x`: false, `a\\\x`: false, `a\nb c\`: false, `\x`: false, `a\"b`: false,
	} {
		if problem := helpProblem(text, false); (problem == "") != want {
			t.Errorf("%s: %q", text, problem)
		}
	}
	if problem := helpProblem(`a\"b`, true); problem != "" {
		t.Errorf("an escaped quote in OpenMetrics: %s", problem)
	}
}

// TestNamesWithoutQuotes has the ends of each range of characters and their neighbors.
func TestNamesWithoutQuotes(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "z": true, "A": true, "Z": true, "_": true, "a0": true, "a9": true, "za_9": true,
		"": false, "0a": false, "9": false, "a`": false, "a{": false, "a@": false, "a[": false, "a/": false, "aé": false,
	} {
		if plain(name, false) != want || plain(name, true) != want {
			t.Errorf("%q: as a label %t, as a metric %t, want %t", name, plain(name, false), plain(name, true), want)
		}
	}
	if plain("a:b", false) || !plain("a:b", true) || !plain(":", true) {
		t.Error("a colon is for metrics only")
	}
}
