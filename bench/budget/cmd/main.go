// Command cmd measures the benchmarks of a package in interleaved rounds and checks
// them against a budget file. It exits with 1 if a bound is broken, and with 2 if it
// could not measure.
//
//	go run github.com/statsd-admin/statsd-admin/bench/budget/cmd -file budget.txt ./mypackage
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/statsd-admin/statsd-admin/bench/budget"
)

func main() {
	file := flag.String("file", "budget.txt", "budget `file`, relative to the working directory")
	rounds := flag.Int("rounds", budget.DefaultRounds, "how many rounds to measure")
	benchtime := flag.String("benchtime", "100ms", "how long each benchmark runs in a round")
	tags := flag.String("tags", "", "build tags")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: %s [flags] package\n", filepath.Base(os.Args[0]))
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	failed, err := check(os.Stdout, *file, flag.Arg(0), *benchtime, *tags, *rounds)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if failed {
		os.Exit(1)
	}
}

func check(w io.Writer, file, pkg, benchtime, tags string, rounds int) (failed bool, err error) {
	b, err := budget.ReadFile(file)
	if err != nil {
		return false, err
	}
	dir, err := output("go", "list", "-f", "{{.Dir}}", "-tags", tags, pkg)
	if err != nil {
		return false, err
	}
	tmp, err := os.MkdirTemp("", "budget")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(tmp)
	binary := filepath.Join(tmp, "bench.test")
	if _, err := output("go", "test", "-c", "-tags", tags, "-o", binary, pkg); err != nil {
		return false, err
	}
	rep, err := budget.Measure(b, rounds, func(names []string) (budget.Round, error) {
		return run(binary, strings.TrimSpace(dir), benchtime, names)
	})
	if err != nil {
		return false, err
	}
	return len(rep.Failed()) > 0, rep.Write(w)
}

// run measures the benchmarks with these names. Names with the same first part and
// the same number of parts share a process, so that common setup runs once.
func run(binary, dir, benchtime string, names []string) (budget.Round, error) {
	round := budget.Round{}
	for _, pattern := range patterns(names) {
		cmd := exec.Command(binary, "-test.run=^$", "-test.benchmem", "-test.timeout=10m",
			"-test.benchtime="+benchtime, "-test.bench="+pattern)
		cmd.Dir = dir
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s%s", pattern, err, stdout.Bytes(), stderr.Bytes())
		}
		results, err := budget.ParseResults(&stdout)
		if err != nil {
			return nil, err
		}
		for _, r := range results {
			round[r.Name] = r.Figures
		}
	}
	return round, nil
}

// patterns returns -bench patterns for the names, one per first part and number of
// parts. Each level is an alternative, so a pattern may select more. It must not have
// more levels than a benchmark has.
func patterns(names []string) []string {
	type kind struct {
		top   string
		depth int
	}
	var kinds []kind
	levels := map[kind][][]string{}
	for _, n := range names {
		parts := strings.Split(n, "/")
		k := kind{parts[0], len(parts)}
		if levels[k] == nil {
			kinds = append(kinds, k)
			levels[k] = make([][]string, len(parts))
		}
		for i, p := range parts {
			if q := regexp.QuoteMeta(p); !slices.Contains(levels[k][i], q) {
				levels[k][i] = append(levels[k][i], q)
			}
		}
	}
	var all []string
	for _, k := range kinds {
		var s []string
		for _, alternatives := range levels[k] {
			s = append(s, "^("+strings.Join(alternatives, "|")+")$")
		}
		all = append(all, strings.Join(s, "/"))
	}
	return all
}

// output runs a command and returns its standard output.
func output(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.Bytes())
	}
	return string(out), nil
}
