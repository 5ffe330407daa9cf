package budget

import (
	"reflect"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	const text = `# a comment

BenchmarkA/case=1  ns/op<=1.5*BenchmarkB   allocs/op<=0 # none
	BenchmarkA/case=2 B/name<=96
`
	got, err := Parse("x", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []Bound{
		{"BenchmarkA/case=1", "ns/op", 1.5, "BenchmarkB", 3},
		{"BenchmarkA/case=1", "allocs/op", 0, "", 3},
		{"BenchmarkA/case=2", "B/name", 96, "", 4},
	}
	if !reflect.DeepEqual(got.Bounds, want) {
		t.Errorf("bounds %v, want %v", got.Bounds, want)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"Counter ns/op<=2*BenchmarkB", `x:1: "Counter" is not the name of a benchmark: it must begin with Benchmark`},
		{"\nBenchmarkA", `x:2: "BenchmarkA" has no bound: write unit<=limit`},
		{"BenchmarkA ns/op=2", `"ns/op=2" is not a bound`},
		{"BenchmarkA <=2", `"<=2" is not a bound`},
		{"BenchmarkA B/op<=two", `"two" in "B/op<=two" is not a number of 0 or more`},
		{"BenchmarkA B/op<=-1", `"-1" in`},
		{"BenchmarkA B/op<=NaN", `"NaN" in`},
		{"BenchmarkA ns/op<=20", `"ns/op<=20" bounds a time by a number`},
		{"BenchmarkA p99-ns<=20", `bounds a time by a number`},
		{"BenchmarkA ns/op<=2*B", `"B" in "ns/op<=2*B" is not the name of a benchmark`},
		{"BenchmarkA ns/op<=2*BenchmarkA", "BenchmarkA is its own calibration"},
		{"BenchmarkA B/op<=1\nBenchmarkA B/op<=2", "x:2: B/op of BenchmarkA has a bound in line 1 already"},
	} {
		_, err := Parse("x", strings.NewReader(tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Parse(%q): error %v, want one with %q", tt.text, err, tt.want)
		}
	}
}

// FuzzParse checks that every accepted budget survives a round trip.
func FuzzParse(f *testing.F) {
	f.Add("BenchmarkA/case=1 ns/op<=1.5*BenchmarkB allocs/op<=0 # none\n")
	f.Add("BenchmarkA B/op<=1e3")
	f.Add("x<=")
	f.Fuzz(func(t *testing.T, text string) {
		b, err := Parse("x", strings.NewReader(text))
		if err != nil {
			return
		}
		var again strings.Builder
		line := 0
		for _, bound := range b.Bounds {
			for line++; line < bound.Line; line++ {
				again.WriteByte('\n')
			}
			if line > bound.Line { // a second bound of the line
				line = bound.Line
				s := strings.TrimSuffix(again.String(), "\n")
				again.Reset()
				again.WriteString(s + " " + bound.String() + "\n")
				continue
			}
			again.WriteString(bound.Benchmark + " " + bound.String() + "\n")
		}
		got, err := Parse("x", strings.NewReader(again.String()))
		if err != nil || !reflect.DeepEqual(got, b) {
			t.Errorf("Parse(%q) = %v, then %v, %v", text, b, got, err)
		}
	})
}

func TestParseResults(t *testing.T) {
	const out = `goos: linux
pkg: example.org/x
BenchmarkA/case=1-2  	 1000	        12.50 ns/op	       0 B/op	       1 allocs/op
BenchmarkB/q=1%-spread 	 1	 3 ns/op	 4.5 ns/name
BenchmarkC-8 FAIL
BenchmarkLog
    x_test.go:1: hello
PASS
`
	got, err := ParseResults(strings.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	want := []Result{
		{"BenchmarkA/case=1", 2, Figures{"ns/op": 12.5, "B/op": 0, "allocs/op": 1}},
		{"BenchmarkB/q=1%-spread", 1, Figures{"ns/op": 3, "ns/name": 4.5}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("results %v, want %v", got, want)
	}
}

func TestGroupsKeepCalibrationsNearby(t *testing.T) {
	b, err := Parse("x", strings.NewReader(`
BenchmarkA ns/op<=1*BenchmarkX
BenchmarkB B/op<=1
BenchmarkC ns/op<=1*BenchmarkY
BenchmarkX ns/op<=1*BenchmarkY
`))
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"BenchmarkA", "BenchmarkX", "BenchmarkC", "BenchmarkY"}, {"BenchmarkB"}}
	if got := b.groups(); !reflect.DeepEqual(got, want) {
		t.Errorf("groups %v, want %v", got, want)
	}
}
