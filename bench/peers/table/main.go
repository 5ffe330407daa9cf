// Command table turns the output of the benchmarks of this module into a table
// in Markdown: a row for each workload, a column for each library, medians.
//
//	go test -run '^$' -bench . -count 6 | go run ./table
package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/statsd-admin/statsd-admin/bench/budget"
)

func main() {
	results, err := budget.ParseResults(io.TeeReader(os.Stdin, os.Stderr))
	if err == nil {
		_, err = io.WriteString(os.Stdout, table(results))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// cell holds the figures of one library for one workload.
type cell map[string][]float64 // by unit

func table(results []budget.Result) string {
	var rows, cols []string
	cells := map[[2]string]cell{}
	for _, r := range results {
		row, col := split(r.Name)
		for _, unit := range shown(r.Figures) {
			name := row + ", " + unit
			if !slices.Contains(rows, name) {
				rows = append(rows, name)
			}
			if !slices.Contains(cols, col) {
				cols = append(cols, col)
			}
			key := [2]string{name, col}
			if cells[key] == nil {
				cells[key] = cell{}
			}
			cells[key][unit] = append(cells[key][unit], r.Figures[unit])
		}
	}
	var s strings.Builder
	s.WriteString("| workload | " + strings.Join(cols, " | ") + " |\n|---" + strings.Repeat("|---:", len(cols)) + "|\n")
	for _, row := range rows {
		s.WriteString("| " + row)
		unit := row[strings.LastIndex(row, ", ")+2:]
		for _, col := range cols {
			s.WriteString(" | ")
			if xs := cells[[2]string{row, col}][unit]; len(xs) > 0 {
				s.WriteString(figure(xs))
			}
		}
		s.WriteString(" |\n")
	}
	return s.String()
}

// split splits the name of a benchmark into workload and library.
func split(name string) (workload, library string) {
	parts := strings.Split(strings.TrimPrefix(name, "Benchmark"), "/")
	parts = slices.DeleteFunc(parts, func(p string) bool {
		lib, ok := strings.CutPrefix(p, "impl=")
		if ok {
			library = lib
		}
		return ok
	})
	return strings.Join(parts, " "), library
}

// shown returns the units to show: processor time, time per name where it is
// reported, and the metrics of the benchmark.
func shown(f budget.Figures) []string {
	var units []string
	for u := range f {
		switch u {
		case "ns/op", "ns/name":
			if _, ok := f["cpu-"+u]; ok || u == "ns/op" && len(f) > 1 && f["ns/name"] > 0 {
				continue
			}
		case "B/op", "allocs/op", "MB/s":
			continue
		}
		units = append(units, u)
	}
	slices.Sort(units)
	return units
}

// figure writes the median, and half the interquartile range as a fraction of it.
func figure(xs []float64) string {
	slices.Sort(xs)
	at := func(q float64) float64 {
		i := q * float64(len(xs)-1)
		n := int(i)
		if n+1 == len(xs) {
			return xs[n]
		}
		return xs[n] + (i-float64(n))*(xs[n+1]-xs[n])
	}
	m := at(0.5)
	s := fmt.Sprintf("%.3g", m)
	if m >= 1000 {
		s = fmt.Sprintf("%.0f", m)
	}
	if len(xs) < 4 || m == 0 {
		return s
	}
	return fmt.Sprintf("%s ±%.0f%%", s, 50*(at(0.75)-at(0.25))/m)
}
