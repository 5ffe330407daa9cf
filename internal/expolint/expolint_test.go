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

// TestSingleErrors has one error each, with the byte that it begins at.
func TestSingleErrors(t *testing.T) {
	const counter, end = "# TYPE a counter\n", "# EOF\n"
	for _, tt := range []struct {
		format     Format
		text, want string
	}{
		{Text004, "#HELP a b\na 1\n", ""},
		{OpenMetrics, "#HELP a b\n" + end, `1: want a space after #, got "#HELP a b"`},
		{OpenMetrics, "#odd\n" + end, `1: want # HELP, # TYPE, # UNIT or # EOF, got "#odd"`},
		{Text004, "# odd\n", ""},
		{Text004, "# HELP\n", "1: # HELP: byte 7: want a name"},
		{Text004, "# HELP a\n", ""},
		{Text004, "# HELP \ta b\n", ""},
		{OpenMetrics, "# HELP a\n" + end, "1: # HELP: byte 9: want a space after the name"},
		{OpenMetrics, "# HELP  a b\n" + end, "1: # HELP: byte 8: want a name"},
		{Text004, "# HELP 1a b\n", `1: # HELP: byte 8: invalid name "1a"`},
		{Text100, "# HELP \"a b\"c\n", "1: # HELP: byte 13: want a space after the name"},
		{Text100, "# TYPE \"a b\" odd\n", `1: unknown type "odd" of "a b"`},
		{Text004, "# TYPE \"a b\" gauge\n", `1: # TYPE: byte 8: names between quotes need the text format 1.0.0: "a b"`},
		{Text100, "# TYPE \"a b gauge\n", `1: # TYPE: byte 18: the closing " is missing`},
		{Text100, "# TYPE \"\" gauge\n", "1: # TYPE: byte 8: the name is empty"},
		{OpenMetrics, "# TYPE a summary\na{quantile=\"0.5\"} 1\na_count 1\na_sum 1\na_created 1\n" + end, ""},
		{Text004, "# TYPE a summary\na_created 1\n", ""},
		{OpenMetrics, counter + "a_total 1 # {b=1} 1\n" + end, `2: byte 16: want "`},
		{OpenMetrics, counter + "a_total 1 # {\"b\"} 1\n" + end, "2: byte 14: want a label, got a name without a value"},
		{OpenMetrics, counter + "a_total 1 # {b=\"c\"}1\n" + end, "2: byte 20: want a space before the value of the exemplar"},
		{OpenMetrics, counter + "a_total 1 # {b=\"c\"} x\n" + end, `2: byte 21: invalid value "x" of the exemplar`},
		{OpenMetrics, counter + "a_total 1 # {b=\"c\"} 1 x\n" + end, `2: byte 23: invalid timestamp "x" of the exemplar`},
		{OpenMetrics, counter + "a_total 1 # {b=\"c\"} 1 2 3\n" + end, `2: byte 24: unexpected " 3" after the exemplar`},
		{OpenMetrics, counter + "a_total 1 # {b=\"c\"} 1 2\n" + end, ""},
		{OpenMetrics, counter + "a_total 1 #{b=\"c\"} 1\n" + end, "2: byte 12: want # {LABELS} VALUE, an exemplar"},
		{OpenMetrics, counter + "a_total 1 \n" + end, `2: byte 11: unexpected "" after the sample`},
		{OpenMetrics, "a 1 Inf\n" + end, `1: byte 5: invalid timestamp "Inf"`},
		{OpenMetrics, "a 1 NaN\n" + end, `1: byte 5: invalid timestamp "NaN"`},
		{OpenMetrics, "a  1\n" + end, `1: byte 3: invalid value ""`},
		{OpenMetrics, "a {b=\"c\"} 1\n" + end, `1: byte 3: invalid value "{b=\"c\"}"`},
		{OpenMetrics, "a{b=\"c\",} 1\n" + end, "1: byte 9: want a label after the comma"},
		{OpenMetrics, "a{b=\"c\"}1\n" + end, "1: byte 9: want a space before the value"},
		{Text004, "a{b=\"c\",}1\n", ""},
		{Text004, "a 1 -1\n", `1: byte 5: invalid timestamp "-1"`},
		{Text004, "a 1 2 3\n", `1: byte 7: unexpected "3" after the sample`},
		{Text004, "a 1 # {}\n", `1: byte 5: unexpected "# {}" after the sample`},
		{Text004, "a 1 \t\n", ""},
		{Text004, "a\n", "1: byte 2: want a space before the value"},
		{Text100, "a{\"b\"} 1\n", "1: byte 3: want a label, got a name without a value"},
		{Text100, "{b=\"c\",\"a\"} 1\n", "1: byte 8: want a label, got a name without a value"},
		{Text100, "{\"a\",b=\"c\"} 1\n", ""},
		{Text100, "{\"a\"=\"c\"} 1\n", "1: byte 9: the sample has no name"},
		{Text100, "a{\"b\"=\"c\",b=\"d\"} 1\n", "1: byte 16: label b occurs twice"},
		{Text100, "{\"a 1\n", `1: byte 6: the closing " is missing`},
		{Text004, "a{b} 1\n", "1: byte 4: want = after the label name"},
		{Text004, "a{b 1}\n", "1: byte 5: want = after the label name"},
		{Text004, "a{b=c} 1\n", `1: byte 5: want "`},
		{Text004, "a{b=\"c\" d=\"e\"} 1\n", "1: byte 9: want , or } after a label"},
		{Text004, "a{__b=\"c\"} 1\n", "1: byte 3: labels that begin with __ are reserved: __b"},
		{Text004, "a{_b=\"c\"} 1\n", ""},
		{Text004, "a{b=\"\\x\"} 1\n", `1: byte 7: invalid escape: want \\, \" or \n`},
	} {
		var got []string
		for _, f := range Check(tt.text, tt.format).Findings {
			got = append(got, fmt.Sprintf("%d: %s", f.Line, f.Text))
		}
		if s := strings.Join(got, "\n"); s != tt.want {
			t.Errorf("format %d, %q:\n got %s\nwant %s", tt.format, tt.text, s, tt.want)
		}
	}
}

// TestTypesOfFormats: each format has types of its own.
func TestTypesOfFormats(t *testing.T) {
	for kind, formats := range map[string]string{
		"counter": "text open", "gauge": "text open", "histogram": "text open", "summary": "text open", "untyped": "text",
		"unknown": "open", "stateset": "open", "gaugehistogram": "open", "info": "open", "": "", "odd": "",
	} {
		for name, format := range map[string]Format{"text": Text004, "open": OpenMetrics} {
			text := "# TYPE a " + kind + "\n" + map[Format]string{OpenMetrics: "# EOF\n"}[format]
			if known := len(Check(text, format).Findings) == 0; known != strings.Contains(formats, name) {
				t.Errorf("%q in the format %s is known: %t", kind, name, known)
			}
		}
	}
}
