package bootstrap

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/statsd/mapping"
)

func readTestdata(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata/mapping", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestMappingFile(t *testing.T) {
	rules, warnings, err := ParseMapping("full.yaml", readTestdata(t, "full.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.MarshalIndent(rules.Config(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "mapping/full", []byte(string(out)+"\n"+strings.Join(warnings, "\n")+"\n"))
}

func TestMappingFileErrors(t *testing.T) {
	_, _, err := ParseMapping("wrong.yaml", readTestdata(t, "wrong.yaml"))
	if err == nil {
		t.Fatal("accepted")
	}
	golden.Check(t, "mapping/wrong", []byte(err.Error()+"\n"))
	for _, text := range []string{"mappings: [", "mappings: {a: b}", "- a", "mappings:\n  - {match: a, name: b}\n  - &a [*a]\n"} {
		if _, _, err := ParseMapping("a.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), "a.yaml:") {
			t.Errorf("%q: got %v, want a position", text, err)
		}
	}
	for _, text := range []string{"", "# nothing\n", "{}", "mappings: []", "mappings:", "defaults: {}\n"} {
		if rules, _, err := ParseMapping("a.yaml", []byte(text)); err != nil || rules.Len() != 0 || len(rules.Config().Observe.Quantiles) != 3 {
			t.Errorf("%q: got %v, %v", text, rules, err)
		}
	}
	rules, _, err := ParseMapping("a.yaml", []byte("defaults: {observer_type: histogram}"))
	if err != nil {
		t.Fatal(err)
	}
	if o := rules.Config().Observe; !slices.Equal(o.Buckets, defaultBuckets()) || o.NativeFactor != 1.1 || o.NativeBuckets != 256 || len(o.Quantiles) != 0 {
		t.Errorf("the default of histograms is %+v", o)
	}
}

// TestMappingSection reads rules inside the configuration and from a file.
func TestMappingSection(t *testing.T) {
	file := filepath.Join(t.TempDir(), "m.yaml")
	if err := os.WriteFile(file, []byte("mappings: [{match: a.*, name: b}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	inline := "rules: {mappings: [{match: a.*, name: b}], x-statsd-admin: {unmatched: drop}}"
	for _, tt := range []struct {
		section  string
		drop     bool
		position string
		seconds  bool
	}{
		{inline, true, "c.yaml:1:39", true},
		{inline + ", unmatched: keep", false, "c.yaml:1:39", true},
		{"file: " + file, false, file + ":1:12", true},
		{"file: " + file + ", watch: true, unmatched: drop", true, file + ":1:12", true},
	} {
		c := mustParse(t, "statsd: {mapping: {"+tt.section+"}}")
		rules, _, err := c.StatsD.Mapping.Load()
		if err != nil {
			t.Fatal(err)
		}
		got := rules.Rule(0).Position
		if strings.HasPrefix(got, "a.yaml") {
			got = "c" + got[1:]
		}
		if rules.Config().DropUnmatched != tt.drop || got != tt.position || c.StatsD.Naming.NetworkSeconds != tt.seconds {
			t.Errorf("%s: drop %t, position %s, seconds %t", tt.section, rules.Config().DropUnmatched, got, c.StatsD.Naming.NetworkSeconds)
		}
	}
	if c := mustParse(t, "statsd: {exposition: {timer_unit: ms}, mapping: {rules: {}}}"); c.StatsD.Naming.NetworkSeconds {
		t.Error("rules override the unit that is given")
	}
	for text, want := range map[string]string{
		"statsd: {mapping: {file: m.yaml, rules: {}}}":                   "a.yaml:1:41: statsd.mapping.rules: only one of file, rules may be set",
		"statsd: {mapping: {unmatched: drop}}":                           "a.yaml:1:31: statsd.mapping.unmatched: has no effect without file or rules",
		"statsd: {mapping: {watch: true}}":                               "a.yaml:1:27: statsd.mapping.watch: there is no file to watch",
		"statsd: {mapping: {rules: {mappings: [{match: a}]}}}":           "a.yaml:1:39: statsd.mapping.rules.mappings[0].name: required field is not set",
		"statsd: {mapping: {rules: {mappings: [{match: -a, name: a}]}}}": `a.yaml:1:47: statsd.mapping.rules.mappings[0].match: "-a" is not a glob: segment "-a" begins with a hyphen; use match_type: regex`,
	} {
		if _, err := Parse("a.yaml", []byte(text), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// TestExamplesOfMappingFiles loads files in the style that users write.
func TestExamplesOfMappingFiles(t *testing.T) {
	for text, want := range map[string]string{
		"mappings:\n- match: \"test.web-server.*\"\n  name: \"$1\"\n":                                                      "foo",
		"mappings:\n- match: \"test\\\\.(.*)\"\n  match_type: regex\n  name: \"${1}\"\n":                                   "web_server_foo",
		"defaults: {match_type: regex}\nmappings:\n- {match: 'web-server\\.(\\w+)', name: '${1}_total', labels: {ab: $0}}": "foo_total",
	} {
		rules, _, err := ParseMapping("a.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		m, ok := rules.Find("test.web-server.foo", mapping.Counter)
		if got := strings.NewReplacer(".", "_", "-", "_").Replace(m.Name()); !ok || got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// FuzzMappingFile checks that any text is refused with a position, or gives rules
// that match names without a panic.
func FuzzMappingFile(f *testing.F) {
	for _, name := range []string{"full.yaml", "wrong.yaml"} {
		f.Add(string(readTestdata(f, name)), "test.dispatcher.a.b.c")
	}
	f.Add("mappings: [{match: a.*, name: $1, labels: {aa: $1$2}}]", "a.b")
	f.Add("mappings: [{match: (a)|b, name: a, labels: {aa: \"${1}\"}, match_type: regex}]", "b")
	f.Add("mappings: [{match: 'a*b*c.*', name: b, x-statsd-admin: {partial_globs: true}}]", "axbyc.d")
	f.Fuzz(func(t *testing.T, text, name string) {
		rules, _, err := ParseMapping("a.yaml", []byte(text))
		if err != nil {
			var errs *Errors
			if !errors.As(err, &errs) || len(errs.List) == 0 || errs.List[0].Position.File != "a.yaml" {
				t.Fatalf("error without a position: %v", err)
			}
			return
		}
		for k := mapping.Counter; k <= mapping.Set; k++ {
			m, ok := rules.Find(name, k)
			if !ok {
				continue
			}
			if _, shadowed := rules.Shadowed(m.Index()); shadowed && !m.Rule().Regex {
				t.Errorf("%q: rule %d applies, but is called shadowed", name, m.Index())
			}
			_ = m.Name()
			for i := range m.Rule().Labels {
				_ = m.Label(i)
			}
			if o := m.Rule().Observe; o == nil || len(o.Quantiles)+len(o.Buckets) == 0 {
				t.Error(fmt.Sprint("rule without a form: ", o))
			}
		}
	})
}
