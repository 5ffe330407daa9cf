// Package need locates the programs that tests need. If one is missing, it skips the
// test with the reason, or fails it if CI=true.
package need

import (
	"os"
	"os/exec"
	"testing"
)

// binaryVariable holds the path of the daemon to test; scripts/e2e sets it.
const binaryVariable = "STATSD_ADMIN_BINARY"

// Missing skips the test because something is missing, or fails it if CI=true.
func Missing(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s; nothing may be skipped with CI=true", why)
	}
	t.Skip(why)
}

// Program returns the path of a program.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, name+" is not installed")
	}
	return path
}

// Binary returns the path of the daemon.
func Binary(t testing.TB) string {
	t.Helper()
	path := os.Getenv(binaryVariable)
	if path == "" {
		Missing(t, binaryVariable+" is not set: run the tests with scripts/e2e")
	}
	return path
}
