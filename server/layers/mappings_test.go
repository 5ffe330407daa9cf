package layers

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMappingsAsFractions: a mapping is a fraction if each member is a numerator or a
// denominator with a good value, and a text otherwise, whichever member is wrong.
func TestMappingsAsFractions(t *testing.T) {
	none := FractionalPercent{77, TenThousand}
	for _, tt := range []struct {
		value map[string]any
		text  string
		want  FractionalPercent
	}{
		{map[string]any{}, "{}", FractionalPercent{0, Hundred}},
		{map[string]any{"numerator": 5}, `{"numerator":5}`, FractionalPercent{5, Hundred}},
		{map[string]any{"numerator": "5"}, `{"numerator":"5"}`, FractionalPercent{5, Hundred}},
		{map[string]any{"numerator": 5.0, "denominator": "MILLION"}, `{"denominator":"MILLION","numerator":5}`, FractionalPercent{5, Million}},
		{map[string]any{"numerator": int64(5), "denominator": uint64(1)}, `{"denominator":1,"numerator":5}`, FractionalPercent{5, TenThousand}},
		{map[string]any{"denominator": 2}, `{"denominator":2}`, FractionalPercent{0, Million}},
		{map[string]any{"numerator": 5.5, "denominator": 2}, `{"denominator":2,"numerator":5.5}`, none},
		{map[string]any{"numerator": -5, "denominator": 2}, `{"denominator":2,"numerator":-5}`, none},
		{map[string]any{"numerator": true, "denominator": 2}, `{"denominator":2,"numerator":true}`, none},
		{map[string]any{"numerator": "five", "denominator": 2}, `{"denominator":2,"numerator":"five"}`, none},
		{map[string]any{"numerator": 5, "denominator": 3}, `{"denominator":3,"numerator":5}`, none},
		{map[string]any{"numerator": 5, "denominator": "TEN"}, `{"denominator":"TEN","numerator":5}`, none},
		{map[string]any{"numerator": 5, "denominater": 1}, `{"denominater":1,"numerator":5}`, none},
		{map[string]any{"a": 5, "denominator": 1}, `{"a":5,"denominator":1}`, none},
		{map[string]any{"numerator": map[string]any{}, "denominator": 1}, `{"denominator":1,"numerator":{}}`, none},
	} {
		for range 5 { // maps have no order
			l := mustNew(t, Config{Layers: []Layer{{Name: "s", Kind: Static, Values: map[string]any{
				"a": 1, "m": map[string]any{"k": tt.value, "b": true}, "z": "x",
			}}}})
			s := l.Snapshot()
			if text, _ := s.Get("m.k"); text != tt.text {
				t.Fatalf("%v: text %s, want %s", tt.value, text, tt.text)
			}
			if got := s.FractionalPercent("m.k", none); got != tt.want {
				t.Fatalf("%v: %v, want %v", tt.value, got, tt.want)
			}
			if s.Len() != 4 {
				t.Fatalf("%v: %d values, want 4", tt.value, s.Len())
			}
		}
	}
}

// TestWrongValuesAreNamed wherever they are among good ones.
func TestWrongValuesAreNamed(t *testing.T) {
	for _, values := range []map[string]any{
		{"a": []any{}, "b": 1, "c": map[string]any{"d": 1}}, {"a": 1, "b": nil, "c": map[string]any{"d": 1}},
		{"a": 1, "b": 1, "c": map[string]any{"d": []any{}, "e": 1, "f": map[string]any{"g": 1}}},
		{"a": 1, "c": map[string]any{"d": 1, "e": 1, "f": map[string]any{"g": nil, "h": 2}}},
	} {
		for range 5 {
			if _, err := New(Config{Layers: []Layer{{Name: "s", Kind: Static, Values: values}}}); err == nil {
				t.Fatalf("%v is accepted", values)
			}
		}
	}
}

// TestDirectoriesSkipOddEntries: links to nowhere and devices keep nothing behind them from
// being read.
func TestDirectoriesSkipOddEntries(t *testing.T) {
	dir := t.TempDir()
	for _, err := range []error{
		os.Symlink("nowhere", filepath.Join(dir, "0")), os.Symlink(os.DevNull, filepath.Join(dir, "1")), os.Mkdir(filepath.Join(dir, "2"), 0o700),
		os.Mkdir(filepath.Join(dir, "3"), 0o700), os.WriteFile(filepath.Join(dir, "3", "a"), []byte("5\n"), 0o600),
		os.Symlink(filepath.Join(dir, "3", "a"), filepath.Join(dir, "4")), os.WriteFile(filepath.Join(dir, "5"), []byte("# note\nx"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s := mustNew(t, Config{Layers: []Layer{{Name: "d", Kind: Disk, SymlinkRoot: dir}}}).Snapshot()
	for key, want := range map[string]string{"3.a": "5", "4": "5", "5": "x"} {
		if got, _ := s.Get(key); got != want {
			t.Errorf("%s = %q, want %q", key, got, want)
		}
	}
	if s.Len() != 3 {
		t.Errorf("%d values, want 3", s.Len())
	}
}
