package budget

import (
	"flag"
	"fmt"
	"strings"
	"testing"
)

// Check measures benchmarks within a test and reports each bound of the budget
// file that is broken. benchmarks are those that the file names, by name; a
// name with a slash needs an entry of its own, since sub-benchmarks cannot be
// told apart here. Each run of a benchmark takes a tenth of a second unless the flag
// -benchtime says otherwise; -short skips the test. Tests that call Check must
// not run in parallel with others.
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

// shorten lets benchmarks run for a tenth of a second, unless the user chose a
// time, until the function that it returns is called.
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
		for unit, x := range res.Extra {
			figures[unit] = x
		}
		round[name] = figures
	}
	return round, nil
}
