package budget

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Budget is a parsed budget file.
type Budget struct {
	Bounds []Bound // in the order of the file
}

// Bound is an upper limit on one metric of a benchmark.
type Bound struct {
	Benchmark   string
	Unit        string // as in the output of go test: "ns/op", "B/op", ...
	Limit       float64
	Calibration string // the benchmark whose figure Limit is a multiple of; "": Limit is absolute
	Line        int    // in the file
}

// String returns the bound in the syntax of a budget file.
func (b Bound) String() string {
	limit := strconv.FormatFloat(b.Limit, 'g', -1, 64)
	if b.Calibration != "" {
		limit += "*" + b.Calibration
	}
	return b.Unit + "<=" + limit
}

// ReadFile parses the budget file called name.
func ReadFile(name string) (*Budget, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("budget: %w", err)
	}
	defer f.Close()
	return Parse(name, f)
}

// Parse parses a budget file; name is used in errors, which include the line and the
// allowed values.
func Parse(name string, r io.Reader) (*Budget, error) {
	b := new(Budget)
	seen := map[[2]string]int{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		fail := func(format string, args ...any) error {
			return fmt.Errorf("budget: %s:%d: %s", name, n, fmt.Sprintf(format, args...))
		}
		if !strings.HasPrefix(fields[0], "Benchmark") {
			return nil, fail("%q is not the name of a benchmark: it must begin with Benchmark", fields[0])
		}
		if len(fields) == 1 {
			return nil, fail("%q has no bound: write unit<=limit, such as allocs/op<=0", fields[0])
		}
		for _, f := range fields[1:] {
			bound, err := parseBound(f)
			if err != nil {
				return nil, fail("%v", err)
			}
			bound.Benchmark, bound.Line = fields[0], n
			key := [2]string{bound.Benchmark, bound.Unit}
			if at := seen[key]; at != 0 {
				return nil, fail("%s of %s has a bound in line %d already", bound.Unit, bound.Benchmark, at)
			}
			if bound.Calibration == bound.Benchmark {
				return nil, fail("%s is its own calibration", bound.Benchmark)
			}
			seen[key] = n
			b.Bounds = append(b.Bounds, bound)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("budget: %s: %w", name, err)
	}
	return b, nil
}

// parseBound parses unit<=limit or unit<=factor*BenchmarkName.
func parseBound(s string) (Bound, error) {
	unit, limit, ok := strings.Cut(s, "<=")
	if !ok || unit == "" {
		return Bound{}, fmt.Errorf("%q is not a bound: write unit<=limit or unit<=factor*BenchmarkName", s)
	}
	number, calibration, scaled := strings.Cut(limit, "*")
	x, err := strconv.ParseFloat(number, 64)
	if err != nil || x < 0 || x > 1e300 || x != x {
		return Bound{}, fmt.Errorf("%q in %q is not a number of 0 or more", number, s)
	}
	if scaled && !strings.HasPrefix(calibration, "Benchmark") {
		return Bound{}, fmt.Errorf("%q in %q is not the name of a benchmark: it must begin with Benchmark", calibration, s)
	}
	if !scaled && isTime(unit) {
		return Bound{}, fmt.Errorf("%q bounds a time by a number, which holds on one machine only: write %s<=factor*BenchmarkName", s, unit)
	}
	return Bound{Unit: unit, Limit: x, Calibration: calibration}, nil
}

func isTime(unit string) bool {
	what, _, _ := strings.Cut(unit, "/")
	return slices.Contains([]string{"ns", "us", "µs", "ms", "s", "sec"}, what[strings.LastIndexByte(what, '-')+1:])
}

// groups returns the names of the benchmarks to measure. Benchmarks that are compared
// with each other are in one group.
func (b *Budget) groups() [][]string {
	var groups [][]string
	find := func(name string) int {
		return slices.IndexFunc(groups, func(g []string) bool { return slices.Contains(g, name) })
	}
	for _, bound := range b.Bounds {
		at := find(bound.Benchmark)
		if at < 0 {
			at = len(groups)
			groups = append(groups, []string{bound.Benchmark})
		}
		if bound.Calibration == "" {
			continue
		}
		switch other := find(bound.Calibration); {
		case other < 0:
			groups[at] = append(groups[at], bound.Calibration)
		case other != at:
			groups[min(at, other)] = append(groups[min(at, other)], groups[max(at, other)]...)
			groups = slices.Delete(groups, max(at, other), max(at, other)+1)
		}
	}
	return groups
}
