package convert

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/conftree"
)

// fuzz converts texts: none may make the converter panic, and its output must be a
// YAML document.
func fuzz(f *testing.F, from Program, file string) {
	for name, program := range inputs(f) {
		if program == from && filepath.Ext(name) == filepath.Ext(file) {
			text, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := Convert(from, file, text, nil)
		if err != nil {
			return
		}
		if _, errs := conftree.Parse(r.YAML, conftree.YAML); len(errs) > 0 {
			t.Errorf("%v in\n%s", errs[0], r.YAML)
		}
	})
}

func FuzzStatsd(f *testing.F)       { fuzz(f, Statsd, "c.js") }
func FuzzGostatsdTOML(f *testing.F) { fuzz(f, Gostatsd, "c.toml") }
func FuzzGostatsdYAML(f *testing.F) { fuzz(f, Gostatsd, "c.yaml") }
func FuzzTelegraf(f *testing.F)     { fuzz(f, Telegraf, "c.conf") }
func FuzzBrubeck(f *testing.F)      { fuzz(f, Brubeck, "c.json") }
