package budget

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Figures are the measurements of one benchmark by unit.
type Figures map[string]float64

// Round is the result of one round by benchmark.
type Round map[string]Figures

// Result is one line of the output of a benchmark.
type Result struct {
	Name    string // without the number of CPUs at the end
	CPUs    int    // 1 if the name has no number at its end
	Figures Figures
}

// ParseResults parses the output of go test -bench and skips all other lines.
func ParseResults(r io.Reader) ([]Result, error) {
	var all []Result
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if res, ok := parseResult(lines.Text()); ok {
			all = append(all, res)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("budget: output of a benchmark: %w", err)
	}
	return all, nil
}

func parseResult(line string) (Result, bool) {
	fields := strings.Fields(line)
	if len(fields) < 4 || len(fields)%2 != 0 || !strings.HasPrefix(fields[0], "Benchmark") {
		return Result{}, false
	}
	if _, err := strconv.ParseUint(fields[1], 10, 64); err != nil {
		return Result{}, false
	}
	res := Result{Name: fields[0], CPUs: 1, Figures: Figures{}}
	if i := strings.LastIndexByte(res.Name, '-'); i > 0 {
		if n, err := strconv.Atoi(res.Name[i+1:]); err == nil && n > 0 {
			res.Name, res.CPUs = res.Name[:i], n
		}
	}
	for i := 2; i < len(fields); i += 2 {
		x, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return Result{}, false
		}
		res.Figures[fields[i+1]] = x
	}
	return res, true
}
