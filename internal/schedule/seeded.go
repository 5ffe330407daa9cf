//go:build schedule && seeded

package schedule

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Bug is a bug that explored schedules must find. It is an alias so that lists need no keys.
type Bug = struct{ Name, File, Old, New string }

// CheckBugs puts bugs into the package of a test, one by one, and checks that its
// TestSchedules fails. It compiles the package for each of them.
func CheckBugs(t *testing.T, bugs []Bug) {
	for _, bug := range bugs {
		t.Run(bug.Name, func(t *testing.T) {
			source, err := os.ReadFile(bug.File)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(string(source), bug.Old) != 1 {
				t.Fatalf("%s has %d times %q, want once", bug.File, strings.Count(string(source), bug.Old), bug.Old)
			}
			dir := t.TempDir()
			path, err := filepath.Abs(bug.File)
			if err != nil {
				t.Fatal(err)
			}
			changed := filepath.Join(dir, bug.File)
			overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
			if err != nil {
				t.Fatal(err)
			}
			for file, content := range map[string]string{
				changed:                            strings.Replace(string(source), bug.Old, bug.New, 1),
				filepath.Join(dir, "overlay.json"): string(overlay),
			} {
				if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out, err := exec.Command("go", "test", "-tags", "schedule", "-overlay", filepath.Join(dir, "overlay.json"),
				"-run", "^TestSchedules$", "-failfast", "-vet", "off", ".").CombinedOutput()
			if !strings.Contains(string(out), "--- FAIL: TestSchedules") {
				t.Errorf("not found: %v\n%s", err, out)
			}
		})
	}
}
