package layers

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStackOfAllKinds(t *testing.T) {
	root := tree(t, map[string]string{
		"main/limits/max_sessions":        "300\n",
		"main/file1":                      "hello override ",
		"main/only_disk":                  "# comment\nx",
		"override/cluster-a/file1":        "from the override",
		"override/cluster-b/file1":        "other cluster",
		"override/cluster-a/limits/empty": "# nothing\n",
	})
	stats, s := newStats()
	l := mustNew(t, Config{ServiceCluster: "cluster-a", Stats: s, Layers: []Layer{
		{Name: "base", Kind: Static, Values: map[string]any{"limits": map[string]any{"max_sessions": 200.0, "empty": "static"}, "rtds": true}},
		{Name: "disk", Kind: Disk, SymlinkRoot: root, Subdirectory: "main"},
		{Name: "override", Kind: Disk, SymlinkRoot: root, Subdirectory: "override", AppendServiceCluster: true},
		{Name: "missing", Kind: Disk, SymlinkRoot: root, Subdirectory: "nowhere"},
		{Name: "rtds", Kind: RTDS},
		{Name: "admin", Kind: Admin},
	}})
	if err := l.SetLayer("rtds", map[string]any{"rtds": 0.5, "new": "n"}); err != nil {
		t.Fatal(err)
	}
	if err := l.Modify(map[string]string{"limits.max_sessions": "350", "a": "b"}); err != nil {
		t.Fatal(err)
	}
	want := `["base" "disk" "override" "rtds" "admin"]
a: ["" "" "" "" "b"] = "b"
file1: ["" "hello override" "from the override" "" ""] = "from the override"
limits.empty: ["static" "" "" "" ""] = "static"
limits.max_sessions: ["200" "300" "" "" "350"] = "350"
new: ["" "" "" "n" ""] = "n"
only_disk: ["" "x" "" "" ""] = "x"
rtds: ["true" "" "" "0.5" ""] = "0.5"
`
	if diff := cmp.Diff(want, dump(l.Snapshot())); diff != "" {
		t.Error(diff)
	}
	for key := range l.Snapshot().All() {
		if key != "a" {
			t.Errorf("the first key is %s", key)
		}
		break // must not go on
	}
	if got := stats.line(); got != "3 0 3 0 1 7 5" {
		t.Errorf("stats %s", got)
	}
}

// TestPreview checks that a preview equals what Modify makes of the same values, and
// changes nothing.
func TestPreview(t *testing.T) {
	stats, s := newStats()
	l := mustNew(t, Config{Stats: s, MaxOverrides: 2, Layers: []Layer{
		{Name: "base", Kind: Static, Values: map[string]any{"k": "base", "f": map[string]any{"numerator": 3, "denominator": "HUNDRED"}}},
		{Name: "admin", Kind: Admin}, {Name: "last", Kind: Static, Values: map[string]any{"high": "fixed"}},
	}})
	before, line := l.Snapshot(), stats.line()
	values := map[string]string{"k": "over", "high": "7"}
	preview, err := l.Preview(values)
	if err != nil || l.Snapshot() != before || stats.line() != line || len(overrides(l)) != 0 {
		t.Fatalf("a preview changed something: %v", err)
	}
	if err := l.Modify(values); err != nil {
		t.Fatal(err)
	}
	if next := l.Snapshot(); dump(preview) != dump(next) || !reflect.DeepEqual(preview.merged(), next.merged()) {
		t.Errorf("preview %s, want %s", dump(preview), dump(next))
	}
	if got := overrides(l); !maps.Equal(got, values) {
		t.Errorf("overrides %v, want %v", got, values)
	}
	var limit *LimitError
	if _, err := l.Preview(map[string]string{"third": "x"}); !errors.As(err, &limit) {
		t.Errorf("a preview over the limit: %v", err)
	}
	fixed := mustNew(t, Config{Layers: []Layer{{Name: "base", Kind: Static}}})
	if a, b := l.Snapshot().AdminLayer(), fixed.Snapshot().AdminLayer(); a != 1 || b != -1 {
		t.Errorf("the admin layers are %d and %d, want 1 and -1", a, b)
	}
	if _, err := fixed.Preview(values); !errors.Is(err, ErrNoAdminLayer) || len(overrides(fixed)) != 0 {
		t.Errorf("without an admin layer: %v", err)
	}
}

// TestModifyReadsDisk checks that an override, and its preview, show the files of disk
// layers as they are now.
func TestModifyReadsDisk(t *testing.T) {
	dir := tree(t, map[string]string{"k": "1"})
	l := mustNew(t, Config{Layers: []Layer{{Name: "disk", Kind: Disk, SymlinkRoot: dir}, {Name: "admin", Kind: Admin}}})
	if err := os.WriteFile(filepath.Join(dir, "k"), []byte("2"), 0o600); err != nil {
		t.Fatal(err)
	}
	values := map[string]string{"other": "x"}
	preview, err := l.Preview(values)
	if err != nil {
		t.Fatal(err)
	}
	before := l.Snapshot().Uint("k", 0)
	if err := l.Modify(values); err != nil {
		t.Fatal(err)
	}
	if after := l.Snapshot().Uint("k", 0); preview.Uint("k", 0) != 2 || before != 1 || after != 2 {
		t.Errorf("k is %d in a preview, %d before the override and %d after it, want 2, 1 and 2", preview.Uint("k", 0), before, after)
	}
	if got := dump(preview); got != dump(l.Snapshot()) {
		t.Errorf("preview %s, want %s", got, dump(l.Snapshot()))
	}
}

func TestAdminLayerDeletes(t *testing.T) {
	stats, s := newStats()
	l := mustNew(t, Config{Stats: s, Layers: []Layer{
		{Name: "base", Kind: Static, Values: map[string]any{"k": "base"}}, {Name: "admin", Kind: Admin},
	}})
	steps := []struct {
		set   map[string]string
		want  string
		stats string
	}{
		{map[string]string{"k": "over", "l": "x\ny"}, "k=over l=x\ny", "2 0 0 2 1 2 2"},
		{map[string]string{"unknown": ""}, "k=over l=x\ny", "3 0 0 3 1 2 2"},
		{map[string]string{"l": ""}, "k=over", "4 0 0 4 1 1 2"},
		{map[string]string{"k": ""}, "k=base", "5 0 0 5 0 1 2"},
		{map[string]string{"k": ""}, "k=base", "6 0 0 6 0 1 2"},
	}
	for _, step := range steps {
		if err := l.Modify(step.set); err != nil {
			t.Fatal(err)
		}
		var got []string
		for key, v := range l.Snapshot().All() {
			got = append(got, key+"="+v.Final)
		}
		if strings.Join(got, " ") != step.want || stats.line() != step.stats {
			t.Errorf("after %v: %q, stats %s; want %q, %s", step.set, got, stats.line(), step.want, step.stats)
		}
	}
}

func TestAdminLayerAlone(t *testing.T) {
	l := mustNew(t, Config{Layers: []Layer{{Name: "admin", Kind: Admin}}})
	if err := l.Modify(map[string]string{"k": "v"}); err != nil {
		t.Fatal(err)
	}
	next, err := l.Preview(map[string]string{"l": "w"})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(overrides(l), next.Len()); got != "map[k:v] 2" {
		t.Errorf("overrides and length of a preview: %s", got)
	}
}

func TestConfigurationErrors(t *testing.T) {
	static := func(v any) []Layer {
		return []Layer{{Name: "s", Kind: Static, Values: map[string]any{"a": map[string]any{"k": v}}}}
	}
	tests := []struct {
		name   string
		layers []Layer
		want   string
	}{
		{"duplicate", []Layer{{Name: "a", Kind: Admin}, {Name: "a", Kind: RTDS}}, "Duplicate layer name: a"},
		{"admins", []Layer{{Name: "a", Kind: Admin}, {Name: "b", Kind: Admin}}, "Too many admin layers specified in LayeredRuntime, at most one may be specified"},
		{"kind", []Layer{{Name: "a"}}, "layer specifier not set"},
		{"list", static([]any{1}), "Invalid runtime entry value for a.k"},
		{"null", static(nil), "Invalid runtime entry value for a.k"},
		{"nan", static(math.NaN()), "Invalid runtime entry value for a.k"},
		{"fraction", static(map[string]any{"numerator": math.Inf(1)}), "Invalid runtime entry value for a.k"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := New(Config{Layers: tt.layers}); err == nil || err.Error() != tt.want {
				t.Errorf("err = %v, want %s", err, tt.want)
			}
		})
	}
}

func TestChangeErrors(t *testing.T) {
	l := mustNew(t, Config{Layers: []Layer{{Name: "r", Kind: RTDS}, {Name: "s", Kind: Static}}})
	if err := l.Modify(map[string]string{"a": "b"}); !errors.Is(err, ErrNoAdminLayer) || err.Error() != "No admin layer specified" {
		t.Errorf("err = %v", err)
	}
	if err := l.SetLayer("s", nil); err == nil || err.Error() != `layers: no RTDS layer named "s"` {
		t.Errorf("err = %v", err)
	}
	if err := l.SetLayer("r", map[string]any{"a": "1"}); err != nil {
		t.Fatal(err)
	}
	if err := l.SetLayer("r", map[string]any{"a": []any{}}); err == nil || err.Error() != "Invalid runtime entry value for a" {
		t.Errorf("err = %v", err)
	}
	if got, _ := l.Snapshot().Get("a"); got != "1" {
		t.Errorf("a refused update changed the layer: %q", got)
	}
	if err := l.SetLayer("r", nil); err != nil || l.Snapshot().Len() != 0 {
		t.Errorf("layer not emptied: %v", err)
	}
}

func TestOverridesAreBounded(t *testing.T) {
	stats, s := newStats()
	l := mustNew(t, Config{
		Layers: []Layer{{Name: "admin", Kind: Admin}}, Stats: s, MaxOverrides: 2, MaxOverrideBytes: 10,
	})
	for _, step := range []struct {
		values  map[string]string
		limit   string // exceeded
		entries int    // afterwards
	}{
		{map[string]string{"a": "1", "b": "2"}, "", 2},
		{map[string]string{"c": "3"}, "entries", 2},
		{map[string]string{"a": "", "c": "3"}, "", 2},
		{map[string]string{"c": "123456789"}, "bytes", 2},
		{map[string]string{"c": "1234567"}, "", 2},
		{map[string]string{"b": ""}, "", 1},
	} {
		err := l.Modify(step.values)
		var limit *LimitError
		if errors.As(err, &limit) != (step.limit != "") || limit != nil && (limit.What != step.limit || !strings.Contains(limit.Error(), " limit of "+strconv.Itoa(limit.Limit)+" "+step.limit+";")) {
			t.Errorf("%v: %v, want a limit of %q", step.values, err, step.limit)
		}
		if n := l.Snapshot().Len(); n != step.entries {
			t.Errorf("%v: %d entries, want %d", step.values, n, step.entries)
		}
	}
	if n := stats.OverridesRefused.Value(); n != 2 {
		t.Errorf("%d refusals counted", n)
	}
}

// TestDefaultLimits fills the admin layer exactly, with many entries and with a
// long one, and a tree with files.
func TestDefaultLimits(t *testing.T) {
	many := make(map[string]string)
	for i := range 10_000 {
		many[strconv.Itoa(i)] = "1"
	}
	for _, tt := range []struct {
		what       string
		fits, more map[string]string
	}{
		{"entries", many, map[string]string{"x": "1"}},
		{"bytes", map[string]string{"a": strings.Repeat("x", 1<<20-1)}, map[string]string{"a": strings.Repeat("x", 1<<20)}},
	} {
		l := mustNew(t, Config{Layers: []Layer{{Name: "admin", Kind: Admin}}})
		if err := l.Modify(tt.fits); err != nil {
			t.Errorf("%s: %v", tt.what, err)
		}
		var limit *LimitError
		if err := l.Modify(tt.more); !errors.As(err, &limit) || limit.What != tt.what || limit.Limit != map[string]int{"entries": 10_000, "bytes": 1 << 20}[tt.what] {
			t.Errorf("%v, want a limit of %s", err, tt.what)
		}
	}
	for before, ok := range map[int]bool{99_999: true, 100_000: false} {
		cells := make(map[string]cell)
		for i := range before {
			cells[strconv.Itoa(i)] = cell{}
		}
		if err := walk(cells, tree(t, map[string]string{"k": "v"}), "", 1); (err == nil) != ok || err != nil && err.Error() != "more than 100000 files" {
			t.Errorf("one more than %d files: %v", before, err)
		}
	}
	for size, ok := range map[int]bool{1 << 20: true, 1<<20 + 1: false} {
		if _, _, err := readTree(tree(t, map[string]string{"k": strings.Repeat("x", size)})); (err == nil) != ok {
			t.Errorf("a file of %d bytes: %v", size, err)
		}
	}
}
