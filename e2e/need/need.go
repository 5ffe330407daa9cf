// Package need locates the programs that tests need. If one is missing, it skips the
// test with the reason, or fails it if CI=true.
package need

import (
	"os"
	"os/exec"
	"testing"
)

// The variables hold the paths of the daemon to test and of the program in e2e/collector;
// scripts/e2e sets them.
const (
	binaryVariable    = "STATSD_ADMIN_BINARY"
	collectorVariable = "STATSD_ADMIN_COLLECTOR"
)

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
	return built(t, binaryVariable)
}

// Collector returns the path of the OpenTelemetry receiver.
func Collector(t testing.TB) string {
	t.Helper()
	return built(t, collectorVariable)
}

func built(t testing.TB, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		Missing(t, variable+" is not set: run the tests with scripts/e2e")
	}
	return path
}
