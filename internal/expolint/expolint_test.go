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
