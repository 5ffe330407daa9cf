package layers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/statsd-admin/statsd-admin/internal/descriptors"
	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newStats returns stats in a store.
func newStats() (*Stats, Stats) {
	sc := store.New(store.Options{}).Root()
	s := Stats{
		LoadSuccess: sc.Counter("success"), LoadError: sc.Counter("error"), OverrideDirExists: sc.Counter("override"),
		OverrideDirNotExists: sc.Counter("no_override"), OverridesRefused: sc.Counter("refused"),
		AdminOverridesActive: sc.Gauge("active"), NumKeys: sc.Gauge("keys"), NumLayers: sc.Gauge("layers"),
	}
	return &s, s
}

// line prints the stats in the order success, error, override, no override,
// admin overrides, keys, layers.
func (s *Stats) line() string {
	return fmt.Sprint(s.LoadSuccess.Value(), s.LoadError.Value(), s.OverrideDirExists.Value(), s.OverrideDirNotExists.Value(),
		s.AdminOverridesActive.Value(), s.NumKeys.Value(), s.NumLayers.Value())
}

func mustNew(t *testing.T, cfg Config) *Loader {
	t.Helper()
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// dump prints a snapshot: its layers, then "key: values per layer = final".
func dump(s *Snapshot) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q\n", s.Layers())
	for key, v := range s.All() {
		fmt.Fprintf(&b, "%s: %q = %q\n", key, v.PerLayer, v.Final)
	}
	return b.String()
}

// tree creates files below a new directory and returns it.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

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

// overrides returns the values of the admin layer.
func overrides(l *Loader) map[string]string {
	values, s := make(map[string]string), l.Snapshot()
	for key := range s.All() {
		if v := s.Override(key); v != "" {
			values[key] = v
		}
	}
	return values
}

func TestSnapshotsDoNotChange(t *testing.T) {
	l := mustNew(t, Config{Layers: []Layer{{Name: "admin", Kind: Admin}}})
	before := l.Snapshot()
	if err := l.Modify(map[string]string{"k": "1"}); err != nil {
		t.Fatal(err)
	}
	if before.Uint("k", 9) != 9 || l.Snapshot().Uint("k", 9) != 1 {
		t.Error("a snapshot changed, or the new one did not")
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

// TestManyChanges compares the snapshot after each of many random changes with a complete
// build, and checks that earlier snapshots stay as they were.
func TestManyChanges(t *testing.T) {
	stats, s := newStats()
	l := mustNew(t, Config{Stats: s, Layers: []Layer{
		{Name: "base", Kind: Static, Values: map[string]any{"k0": "base", "k1": "", "k2": 5}},
		{Name: "admin", Kind: Admin}, {Name: "last", Kind: Static, Values: map[string]any{"k2": 6, "k3": ""}},
	}})
	random := rand.New(rand.NewPCG(1, 2))
	var earlier *Snapshot
	var was string
	for i := range 1000 {
		values := make(map[string]string)
		for range 1 + random.IntN(3) {
			values["k"+strconv.Itoa(random.IntN(3*maxRecent))] = strconv.Itoa(i)[random.IntN(2):]
		}
		if err := l.Modify(values); err != nil {
			t.Fatal(err)
		}
		now, want := l.Snapshot(), newSnapshot(l.stack)
		if dump(now) != dump(want) || !reflect.DeepEqual(now.merged(), want.merged()) || now.Len() != want.Len() || stats.NumKeys.Value() != uint64(want.Len()) {
			t.Fatalf("change %d, %v: %d keys, gauge %d:\n%s\nwant %d keys:\n%s", i, values, now.Len(), stats.NumKeys.Value(), dump(now), want.Len(), dump(want))
		}
		if size := overrideBytes(l.fixed[l.admin]); l.bytes != size {
			t.Fatalf("change %d, %v: %d bytes of overrides, want %d", i, values, l.bytes, size)
		}
		if i%100 == 0 {
			if earlier != nil && dump(earlier) != was {
				t.Fatalf("an earlier snapshot changed to %s, was %s", dump(earlier), was)
			}
			earlier, was = now, dump(now)
		}
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

// overrideBytes returns the size of the keys and values.
func overrideBytes(cells map[string]cell) (n int) {
	for key, c := range cells {
		n += len(key) + len(c.raw)
	}
	return n
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

func TestTextValues(t *testing.T) {
	const missing = -7.5
	tests := []struct {
		raw                string
		boolean, isBool    bool
		integer            uint64
		isInteger          bool
		double             float64 // missing: none
		fraction           FractionalPercent
		isFractionOrNumber bool
	}{
		{raw: "", double: missing},
		{raw: " ", double: missing},
		{raw: "hello", double: missing},
		{raw: "true", boolean: true, isBool: true, double: missing},
		{raw: "FaLSe", isBool: true, double: missing},
		{raw: "yes", double: missing},
		{raw: "0", isBool: true, isInteger: true, fraction: FractionalPercent{0, 100}, isFractionOrNumber: true},
		{raw: " 5\n", boolean: true, isBool: true, integer: 5, isInteger: true, double: 5, fraction: FractionalPercent{5, 100}, isFractionOrNumber: true},
		{raw: "0.7", isInteger: true, double: 0.7, fraction: FractionalPercent{0, 100}, isFractionOrNumber: true},
		{raw: "3.7", integer: 3, isInteger: true, double: 3.7, fraction: FractionalPercent{3, 100}, isFractionOrNumber: true},
		{raw: "-1", boolean: true, isBool: true, double: -1},
		{raw: "-2.5", double: -2.5},
		{raw: "1e3", boolean: true, isBool: true, integer: 1000, isInteger: true, double: 1000, fraction: FractionalPercent{100, 100}, isFractionOrNumber: true},
		{raw: "18446744073709551615", integer: math.MaxUint64, isInteger: true, double: math.MaxUint64, fraction: FractionalPercent{100, 100}, isFractionOrNumber: true},
		{raw: "9007199254740993", integer: 9007199254740993, isInteger: true, double: 9007199254740992, fraction: FractionalPercent{100, 100}, isFractionOrNumber: true},
		{raw: "1e30", double: 1e30},
		{raw: "1.8446744073709549568e19", boolean: false, integer: 18446744073709549568, isInteger: true, double: 18446744073709549568, fraction: FractionalPercent{100, 100}, isFractionOrNumber: true},
		{raw: "1.8446744073709551616e19", double: 18446744073709551616},
		{raw: "2147483646", boolean: true, isBool: true, integer: math.MaxInt32 - 1, isInteger: true, double: math.MaxInt32 - 1, fraction: FractionalPercent{100, 100}, isFractionOrNumber: true},
		{raw: "2147483647", integer: math.MaxInt32, isInteger: true, double: math.MaxInt32, fraction: FractionalPercent{100, 100}, isFractionOrNumber: true},
		{raw: "-2147483646", boolean: true, isBool: true, double: -math.MaxInt32 + 1},
		{raw: "-2147483647", double: -math.MaxInt32},
		{raw: "0x10", double: missing},
		{raw: "1_000", double: missing},
		{raw: "inf", double: missing},
		{raw: "NaN", double: missing},
		{raw: "5s", double: missing},
		{raw: "numerator: 5\ndenominator: TEN_THOUSAND", double: missing, fraction: FractionalPercent{5, TenThousand}, isFractionOrNumber: true},
		{raw: "{numerator: 5, denominator: MILLION}", double: missing, fraction: FractionalPercent{5, Million}, isFractionOrNumber: true},
		{raw: `{"numerator": "5", "denominator": "HUNDRED"}`, double: missing, fraction: FractionalPercent{5, Hundred}, isFractionOrNumber: true},
		{raw: "{numerator: 5, denominator: 0}", double: missing, fraction: FractionalPercent{5, Hundred}, isFractionOrNumber: true},
		{raw: "{numerator: 5, denominator: 2}", double: missing, fraction: FractionalPercent{5, Million}, isFractionOrNumber: true},
		{raw: "denominator: 1", double: missing, fraction: FractionalPercent{0, TenThousand}, isFractionOrNumber: true},
		{raw: "numerator: 150", double: missing, fraction: FractionalPercent{150, Hundred}, isFractionOrNumber: true},
		{raw: "{}", double: missing, fraction: FractionalPercent{0, Hundred}, isFractionOrNumber: true},
		{raw: "{numerator: 5, , denominator: 1}", double: missing, fraction: FractionalPercent{5, TenThousand}, isFractionOrNumber: true},
		{raw: " \nnumerator: 5\n \ndenominator: 1\n", double: missing, fraction: FractionalPercent{5, TenThousand}, isFractionOrNumber: true},
		{raw: "{numerator: 5}\n", double: missing, fraction: FractionalPercent{5, Hundred}, isFractionOrNumber: true},
		{raw: "numerator: 5, denominator: 1", double: missing},
		{raw: "numerator", double: missing},
		{raw: "numerator: 4294967295", double: missing, fraction: FractionalPercent{math.MaxUint32, Hundred}, isFractionOrNumber: true},
		{raw: "numerator: -5", double: missing},
		{raw: "numerator: 4294967296", double: missing},
		{raw: "numerator: 5\ndenominator: BILLION", double: missing},
		{raw: "numerator: 5\nextra: 1", double: missing},
		{raw: "numerator: 5\nnumerator: 6", double: missing},
		{raw: "{numerator: 5", double: missing},
		{raw: "numerator: 55", double: missing, fraction: FractionalPercent{55, Hundred}, isFractionOrNumber: true}, // no quotes, though the ends are the same
		{raw: "numerator: '5'\ndenominator: \"MILLION\"", double: missing, fraction: FractionalPercent{5, Million}, isFractionOrNumber: true},
		{raw: "numerator: '5\"", double: missing},
		{raw: "numerator: \"", double: missing},
		{raw: "", double: missing},
	}
	fallback := FractionalPercent{77, TenThousand}
	for _, tt := range tests {
		t.Run(tt.raw, func(t *testing.T) {
			l := mustNew(t, Config{Layers: []Layer{{Name: "s", Kind: Static, Values: map[string]any{"k": tt.raw}}}})
			s := l.Snapshot()
			for _, byDefault := range []bool{true, false} {
				want := byDefault
				if tt.isBool {
					want = tt.boolean
				}
				if got := s.Bool("k", byDefault); got != want {
					t.Errorf("Bool = %v, want %v", got, want)
				}
			}
			wantInt := uint64(99)
			if tt.isInteger {
				wantInt = tt.integer
			}
			if got := s.Uint("k", 99); got != wantInt {
				t.Errorf("Int = %d, want %d", got, wantInt)
			}
			if got := s.Float("k", missing); got != tt.double {
				t.Errorf("Double = %v, want %v", got, tt.double)
			}
			wantFraction := fallback
			if tt.isFractionOrNumber {
				wantFraction = tt.fraction
			}
			if got := s.FractionalPercent("k", fallback); got != wantFraction {
				t.Errorf("FractionalPercent = %v, want %v", got, wantFraction)
			}
		})
	}
}

func TestStaticValues(t *testing.T) {
	l := mustNew(t, Config{Layers: []Layer{{Name: "s", Kind: Static, Values: map[string]any{
		"number": 5.0, "quarter": 0.25, "million": 1e6, "long": 1234567.0, "third": 1.0 / 3, "minus": -1.5, "round": 1.5000001,
		"whole": 7, "big": uint64(math.MaxUint64), "yes": true, "no": false, "text": "t",
		"fraction": map[string]any{"numerator": 5.0, "denominator": "TEN_THOUSAND"},
		"odd":      map[string]any{"numerator": 5.0, "other": 1.0},
		"half":     map[string]any{"numerator": 0.5},
		"none":     map[string]any{},
		"deep":     map[string]any{"er": map[string]any{"est": 1.0}},
	}}}})
	want := `["s"]
big: ["1.84467e+19"] = "1.84467e+19"
deep.er.est: ["1"] = "1"
fraction: ["{\"denominator\":\"TEN_THOUSAND\",\"numerator\":5}"] = "{\"denominator\":\"TEN_THOUSAND\",\"numerator\":5}"
half: ["{\"numerator\":0.5}"] = "{\"numerator\":0.5}"
long: ["1.23457e+06"] = "1.23457e+06"
million: ["1e+06"] = "1e+06"
minus: ["-1.5"] = "-1.5"
no: ["false"] = "false"
none: ["{}"] = "{}"
number: ["5"] = "5"
odd: ["{\"numerator\":5,\"other\":1}"] = "{\"numerator\":5,\"other\":1}"
quarter: ["0.25"] = "0.25"
round: ["1.5"] = "1.5"
text: ["t"] = "t"
third: ["0.333333"] = "0.333333"
whole: ["7"] = "7"
yes: ["true"] = "true"
`
	s := l.Snapshot()
	if diff := cmp.Diff(want, dump(s)); diff != "" {
		t.Error(diff)
	}
	if s.Uint("long", 0) != 1234567 || s.Uint("big", 0) != math.MaxUint64 || s.Float("third", 0) != 1.0/3 {
		t.Error("numbers lost digits that only the text loses")
	}
	other := FractionalPercent{1, Million}
	if s.FractionalPercent("fraction", other) != (FractionalPercent{5, TenThousand}) || s.FractionalPercent("odd", other) != other ||
		s.FractionalPercent("half", other) != other || s.FractionalPercent("none", other) != (FractionalPercent{0, Hundred}) {
		t.Error("fractions wrong")
	}
}

// TestNumbersOfAllTypes expects the text, the whole number and the number of each type of
// Go, at the bounds of what a type holds exactly.
func TestNumbersOfAllTypes(t *testing.T) {
	const none = 9
	for _, tt := range []struct {
		value   any
		text    string
		integer uint64 // none: not a whole number that is at least 0
		double  float64
	}{
		{0.0, "0", 0, 0}, {0.75, "0.75", 0, 0.75}, {-0.5, "-0.5", none, -0.5}, {float32(2.5), "2.5", 2, 2.5},
		{0, "0", 0, 0}, {-1, "-1", none, -1}, {1<<53 + 1, "9.0072e+15", 1<<53 + 1, 1 << 53},
		{int64(0), "0", 0, 0}, {int64(-1), "-1", none, -1}, {int64(1<<53 + 1), "9.0072e+15", 1<<53 + 1, 1 << 53},
		{int32(-7), "-7", none, -7}, {int32(7), "7", 7, 7}, {uint32(8), "8", 8, 8},
		{uint64(0), "0", 0, 0}, {uint64(1<<53 + 1), "9.0072e+15", 1<<53 + 1, 1 << 53}, {float64(1 << 64), "1.84467e+19", none, 1 << 64},
	} {
		l := mustNew(t, Config{Layers: []Layer{{Name: "s", Kind: Static, Values: map[string]any{"k": tt.value}}}})
		text, _ := l.Snapshot().Get("k")
		if integer, double := l.Uint("k", none), l.Float("k", none); text != tt.text || integer != tt.integer || double != tt.double {
			t.Errorf("%T %v: %q, %d, %v; want %q, %d, %v", tt.value, tt.value, text, integer, double, tt.text, tt.integer, tt.double)
		}
	}
}

func TestFeatureEnabled(t *testing.T) {
	l := mustNew(t, Config{Layers: []Layer{{Name: "a", Kind: Admin}}})
	tests := []struct {
		raw  string
		on   []uint64
		off  []uint64
		dflt FractionalPercent
	}{
		{"30", []uint64{0, 29, 100, 129}, []uint64{30, 99, 130}, FractionalPercent{}},
		{"100", []uint64{0, 99, math.MaxUint64}, nil, FractionalPercent{}},
		{"4294967396", []uint64{0, 99}, nil, FractionalPercent{}}, // 2^32+100
		{"0", nil, []uint64{0, 1}, FractionalPercent{100, Hundred}},
		{"{numerator: 1, denominator: TEN_THOUSAND}", []uint64{0, 10000}, []uint64{1, 9999}, FractionalPercent{}},
		{"garbage", []uint64{0}, []uint64{1}, FractionalPercent{1, Million}},
		{"garbage", []uint64{49, 149}, []uint64{50, 150}, FractionalPercent{Numerator: 50}},
	}
	for _, tt := range tests {
		if err := l.Modify(map[string]string{"k": tt.raw}); err != nil {
			t.Fatal(err)
		}
		for _, r := range tt.on {
			if !l.Snapshot().FeatureEnabled("k", tt.dflt, r) {
				t.Errorf("%q: off for %d", tt.raw, r)
			}
		}
		for _, r := range tt.off {
			if l.Snapshot().FeatureEnabled("k", tt.dflt, r) {
				t.Errorf("%q: on for %d", tt.raw, r)
			}
		}
	}
}

func TestFileText(t *testing.T) {
	tests := []struct{ file, want string }{
		{"", ""}, {"hello", "hello"}, {"hello \t\n", "hello"}, {"# comment\nhello\n", "hello"},
		{"# only\n# comments\n", ""}, {"a\nb\n", "a\nb"}, {"a \nb ", "a \nb"}, {" # not a comment", " # not a comment"},
		{"a\n#c\nb\n#d", "a\nb"}, {"\n\n", ""}, {"a\r\n", "a"},
	}
	for _, tt := range tests {
		if got := fileText([]byte(tt.file)); got != tt.want {
			t.Errorf("fileText(%q) = %q, want %q", tt.file, got, tt.want)
		}
	}
}

func TestBrokenTreesAreLeftOut(t *testing.T) {
	for _, root := range []string{filepath.Join(t.TempDir(), "none"), filepath.Join(tree(t, map[string]string{"file": "v"}), "file")} {
		if cells, exists, err := readTree(root); exists || err != nil || cells != nil {
			t.Errorf("%s is no directory: %v, %t, %v", root, cells, exists, err)
		}
	}
	deep := strings.Repeat("d/", 15)
	tests := []struct {
		name  string
		files map[string]string
		link  [2]string
		want  string // part of the log; "" when the layer loads
	}{
		{"depth-16", map[string]string{deep + "k": "v"}, [2]string{}, ""},
		{"depth-17", map[string]string{deep + "d/k": "v"}, [2]string{}, "Walk recursion depth exceeded 16"},
		{"link-to-proc", map[string]string{"k": "v"}, [2]string{"/proc/self", "p"}, "Invalid path: "},
		{"link-to-dev-file", map[string]string{"k": "v"}, [2]string{"/proc/version", "p"}, "Invalid path: "},
		{"link-to-self", map[string]string{"k": "v"}, [2]string{".", "self"}, "Walk recursion depth exceeded 16"},
		{"link-to-nowhere", map[string]string{"k": "v"}, [2]string{"/nowhere/at/all", "p"}, ""},
		{"device", map[string]string{"k": "v"}, [2]string{"/dev/zero", "p"}, ""}, // not a regular file: skipped
		{"reserved", map[string]string{"a/numerator": "v"}, [2]string{}, `"numerator" is a reserved word`},
		{"reserved-dir", map[string]string{"denominator/k": "v"}, [2]string{}, `"denominator" is a reserved word`},
		{"large", map[string]string{"k": strings.Repeat("x", maxFileBytes)}, [2]string{}, ""},
		{"too-large", map[string]string{"k": strings.Repeat("x", maxFileBytes+1)}, [2]string{}, "more than 1048576 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := tree(t, tt.files)
			if tt.link[1] != "" {
				if err := os.Symlink(tt.link[0], filepath.Join(root, tt.link[1])); err != nil {
					t.Fatal(err)
				}
			}
			_, exists, err := readTree(root)
			if !exists || (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("exists %v, err %v, want %q", exists, err, tt.want)
			}
			stats, s := newStats()
			l := mustNew(t, Config{Stats: s, Layers: []Layer{{Name: "d", Kind: Disk, SymlinkRoot: root}, {Name: "a", Kind: Admin}}})
			want, wantStats := "d a", "1 0 0 1"
			if tt.want != "" {
				want, wantStats = "a", "0 1 0 1"
			}
			if got := strings.Join(l.Snapshot().Layers(), " "); got != want || !strings.HasPrefix(stats.line(), wantStats) {
				t.Errorf("layers %q, stats %s", got, stats.line())
			}
		})
	}
	for _, dir := range []string{"/proc", "/sys/kernel", "/dev"} {
		if _, _, err := readTree(dir); err == nil || err.Error() != "Invalid path: "+dir {
			t.Errorf("readTree(%s): %v", dir, err)
		}
	}
}

// TestSymlinkSwap publishes trees by renaming a link into place, as documented.
func TestSymlinkSwap(t *testing.T) {
	one, two := tree(t, map[string]string{"k": "1"}), tree(t, map[string]string{"k": "2", "l": "new"})
	dir := t.TempDir()
	current := filepath.Join(dir, "current")
	swap := func(target string) {
		t.Helper()
		next := filepath.Join(dir, "next")
		if err := os.Symlink(target, next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, current); err != nil {
			t.Fatal(err)
		}
	}
	swap(one)
	changed := make(chan struct{}, 100)
	l := mustNew(t, Config{Changed: func() { changed <- struct{}{} }, Layers: []Layer{
		{Name: "a", Kind: Disk, SymlinkRoot: current}, {Name: "b", Kind: Disk, SymlinkRoot: current, Subdirectory: "none"},
	}})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	swap(two) // before the watch begins
	go func() { done <- l.Run(ctx) }()
	wait := func() {
		t.Helper()
		select {
		case <-changed:
		case <-time.After(30 * time.Second):
			t.Fatal("no reload")
		}
	}
	wait()
	if got, _ := l.Snapshot().Get("k"); got != "2" {
		t.Errorf("k = %q", got)
	}
	swap(one)
	wait()
	if got, _ := l.Snapshot().Get("k"); got != "1" || l.Snapshot().Len() != 1 {
		t.Errorf("k = %q, %d keys", got, l.Snapshot().Len())
	}
	// An edit in place only shows in the next build, whatever causes it.
	if err := os.WriteFile(filepath.Join(one, "k"), []byte("edited"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, _ := l.Snapshot().Get("k"); got != "1" {
		t.Errorf("k = %q after an edit in place", got)
	}
	swap(one) // another link to the same tree
	waittest.Equal(t, "k after another link", "edited", shown(l))
	if err := os.WriteFile(filepath.Join(one, "k"), []byte("again"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.Reload()
	if got, _ := l.Snapshot().Get("k"); got != "again" {
		t.Errorf("k = %q after Reload", got)
	}
	descriptors.Check(t, "reload", l.Reload)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestChangesPanic: a callback that panics is still called for the next values.
func TestChangesPanic(t *testing.T) {
	dir := t.TempDir()
	current := filepath.Join(dir, "current")
	panics := guardtest.New(t)
	var wild atomic.Bool
	l := mustNew(t, Config{
		Layers: []Layer{{Name: "a", Kind: Disk, SymlinkRoot: current}}, Logger: panics.Logger(),
		Changed: func() {
			if wild.Load() {
				panic(guardtest.Canary)
			}
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	swap := func(value string) {
		t.Helper()
		next := filepath.Join(dir, "next")
		if err := os.Symlink(tree(t, map[string]string{"k": value}), next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, current); err != nil {
			t.Fatal(err)
		}
	}
	wild.Store(true)
	swap("1")
	go func() { done <- l.Run(ctx) }()
	panics.Caught("change of runtime values")
	wild.Store(false)
	swap("2")
	waittest.Equal(t, "k", "2", shown(l))
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// shown returns a function that returns the value of the key "k".
func shown(l *Loader) func() string {
	return func() string {
		v, _ := l.Snapshot().Get("k")
		return v
	}
}

// lines receives the lines of a log, and drops what does not fit.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	select {
	case l <- string(p):
	default:
	}
	return len(p), nil
}

// TestDirectoryOfTheLinkIsMadeAgain removes the directory that holds the link to a
// tree, and recreates it with a link to another tree.
func TestDirectoryOfTheLinkIsMadeAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	current := filepath.Join(dir, "current")
	log := make(lines, 100)
	l := mustNew(t, Config{Layers: []Layer{{Name: "a", Kind: Disk, SymlinkRoot: current}}, Logger: slog.New(slog.NewTextHandler(log, nil))})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- l.Run(ctx) }() // there is no directory yet
	if line := <-log; !strings.Contains(line, "cannot watch runtime directory yet") || !strings.Contains(line, dir) {
		t.Errorf("the log says %s", line)
	}
	for _, value := range []string{"1", "2", "3"} {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(tree(t, map[string]string{"k": value}), current); err != nil {
			t.Fatal(err)
		}
		waittest.Equal(t, "k", value, shown(l))
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestRunWithoutDiskReturns(t *testing.T) {
	l := mustNew(t, Config{Layers: []Layer{{Name: "a", Kind: Admin}}})
	if err := l.Run(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestChangesAndReads: every snapshot contains complete requests only.
func TestChangesAndReads(t *testing.T) {
	l := mustNew(t, Config{Layers: []Layer{{Name: "r", Kind: RTDS}, {Name: "a", Kind: Admin}}})
	var writers, readers sync.WaitGroup
	var stop atomic.Bool
	for range 4 {
		readers.Go(func() {
			for !stop.Load() {
				s := l.Snapshot()
				if x, y := s.Uint("x", 0), s.Uint("y", 0); x != y {
					t.Errorf("x %d, y %d in one snapshot", x, y)
					return
				}
			}
		})
	}
	for w := range 3 {
		writers.Go(func() {
			for i := range 200 {
				n := strconv.Itoa(w*1000 + i)
				if w == 0 {
					if err := l.SetLayer("r", map[string]any{"x": n, "y": n}); err != nil {
						t.Error(err)
					}
				} else if err := l.Modify(map[string]string{"x": n, "y": n}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	stop.Store(true)
	readers.Wait()
}

func TestReadsDoNotAllocate(t *testing.T) {
	l := mustNew(t, Config{Layers: []Layer{{Name: "s", Kind: Static, Values: map[string]any{"i": 5.0, "b": true}}}})
	n := testing.AllocsPerRun(100, func() {
		s := l.Snapshot()
		if !s.Bool("b", false) || s.Uint("i", 0) != 5 || s.Float("none", 1) != 1 || s.FeatureEnabled("i", FractionalPercent{}, 7) {
			t.Error("wrong values")
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzRuntimeFile checks that the text of any file has no leading comment line and no
// trailing white space, and survives a round trip; that a number equals its decimal
// form; and that a fraction has a known denominator.
func FuzzRuntimeFile(f *testing.F) {
	for _, s := range []string{"", "5", "3.7\n", "# c\ntrue", "numerator: 5\ndenominator: HUNDRED\n", "{numerator: 1}", "-0", "1e308", "\xff#"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		text := fileText(data)
		if again := fileText([]byte(text)); again != text {
			t.Errorf("%q reads back as %q", text, again)
		}
		if strings.HasPrefix(text, "#") || strings.TrimRight(text, " \t\r\n\v\f") != text {
			t.Errorf("%q keeps a comment or white space", text)
		}
		v := parseText(text)
		if v.isDouble {
			again := parseText(strconv.FormatFloat(v.double, 'g', -1, 64))
			if again.double != v.double || again.isBool != v.isBool || again.isInteger != v.isInteger {
				t.Errorf("%q: %+v, from its decimal form %+v", text, v, again)
			}
		}
		if v.isFraction && v.fraction.Denominator != Hundred && v.fraction.Denominator != TenThousand && v.fraction.Denominator != Million {
			t.Errorf("%q: fraction %+v", text, v.fraction)
		}
		if v.isFraction && (v.isBool || v.isDouble) {
			t.Errorf("%q is two things: %+v", text, v)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	values := make(map[string]any)
	for i := range 1000 {
		values["some.feature.number_"+strconv.Itoa(i)] = float64(i % 100)
	}
	l, err := New(Config{Layers: []Layer{{Name: "s", Kind: Static, Values: values}}})
	if err != nil {
		b.Fatal(err)
	}
	const key = "some.feature.number_500"
	b.Run("what=snapshot", func(b *testing.B) {
		for b.Loop() {
			l.Snapshot()
		}
	})
	b.Run("what=int", func(b *testing.B) {
		for b.Loop() {
			l.Snapshot().Uint(key, 0)
		}
	})
	b.Run("what=bool", func(b *testing.B) {
		for b.Loop() {
			l.Snapshot().Bool(key, false)
		}
	})
	b.Run("what=feature", func(b *testing.B) {
		for b.Loop() {
			l.Snapshot().FeatureEnabled(key, FractionalPercent{}, 7)
		}
	})
	b.Run("what=missing", func(b *testing.B) {
		for b.Loop() {
			l.Snapshot().Uint("no.such.key", 0)
		}
	})
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

// manyOverrides returns a loader with n overrides, and their keys.
func manyOverrides(t testing.TB, n int) (*Loader, []string) {
	l, err := New(Config{Layers: []Layer{{Name: "base", Kind: Static}, {Name: "admin", Kind: Admin}}})
	if err != nil {
		t.Fatal(err)
	}
	values, keys := make(map[string]string), make([]string, n)
	for i := range keys {
		keys[i] = "some.feature.number_" + strconv.Itoa(i)
		values[keys[i]] = strconv.Itoa(i)
	}
	if err := l.Modify(values); err != nil {
		t.Fatal(err)
	}
	return l, keys
}

// BenchmarkModify changes one override at a time, or sets and removes a new one.
func BenchmarkModify(b *testing.B) {
	for _, n := range []int{10, 1000, 9990} {
		l, keys := manyOverrides(b, n)
		for what, change := range map[string]func(i int) map[string]string{
			"change": func(i int) map[string]string { return map[string]string{keys[i%n]: strconv.Itoa(i)} },
			"new":    func(i int) map[string]string { return map[string]string{"new." + keys[i/2%n]: "x"[i%2:]} },
		} {
			b.Run(fmt.Sprintf("overrides=%d/what=%s", n, what), func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if err := l.Modify(change(i)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
