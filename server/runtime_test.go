package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
)

// runtimeStats returns the values of runtime.<name> for the given names.
func runtimeStats(t *testing.T, r *running, names ...string) string {
	t.Helper()
	var out []string
	for _, name := range names {
		got := r.get(t, "/stats?filter=^runtime."+name+"$")
		out = append(out, strings.TrimSuffix(strings.TrimPrefix(got, "runtime."), "\n"))
	}
	return strings.Join(out, ", ")
}

// TestRuntimeOfAFile reads runtime values from a v2 file, follows them through
// /runtime_modify and a move of the directory, and checks the stats.
func TestRuntimeOfAFile(t *testing.T) {
	dir := t.TempDir()
	for path, value := range map[string]string{"v1/proxy/limits/sessions": "200\n", "v1/over/edge/limits/sessions": "# c\n300 \n", "v2/proxy/limits/sessions": "9"} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root := filepath.Join(dir, "current")
	link := func(to string) {
		if err := os.Symlink(to, root+".new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(root+".new", root); err != nil {
			t.Fatal(err)
		}
	}
	link("v1")
	r := start(t, fromText(t, fmt.Sprintf("node: {cluster: edge}\nruntime: {symlink_root: %s, subdirectory: proxy, override_subdirectory: over, base: {a: 1, b: {c: true}}}\n", root)))
	all := []string{"load_success", "load_error", "num_keys", "num_layers", "admin_overrides_active", "override_dir_exists", "override_dir_not_exists"}
	check := func(when, want string) {
		t.Helper()
		if got := runtimeStats(t, r, all...); got != want {
			t.Errorf("%s:\n%s, want\n%s", when, got, want)
		}
	}
	check("at first", "load_success: 1, load_error: 0, num_keys: 3, num_layers: 4, admin_overrides_active: 0, override_dir_exists: 1, override_dir_not_exists: 0")
	const dump = "{\n \"layers\": [\n  \"base\",\n  \"root\",\n  \"override\",\n  \"admin\"\n ],\n \"entries\": {\n  \"a\": {\n"
	const entry = "  \"limits.sessions\": {\n   \"layer_values\": [\n    \"\",\n    \"200\",\n    \"300\",\n    \"\"\n   ],\n   \"final_value\": \"300\"\n  }\n"
	if got := r.get(t, "/runtime"); !strings.HasPrefix(got, dump) || !strings.Contains(got, entry) {
		t.Errorf("/runtime:\n%s", got)
	}
	r.post(t, "/runtime_modify?limits.sessions=5&k=v")
	check("after two changes at once", "load_success: 2, load_error: 0, num_keys: 4, num_layers: 4, admin_overrides_active: 1, override_dir_exists: 2, override_dir_not_exists: 0")
	r.post(t, "/runtime_modify?limits.sessions=&k=&nothing=")
	check("after they are taken back", "load_success: 3, load_error: 0, num_keys: 3, num_layers: 4, admin_overrides_active: 0, override_dir_exists: 3, override_dir_not_exists: 0")
	link("v2")
	waittest.Until(t, "the directory is read again", func() bool { return strings.Contains(r.get(t, "/runtime"), `"final_value": "9"`) })
	if got, want := runtimeStats(t, r, "num_keys", "num_layers", "override_dir_exists"), "num_keys: 3, num_layers: 3, override_dir_exists: 3"; got != want {
		t.Errorf("after the move: %s, want %s", got, want)
	}
}

// TestRuntimeWithoutAdminLayer checks that nothing can be changed without an admin
// layer.
func TestRuntimeWithoutAdminLayer(t *testing.T) {
	r := start(t, fromText(t, "layered_runtime: {layers: [{name: s, static_layer: {a: 1}}]}\n"))
	if reply := r.post(t, "/runtime_modify?a=2"); reply.Status != 503 || string(reply.Body) != "No admin layer specified" {
		t.Errorf("%d %q", reply.Status, reply.Body)
	}
	if got, want := runtimeStats(t, r, "load_success", "override_dir_exists", "override_dir_not_exists"), "load_success: 1, override_dir_exists: 0, override_dir_not_exists: 1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
