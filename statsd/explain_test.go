package statsd

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/render/naming"
)

var update = flag.Bool("update", false, "rewrite testdata/*.golden")

// explained are lines whose explanations are in testdata/explain.golden.
var explained = []string{
	"cart.items:3|c|@0.1",
	"rt:12.5:13|ms|#route:/a,canary",
	"  q:-2|g\r",
	"u:anna:x|s",
	"rt:1|ms:2|ms|@0.5:7|c",
	"hits,zone=eu:1|c|#a:b",
	"9-lives:1|c|#le:5,__x:\"q\\,9:n",
	"known:1|g",
	"x:1|c|T17|e:y|#:v",
	"   x:0x10|c",
	"x:1",
	"",
	`_e{2,3}:ab|c\n|t:error|#k:v`,
	"_e{2,9}:ab|cd",
	"_sc|db|2|m:down",
	"_sc|db|7",
	"first:1|c\nsecond:1|c",
}

func TestExplain(t *testing.T) {
	r := newRig(t, Config{Prefix: "in"})
	r.send("known:1|c\nknown:1|g")
	before := r.stats()
	var b strings.Builder
	for _, in := range explained {
		e := r.Explain([]byte(in))
		j, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		q, _ := json.Marshal(in)
		b.WriteString("# " + string(q) + "\n" + string(j) + "\n")
	}
	golden(t, "explain", b.String())
	if after := r.stats(); strings.Join(after, "\n") != strings.Join(before, "\n") {
		t.Errorf("explaining changed the stats from %v to %v", before, after)
	}
	if rep := r.Report(); rep.Listeners[0].Lines != 2 || rep.TypeConflicts != 1 {
		t.Errorf("explaining was counted: %d lines, %d conflicts", rep.Listeners[0].Lines, rep.TypeConflicts)
	}
}

// TestExplainedSeriesIsTheOneOfTheExposition, also where names get endings.
func TestExplainedSeriesIsTheOneOfTheExposition(t *testing.T) {
	for in, want := range map[string]string{
		"a.b:1|c|#x": `a_b_total{x="true"}`, "a.b:1|g": "a_b{}",
		"a.total:1|c": "a_total{}", "total:1|c": "total_total{}",
		"c:1|c|#a-b:1,a_b:2,a.b:3": `c_total{a_b="1",exported_a_b="3",exported_exported_a_b="2"}`,
	} {
		r := newRig(t, Config{})
		r.store.Naming().NetworkTotal = true
		if got := r.Explain([]byte(in)).Samples[0].Series; got != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
		r.send(in)
		if text := exposed(t, r); !strings.Contains(text, want+" ") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// TestExplainedUnits: timers are in the unit of the exposition, other samples have none.
func TestExplainedUnits(t *testing.T) {
	for seconds, want := range map[bool]string{false: "milliseconds", true: "seconds"} {
		r := newNamedRig(t, Config{}, naming.Rules{NetworkSeconds: seconds})
		samples := r.Explain([]byte("a:1|ms:2|h:3|c")).Samples
		if len(samples) != 3 || samples[0].Unit != want || samples[1].Unit != "" || samples[2].Unit != "" {
			t.Errorf("%+v, want the unit %s", samples, want)
		}
	}
}

// TestExplainNamesTheKindOfRejectedLines, also of those rejected first of all.
func TestExplainNamesTheKindOfRejectedLines(t *testing.T) {
	r := newRig(t, Config{Limits: Limits{LineBytes: 20}})
	long := strings.Repeat("x", 30)
	for in, want := range map[string]string{
		long + ":1|c": "metric line_too_long", "\xff:1|c": "metric invalid_utf8", "_e{1,1}:\xff|b": "event invalid_utf8",
		"_sc|" + long + "|0": "service_check line_too_long", " ": "blank ",
	} {
		if e := r.Explain([]byte(in)); e.Kind+" "+e.Reason != want {
			t.Errorf("%q is %s %s, want %s", in, e.Kind, e.Reason, want)
		}
	}
}

func TestExplainNamesLimits(t *testing.T) {
	r := newRig(t, Config{Limits: Limits{Series: 1}})
	r.send("a:1|c")
	if s := r.Explain([]byte("a:1|c")).Samples[0]; !s.Known || s.Limit != "" {
		t.Errorf("known: %+v", s)
	}
	if s := r.Explain([]byte("b:1|c")).Samples[0]; s.Known || s.Limit != "series" {
		t.Errorf("new: %+v", s)
	}
}

// TestExplainNamesConflicts, which a sample is rejected for.
func TestExplainNamesConflicts(t *testing.T) {
	r := newRig(t, Config{RejectConflicts: true})
	r.send("a:1|c")
	for in, want := range map[string]string{"a:1|c": "", "a:1|g": "type_conflict", "b:1|c:1|g": ""} {
		if got := r.Explain([]byte(in)).Reason; got != want {
			t.Errorf("%s: reason %q, want %q", in, got, want)
		}
	}
}

// TestExplainedValues are written without exponents where these are long enough to read.
func TestExplainedValues(t *testing.T) {
	r := newRig(t, Config{})
	for in, want := range map[string]string{
		"0": "0", "-0": "+0", "+0": "+0", "5": "5", "+5": "+5", "-5": "-5", "0.1": "0.1",
		"0.000001": "0.000001", "0.00000099": "9.9e-07", "100000000000000000000": "100000000000000000000", "1e21": "1e+21", "-1e21": "-1e+21",
	} {
		got := r.Explain([]byte("g:" + in + "|g")).Samples[0].Values
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
	if got := r.Explain([]byte("h:+5|h")).Samples[0].Values; got[0] != "5" {
		t.Errorf("an observation is %q", got)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (-update rewrites it):\n%s", path, got)
	}
}
