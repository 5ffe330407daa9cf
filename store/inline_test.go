package store_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestInlining asks the compiler whether writing a gauge is still inlined: a
// call would cost a third of the atomic operation that it is. Walks and sinks
// decode half a dozen numbers of each record.
func TestInlining(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the compiler")
	}
	out, err := exec.Command("go", "build", "-gcflags=-m", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for _, f := range []string{
		"(*Counter).Inc", "(*Counter).Add", "(*Gauge).Set", "(*Gauge).Add", "(*Gauge).Sub", "(*Gauge).Inc", "(*Gauge).Dec", "(*FloatGauge).Set", "uvarint",
	} {
		if !strings.Contains(string(out), ": can inline "+f+"\n") {
			t.Errorf("%s is not inlined any more", f)
		}
	}
}
