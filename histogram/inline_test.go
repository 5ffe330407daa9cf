package histogram_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestInlining asks the compiler whether the small steps of the paths that
// every record or read takes are still inlined.
func TestInlining(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the compiler")
	}
	out, err := exec.Command("go", "build", "-gcflags=-m", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for _, f := range []string{
		"(*Histogram).Snapshot",
		"(*Histogram).sharedShard",
		"(*geometry).bin",
		"(*geometry).span",
		"(*Layout).splitOf",
		"(*sparse[go.shape.[16]sync/atomic.Uint64]).page",
		"(*sparse[go.shape.[64]sync/atomic.Uint64]).page",
		"(*extremes).include",
		"(*sum).add",
		"(*shard).touch",
		"(*packed).bound",
		"field",
	} {
		if !strings.Contains(string(out), ": can inline "+f+"\n") {
			t.Errorf("%s is not inlined any more", f)
		}
	}
}
