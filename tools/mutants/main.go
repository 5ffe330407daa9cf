// Command mutants changes the code in single places, chosen at random, and reports
// the changes that no test notices.
//
//	go run . -root ../.. -n 20 -seed 7 ./upstream/... ./bootstrap
//
// A change drops a defer, a call, an assignment or an early return, negates a
// condition, adds one to a constant, or swaps break and continue, < and <=, && and ||,
// ++ and --, or results and zero values. Changes that do not compile are not counted.
// Changes that no test can notice for a reason that the code shows are left out: each
// [reason] has a rule.
//
// The changes of a package are compiled with -overlay into one test program, which
// chooses a change by its environment; the source tree stays as it is. Each is judged
// by the short tests of its package, then by the tests of two packages that import it,
// unless these tests do not reach it. A change is also noticed when tests end neither
// way in five times their usual time, or wait far longer than usual. A survivor is a
// promise without a test, code without a purpose, or a change that nothing can observe.
package main

import (
	"context"
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

const modulePath = "github.com/statsd-admin/statsd-admin"

func main() {
	root := flag.String("root", "../..", "`directory` of the repository")
	n := flag.Int("n", 20, "`number` of changes that compile")
	seed := flag.Uint64("seed", 1, "`seed` of the sample")
	slack := flag.Duration("slack", 15*time.Second, "`time` that tests get beyond five times their usual time")
	limit := flag.Duration("limit", 0, "start no change after this `time`; default: no limit")
	nice := flag.Int("nice", 10, "`increment` of the nice value of the tests")
	importers := flag.Int("importers", 2, "`number` of importing packages that may notice a change; with 0 fewer changes are noticed, in less time")
	jobs := flag.Int("jobs", 1, "`number` of packages that are judged at the same time")
	kinds := flag.String("kinds", "", "try only changes of these `kinds`, separated by commas, such as \"defer dropped\"")
	at := flag.String("at", "", "try only the changes at these `places`: path:line or path:line:column, separated by commas")
	flag.Parse()
	if err := run(*root, flag.Args(), *kinds, *at, *n, *jobs, *seed, *nice, *importers, *slack, *limit); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(root string, patterns []string, kinds, at string, n, jobs int, seed uint64, nice, importers int, slack, limit time.Duration) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if limit > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := &runner{root: root, dir: dir, slack: slack, nice: nice, tried: importers, out: os.Stdout,
		pkgs: map[string]*goPackage{}, plain: map[string]usual{}}
	module, err := r.list([]string{"./..."})
	if err != nil {
		return err
	}
	for _, p := range module {
		r.pkgs[p.ImportPath] = p
	}
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	chosen, err := r.list(patterns)
	if err != nil {
		return err
	}
	shipped := r.shipped()
	chosen = slices.DeleteFunc(chosen, func(p *goPackage) bool { return !shipped[p.ImportPath] })
	if err := r.export(patterns); err != nil {
		return err
	}
	var all []mutant
	left := map[reason]int{}
	for _, p := range chosen {
		found, err := r.find(p, left)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	if kinds != "" {
		wanted := strings.Split(kinds, ",")
		all = slices.DeleteFunc(all, func(m mutant) bool { return !slices.Contains(wanted, m.kind) })
	}
	if at != "" {
		places := strings.Split(at, ",")
		all = slices.DeleteFunc(all, func(m mutant) bool {
			line := fmt.Sprint(m.path, ":", m.line)
			return !slices.Contains(places, line) && !slices.Contains(places, fmt.Sprint(line, ":", m.col))
		})
		n = len(all)
	}
	fmt.Printf("%d possible changes in %d packages, seed %d\n", len(all), len(chosen), seed)
	for _, why := range slices.Sorted(maps.Keys(left)) {
		fmt.Printf("%d more left out: %s\n", left[why], why)
	}
	return r.sample(ctx, draw(all, seed), n, jobs)
}

// find returns the possible changes of a package, and counts in left what
// is left out.
func (r *runner) find(p *goPackage, left map[reason]int) (all []mutant, err error) {
	fset := token.NewFileSet()
	var files []*ast.File
	var sources [][]byte
	for _, name := range p.GoFiles {
		src, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files, sources = append(files, file), append(sources, src)
	}
	info, err := r.check(fset, p.ImportPath, files)
	if err != nil {
		return nil, err
	}
	for i, file := range files {
		path, err := filepath.Rel(r.root, filepath.Join(p.Dir, p.GoFiles[i]))
		if err != nil {
			return nil, err
		}
		f := &finder{path: filepath.ToSlash(path), pkg: p.ImportPath, fset: fset, info: info, src: sources[i], left: left}
		f.find(file)
		all = append(all, f.found...)
	}
	return all, nil
}

func (r *runner) check(fset *token.FileSet, path string, files []*ast.File) (*types.Info, error) {
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(r.exports[path]) })
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: imports, Sizes: types.SizesFor("gc", runtime.GOARCH)}
	_, err := config.Check(path, fset, files, info)
	return info, err
}

// sample tries changes of drawn until n were judged, package by package and jobs
// packages at a time, and prints a line for each.
func (r *runner) sample(ctx context.Context, drawn []mutant, n, jobs int) error {
	var mu sync.Mutex // guards what follows
	var judged, noticed, limits, bent int
	var failed error
	done := func(m mutant, v verdict) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case !v.compiled:
			bent++
			return
		case v.noticed:
			noticed++
			if v.limit {
				limits++
			}
			fmt.Printf("noticed   %v (%s)\n", m, v.by)
		default:
			fmt.Printf("SURVIVED  %v (%s)\n", m, v.by)
		}
		judged++
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for judged < n && len(drawn) > 0 && ctx.Err() == nil {
		batch := drawn[:min(n-judged, len(drawn))]
		drawn = drawn[len(batch):]
		var order []string
		byPackage := map[string][]mutant{}
		for _, m := range batch {
			if byPackage[m.pkg] == nil {
				order = append(order, m.pkg)
			}
			byPackage[m.pkg] = append(byPackage[m.pkg], m)
		}
		next := make(chan string)
		var running sync.WaitGroup
		for range jobs {
			running.Go(func() {
				for pkg := range next {
					if err := r.judge(ctx, pkg, byPackage[pkg], done); err != nil {
						mu.Lock()
						failed = err
						mu.Unlock()
						stop()
					}
				}
			})
		}
		for _, pkg := range order {
			if ctx.Err() == nil {
				next <- pkg
			}
		}
		close(next)
		running.Wait()
	}
	fmt.Printf("%d of %d noticed (%.0f %%), %d of them by a time limit; %d more did not compile\n",
		noticed, judged, 100*float64(noticed)/float64(max(1, judged)), limits, bent)
	return failed
}
