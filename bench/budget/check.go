package budget

import (
	"flag"
	"fmt"
	"maps"
	"strings"
	"testing"
)

// Check measures benchmarks inside a test and reports each broken bound of the budget
// file. benchmarks maps the names in the file to functions; a name with a slash needs
// its own entry, because sub-benchmarks cannot be selected here. Each benchmark runs
// for a tenth of a second unless -benchtime is set; -short skips the test. Tests that
// call Check must not run in parallel with other tests.
func Check(t testing.TB, file string, benchmarks map[string]func(*testing.B)) {
	t.Helper()
	if testing.Short() {
		t.Skip("budget: takes some seconds for each benchmark")
	}
	b, err := ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	defer shorten()()
	rep, err := Measure(b, 0, func(names []string) (Round, error) { return runInProcess(names, benchmarks) })
	if err != nil {
		t.Fatal(err)
	}
	var s strings.Builder
	_ = rep.Write(&s) // a builder takes all
	t.Log("\n" + s.String())
	if n := len(rep.Failed()); n > 0 {
		t.Errorf("budget: %d bounds of %s are broken", n, file)
	}
}

// shorten sets -benchtime to a tenth of a second unless the user chose a time, and
// returns a function that restores it.
func shorten() (restore func()) {
	f := flag.Lookup("test.benchtime")
	if f == nil || f.Value.String() != f.DefValue {
		return func() {}
	}
	before := f.Value.String()
	_ = f.Value.Set("100ms") // a valid time
	return func() { _ = f.Value.Set(before) }
}

func runInProcess(names []string, benchmarks map[string]func(*testing.B)) (Round, error) {
	round := Round{}
	for _, name := range names {
		f := benchmarks[name]
		if f == nil {
			return nil, fmt.Errorf("the budget names %q, which is not among the benchmarks", name)
		}
		res := testing.Benchmark(f)
		if res.N == 0 {
			return nil, fmt.Errorf("%s failed", name)
		}
		figures := Figures{
			"ns/op":     float64(res.T.Nanoseconds()) / float64(res.N),
			"B/op":      float64(res.AllocedBytesPerOp()),
			"allocs/op": float64(res.AllocsPerOp()),
		}
		maps.Copy(figures, res.Extra)
		round[name] = figures
	}
	return round, nil
}
