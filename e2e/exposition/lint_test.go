package exposition

import (
	"errors"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/statsd-admin/statsd-admin/e2e/need"
	"github.com/statsd-admin/statsd-admin/internal/expolint"
	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/render"
)

// checkLint checks that statsd-admin lint finds nothing in what render wrote.
func checkLint(t *testing.T, body string, f render.Format, e render.Escaping) {
	t.Helper()
	format := expolint.Text004
	switch {
	case f == render.FormatProtobuf:
		return
	case f == render.FormatOpenMetrics:
		format = expolint.OpenMetrics
		if createdFamily.MatchString(body) {
			return // the name may be reserved for a counter or histogram; stats keep their names all the same
		}
	case e == render.AllowUTF8:
		format = expolint.Text100
	}
	for _, found := range expolint.Check(body, format).Findings {
		t.Errorf("line %d: %s", found.Line, found.Text)
	}
	if t.Failed() {
		t.Fatal(body)
	}
}

var createdFamily = regexp.MustCompile(`(?m)^# TYPE \S*_created"? `)

// corpus is the directory with expositions of the tests of lint.
const corpus = "../../internal/expolint/testdata/"

// TestLintFindsWhatPromtoolFinds runs promtool over the defects that lint is known to
// find, and over expositions without any. The list has what only lint finds.
func TestLintFindsWhatPromtoolFinds(t *testing.T) {
	promtool := need.Program(t, "promtool")
	refused := func(text string) bool {
		cmd := exec.Command(promtool, "check", "metrics")
		cmd.Stdin = strings.NewReader(text)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && (!errors.As(err, &exit) || exit.ExitCode() == 2) {
			t.Fatalf("%v\n%s", err, out)
		}
		return err != nil && exit.ExitCode() != 3 // 3: opinions on names
	}
	var missed []string
	for name, text := range golden.Files(t, corpus+"defects") {
		if strings.HasSuffix(name, ".prom") && !refused(text) {
			missed = append(missed, strings.TrimSuffix(name, ".prom"))
		}
	}
	slices.Sort(missed)
	if want := []string{
		"counter-nan", "counter-negative", "duplicate", "duplicate-times", "help-late", "histogram-count", "histogram-equal-bounds",
		"histogram-negative", "histogram-no-buckets", "histogram-no-count", "histogram-no-inf", "histogram-no-le", "histogram-not-cumulative",
		"histogram-order", "histogram-plain-sample", "interleaved", "interleaved-histogram", "name-reserved-label", "summary-count",
		"summary-no-quantile", "summary-order",
	}; !slices.Equal(missed, want) {
		t.Errorf("promtool accepts %q, want %q", missed, want)
	}
	for name, text := range golden.Files(t, corpus+"clean") {
		// Promtool of Prometheus 2 knows no names between quotes.
		if strings.HasSuffix(name, ".prom") && name != "quoted.prom" && refused(text) {
			t.Errorf("promtool does not accept %s", name)
		}
	}
}

// FuzzLint checks that the parser of the Prometheus server accepts what lint accepts.
func FuzzLint(f *testing.F) {
	for _, dir := range []string{"clean", "defects"} {
		for _, text := range golden.Files(f, corpus+dir) {
			f.Add(text, false)
			f.Add(text, true)
		}
	}
	f.Fuzz(func(t *testing.T, text string, open bool) {
		format, contentType := expolint.Text100, "text/plain;version=1.0.0"
		if open {
			format, contentType = expolint.OpenMetrics, "application/openmetrics-text;version=1.0.0"
		}
		if len(expolint.Check(text, format).Findings) > 0 {
			return
		}
		p, err := textparse.New([]byte(text), contentType, labels.NewSymbolTable(), textparse.ParserOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for {
			switch _, err := p.Next(); {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				t.Fatalf("Prometheus refuses what lint accepts: %v\n%q", err, text)
			}
		}
	})
}
