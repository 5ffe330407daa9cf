package layers

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

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

// overrideBytes returns the size of the keys and values.
func overrideBytes(cells map[string]cell) (n int) {
	for key, c := range cells {
		n += len(key) + len(c.raw)
	}
	return n
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
