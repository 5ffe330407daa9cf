package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// importersMeasured is the number of importing packages, those with the fewest
// dependencies first, of which the fastest are tried.
const importersMeasured = 4

// goPackage is what the go command says about a package.
type goPackage struct {
	ImportPath, Dir                    string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports []string
	Deps                               []string
}

func (p *goPackage) hasTests() bool { return len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 }

// runner runs tests.
type runner struct {
	root  string
	dir   string // for the files of one run
	slack time.Duration
	nice  int
	tried int // importing packages that may notice a change
	out   io.Writer
	pkgs  map[string]*goPackage // of the module

	mu       sync.Mutex               // guards what follows, and is held while baselines run
	baseline map[string]time.Duration // of the tests of a package, negative if they fail
	nearest  map[string][]string      // importers by package
}

// list returns the packages that patterns match, in their order.
func (r *runner) list(patterns []string) ([]*goPackage, error) {
	cmd := r.command(append([]string{"list", "-json"}, patterns...)...)
	var out, failed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failed
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, &failed)
	}
	var all []*goPackage
	for d := json.NewDecoder(&out); ; {
		p := &goPackage{}
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

// shipped returns the packages of the library and the daemon: the public ones, and
// the internal packages that these need outside of tests.
func (r *runner) shipped() map[string]bool {
	all := map[string]bool{}
	for _, p := range r.pkgs {
		below := "/" + strings.TrimPrefix(p.ImportPath, modulePath+"/") + "/"
		if strings.Contains(below, "/internal/") || strings.HasPrefix(below, "/bench/") || strings.HasPrefix(below, "/examples/") {
			continue
		}
		all[p.ImportPath] = true
		for _, name := range p.Deps {
			if r.pkgs[name] != nil {
				all[name] = true
			}
		}
	}
	return all
}

// command returns a go command with low priority where the system has that.
func (r *runner) command(args ...string) *exec.Cmd {
	args = append([]string{"go"}, args...)
	if nice, err := exec.LookPath("nice"); err == nil {
		args = append([]string{nice, "-n", strconv.Itoa(r.nice)}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath")
	return cmd
}

// measure returns how long the unchanged tests of a package take.
func (r *runner) measure(pkg string) time.Duration {
	if d, ok := r.baseline[pkg]; ok {
		return d
	}
	var out bytes.Buffer
	// Without -count, the go command can repeat an earlier result with its times.
	cmd := r.command("test", "-json", "-p", "1", "-vet=off", "-short", "-failfast", "-timeout", "10m", pkg)
	cmd.Stdout = &out
	err := cmd.Run()
	var sum float64
	for d := json.NewDecoder(&out); ; {
		var e struct {
			Action, Test string
			Elapsed      float64
		}
		if d.Decode(&e) != nil {
			break
		}
		if e.Action == "pass" && e.Test != "" && !strings.Contains(e.Test, "/") {
			sum += e.Elapsed
		}
	}
	took := time.Duration(sum * float64(time.Second))
	if err != nil {
		fmt.Fprintf(r.out, "%s: its tests fail without a change: not used\n", pkg)
		took = -1
	}
	r.baseline[pkg] = took
	return took
}

// testers returns the packages whose tests judge a change of pkg, with the time
// limit of each: the package itself, and its fastest importers.
func (r *runner) testers(pkg string) (names []string, limits []time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.nearest[pkg]; !ok {
		r.nearest[pkg] = r.importers(pkg)
	}
	if r.pkgs[pkg].hasTests() && r.measure(pkg) >= 0 {
		names = append(names, pkg)
	}
	names = append(names, r.nearest[pkg]...)
	for _, name := range names {
		limits = append(limits, r.slack+5*r.measure(name))
	}
	return names, limits
}

// importers returns at most tried packages with tests that import pkg.
func (r *runner) importers(pkg string) []string {
	if r.tried == 0 {
		return nil
	}
	var all []*goPackage
	for _, p := range r.pkgs {
		imports := slices.Concat(p.Imports, p.TestImports, p.XTestImports)
		if p.ImportPath != pkg && p.hasTests() && slices.Contains(imports, pkg) {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *goPackage) int {
		if d := len(a.Deps) - len(b.Deps); d != 0 {
			return d
		}
		return strings.Compare(a.ImportPath, b.ImportPath)
	})
	var names []string
	for _, p := range all[:min(len(all), importersMeasured)] {
		if r.measure(p.ImportPath) >= 0 {
			names = append(names, p.ImportPath)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return int(r.measure(a) - r.measure(b)) })
	return names[:min(len(names), r.tried)]
}

// verdict is the result of a change.
type verdict struct {
	compiled bool
	noticed  bool
	limit    bool   // noticed because the tests did not end in time
	by       string // the test or the packages
}

var (
	failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	notBuilt   = regexp.MustCompile(`\[(build|setup) failed\]`)
)

// try applies a change and runs tests until one fails.
func (r *runner) try(m mutant, worker int) (verdict, error) {
	file := filepath.Join(r.root, m.path)
	src, err := os.ReadFile(file)
	if err != nil {
		return verdict{}, err
	}
	if m.to > len(src) || string(src[m.from:m.to]) != m.old {
		return verdict{}, fmt.Errorf("%s changed during the run", m.path)
	}
	changed := filepath.Join(r.dir, fmt.Sprint(worker, "-", filepath.Base(m.path)))
	if err := os.WriteFile(changed, m.apply(src), 0o600); err != nil {
		return verdict{}, err
	}
	defer os.Remove(changed)
	text, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	if err != nil {
		return verdict{}, err
	}
	overlay := filepath.Join(r.dir, fmt.Sprint(worker, ".json"))
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return verdict{}, err
	}
	var out bytes.Buffer
	build := r.command("build", "-p", "1", "-overlay", overlay, "-o", os.DevNull, m.pkg)
	if build.Run() != nil {
		return verdict{}, nil
	}
	names, limits := r.testers(m.pkg)
	if len(names) == 0 {
		return verdict{}, fmt.Errorf("no test can judge %s", r.short(m.pkg))
	}
	for i, name := range names {
		out.Reset()
		cmd := r.command("test", "-p", "1", "-overlay", overlay, "-vet=off", "-short", "-failfast", "-count", "1", "-timeout", limits[i].String(), name)
		cmd.Stdout, cmd.Stderr = &out, &out
		if cmd.Run() == nil {
			continue
		}
		v := verdict{compiled: true, noticed: true, by: r.short(name)}
		switch {
		case notBuilt.Match(out.Bytes()):
			return verdict{}, nil // a test uses what the change removed
		case bytes.Contains(out.Bytes(), []byte("panic: test timed out after")):
			v.limit = true
			v.by += " after " + limits[i].String()
		default:
			if at := failedTest.FindSubmatch(out.Bytes()); at != nil {
				v.by += " " + string(at[1])
			}
		}
		return v, nil
	}
	return verdict{compiled: true, by: r.short(names...)}, nil
}

// short returns import paths without the module's.
func (r *runner) short(names ...string) string {
	for i, name := range names {
		names[i] = strings.TrimPrefix(name, modulePath+"/")
	}
	return strings.Join(names, ", ")
}
