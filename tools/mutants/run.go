package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"math"
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
	root    string
	dir     string // for the files of one run
	slack   time.Duration
	nice    int
	tried   int // importing packages that may notice a change
	out     io.Writer
	pkgs    map[string]*goPackage // of the module
	exports map[string]string     // files with the types of packages, by import path

	mu    sync.Mutex
	built int              // overlays
	plain map[string]usual // of unchanged tests by package
}

// list returns the packages that patterns match, in their order.
func (r *runner) list(patterns []string) ([]*goPackage, error) {
	cmd := r.command("go", append([]string{"list", "-json"}, patterns...)...)
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

// export finds the files with the types of the packages that patterns need.
func (r *runner) export(patterns []string) error {
	cmd := r.command("go", append([]string{"list", "-deps", "-export", "-f", "{{.ImportPath}} {{.Export}}"}, patterns...)...)
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list -export: %w\n%s", err, &failed)
	}
	r.exports = map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		r.exports[path] = file
	}
	return nil
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

// command returns a command with low priority where the system has that.
func (r *runner) command(name string, args ...string) *exec.Cmd {
	args = append([]string{name}, args...)
	if nice, err := exec.LookPath("nice"); err == nil {
		args = append([]string{nice, "-n", strconv.Itoa(r.nice)}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath")
	return cmd
}

// testers returns the packages whose tests judge a change of pkg: itself, and the
// importers with the fewest dependencies, without benchmarks and examples.
func (r *runner) testers(pkg string) (names []string) {
	var all []*goPackage
	for _, p := range r.pkgs {
		imports := slices.Concat(p.Imports, p.TestImports, p.XTestImports)
		measures := strings.Contains(p.ImportPath, "/bench") || strings.Contains(p.ImportPath, "/examples/")
		if p.ImportPath != pkg && !measures && p.hasTests() && slices.Contains(imports, pkg) {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *goPackage) int {
		if d := len(a.Deps) - len(b.Deps); d != 0 {
			return d
		}
		return strings.Compare(a.ImportPath, b.ImportPath)
	})
	if r.pkgs[pkg].hasTests() {
		names = append(names, pkg)
	}
	for _, p := range all[:min(len(all), r.tried)] {
		names = append(names, p.ImportPath)
	}
	return names
}

// verdict is the result of a change.
type verdict struct {
	compiled bool
	noticed  bool
	limit    bool   // noticed because the tests did not end in time
	by       string // the test or the packages
}

// errSwitches is the error of tests that fail for the switches themselves.
var errSwitches = errors.New("the tests do not pass with switches in the code")

// judge tries changes of one package, and calls done with the result of each.
//
// Changes that a switch can choose are compiled into one test program: the environment
// selects the change, and a first run without any change reports which ones its
// tests reach. The rest is compiled one by one, and all if the tests do not pass with
// the switches, as in code that must not be preempted.
func (r *runner) judge(ctx context.Context, pkg string, changes []mutant, done func(mutant, verdict)) error {
	var together, alone []mutant
	end := map[string]int{}
	slices.SortFunc(changes, func(a, b mutant) int {
		if a.path != b.path {
			return strings.Compare(a.path, b.path)
		}
		return a.begin - b.begin
	})
	for _, m := range changes {
		if m.begin == m.end || m.begin < end[m.path] {
			alone = append(alone, m)
			continue
		}
		end[m.path] = m.end
		together = append(together, m)
	}
	for len(together) > 0 {
		p, failed, err := r.combine(pkg, together)
		if err != nil {
			return err
		}
		if p == nil {
			// Changes in the lines of errors are left out, or all if that does not help.
			rest := slices.DeleteFunc(slices.Clone(together), func(m mutant) bool {
				return bytes.Contains(failed, fmt.Appendf(nil, "%s:%d:", filepath.Base(m.path), m.line))
			})
			if len(rest) == len(together) {
				rest = nil
			}
			for _, m := range together {
				if !slices.Contains(rest, m) {
					alone = append(alone, m)
				}
			}
			together = rest
			continue
		}
		if err := r.test(ctx, p, together, done); errors.Is(err, errSwitches) {
			alone = append(alone, together...)
		} else if err != nil {
			return err
		}
		break
	}
	for _, m := range alone {
		if ctx.Err() != nil {
			return nil
		}
		p, _, err := r.program(pkg, m)
		if err != nil {
			return err
		}
		if p == nil {
			done(m, verdict{})
			continue
		}
		if err := r.test(ctx, p, []mutant{m}, done); err != nil {
			return err
		}
	}
	return nil
}

// program is a set of files that replace the originals.
type program struct {
	pkg      string
	overlay  string
	switches bool            // whether the environment selects the change
	tests    map[string]bool // names of built test programs
}

// combine compiles a package with switches for all changes.
func (r *runner) combine(pkg string, changes []mutant) (*program, []byte, error) {
	files := map[string][]byte{}
	for i := len(changes) - 1; i >= 0; i-- { // from the end: offsets stay right
		m := changes[i]
		file := filepath.Join(r.root, m.path)
		if files[file] == nil {
			src, err := r.source(m)
			if err != nil {
				return nil, nil, err
			}
			files[file] = src
		}
		src := files[file]
		files[file] = slices.Concat(src[:m.begin], []byte(m.switched(src, i+1)), src[m.end:])
	}
	name, err := packageName(filepath.Join(r.root, changes[0].path))
	if err != nil {
		return nil, nil, err
	}
	files[filepath.Join(r.pkgs[pkg].Dir, "mutant_switch.go")] = []byte("package " + name + "\n" + switchSource)
	return r.compile(pkg, files, true)
}

// program compiles a package with one change.
func (r *runner) program(pkg string, m mutant) (*program, []byte, error) {
	src, err := r.source(m)
	if err != nil {
		return nil, nil, err
	}
	return r.compile(pkg, map[string][]byte{filepath.Join(r.root, m.path): m.apply(src)}, false)
}

// source returns the file of a change.
func (r *runner) source(m mutant) ([]byte, error) {
	src, err := os.ReadFile(filepath.Join(r.root, m.path))
	if err == nil && (m.to > len(src) || string(src[m.from:m.to]) != m.old) {
		err = fmt.Errorf("%s changed during the run", m.path)
	}
	return src, err
}

func packageName(file string) (string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly)
	if err != nil {
		return "", err
	}
	return f.Name.Name, nil
}

// switchSource is the switch in a package. MUTANT is the number of the chosen change;
// MUTANT_REACHED names a file for the numbers of changes that were reached.
const switchSource = `
import (
	"os"
	"strconv"
	"sync/atomic"
)

var (
	mutantNow, _ = strconv.Atoi(os.Getenv("MUTANT"))
	mutantLog    = os.Getenv("MUTANT_REACHED")
	mutantSeen   [1024]atomic.Bool
)

func mutantOn(n int) bool {
	if mutantLog != "" && !mutantSeen[n].Load() {
		mutantReached(n)
	}
	return mutantNow == n
}

//go:noinline
func mutantReached(n int) {
	if mutantSeen[n].Swap(true) {
		return
	}
	f, err := os.OpenFile(mutantLog, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil { // a test has given up the right, or has used up the descriptors
		mutantSeen[n].Store(false)
		return
	}
	_, err = f.WriteString(strconv.Itoa(n) + "\n")
	f.Close()
	if err != nil { // on a full disk all changes would seem to survive
		panic("mutants: " + err.Error())
	}
}
`

// compile checks that a package with other files compiles. The program is nil if not,
// and the errors are returned.
func (r *runner) compile(pkg string, files map[string][]byte, switches bool) (*program, []byte, error) {
	r.mu.Lock()
	r.built++
	number := r.built
	r.mu.Unlock()
	p := &program{pkg: pkg, switches: switches, overlay: filepath.Join(r.dir, fmt.Sprint(number, ".json")), tests: map[string]bool{}}
	replace := map[string]string{}
	for file, src := range files {
		replace[file] = filepath.Join(r.dir, fmt.Sprint(number, "-", filepath.Base(file)))
		if err := os.WriteFile(replace[file], src, 0o600); err != nil {
			return nil, nil, err
		}
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return nil, nil, err
	}
	if err := os.WriteFile(p.overlay, text, 0o600); err != nil {
		return nil, nil, err
	}
	if names := r.testers(pkg); len(names) > 0 {
		if _, failed := r.testProgram(p, names[0]); failed != nil {
			return nil, failed, nil
		}
	}
	return p, nil, nil
}

// testProgram builds the tests of a package.
func (r *runner) testProgram(p *program, name string) (file string, failed []byte) {
	file = strings.TrimSuffix(p.overlay, ".json") + "-" + strings.ReplaceAll(r.short(name), "/", "-") + ".test"
	if p.tests[name] {
		return file, nil
	}
	out, err := r.command("go", "test", "-c", "-overlay", p.overlay, "-ldflags", "-s -w", "-o", file, name).CombinedOutput()
	if err != nil {
		return "", append(out, '\n')
	}
	p.tests[name] = true
	return file, nil
}

var failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// test runs the tests of all testers against changes.
func (r *runner) test(ctx context.Context, p *program, changes []mutant, done func(mutant, verdict)) error {
	defer func() {
		for name := range p.tests {
			file, _ := r.testProgram(p, name)
			os.Remove(file)
		}
	}()
	names := r.testers(p.pkg)
	numbers := map[int]bool{}
	for i := range changes {
		numbers[i+1] = true
	}
	var used []string
	for _, name := range names {
		if len(numbers) == 0 || ctx.Err() != nil {
			break
		}
		file, failed := r.testProgram(p, name)
		if failed != nil {
			continue // its tests use what the change removed
		}
		u, reached, err := r.baseline(p, name, file)
		if err != nil {
			return err
		}
		if u.took < 0 {
			fmt.Fprintf(r.out, "%s fails without a change: not used\n", r.short(name))
			if p.switches && name == p.pkg {
				return errSwitches
			}
			continue
		}
		used = append(used, r.short(name))
		limit := (r.slack + 5*u.took).Round(time.Second)
		for i, m := range changes {
			if !numbers[i+1] || p.switches && !reached[i+1] {
				continue
			}
			if ctx.Err() != nil {
				return nil
			}
			out, _, err := r.run(file, name, u.skip, limit, 8+3*u.idle, "MUTANT="+strconv.Itoa(i+1))
			if err == nil {
				continue
			}
			v := verdict{compiled: true, noticed: true, by: r.short(name)}
			if at := failedTest.FindSubmatch(out); at != nil {
				v.by += " " + string(at[1])
			}
			if bytes.Contains(out, []byte("panic: test timed out after")) || ended(err) {
				v.limit = true
				v.by = r.short(name) + ", did not end"
			}
			delete(numbers, i+1)
			done(m, v)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	for i, m := range changes {
		if numbers[i+1] {
			done(m, verdict{compiled: true, by: strings.Join(used, ", ")})
		}
	}
	return nil
}

// ended reports whether a program was killed, which a limit of memory does too.
func ended(err error) bool {
	var e *exec.ExitError
	return errors.As(err, &e) && e.ExitCode() < 0
}

// run runs the short tests of a package but those in skip. It returns how long they
// used no processor at a stretch, and kills them after that many seconds of it.
func (r *runner) run(file, name, skip string, limit time.Duration, patience int, env ...string) (out []byte, idle int, err error) {
	plain := r.command(file, "-test.short", "-test.failfast", "-test.paniconexit0", "-test.timeout", limit.String(), "-test.skip", skip)
	ctx, cancel := context.WithTimeout(context.Background(), limit+30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, plain.Args[0], plain.Args[1:]...)
	cmd.Dir = r.pkgs[name].Dir
	cmd.Env = append(append(plain.Env, "PWD="+cmd.Dir), env...)
	cmd.WaitDelay = time.Second
	var buf bytes.Buffer
	cmd.Stdout, cmd.Stderr = &buf, &buf
	if err := cmd.Start(); err != nil {
		return nil, 0, err
	}
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for last, stretch := 0, 0; ; {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			used, ok := usedTicks(cmd.Process.Pid)
			if stretch++; !ok || used > last+1 { // the runtime itself uses a little
				stretch = 0
			}
			last = used
			if idle = max(idle, stretch); idle > patience {
				cancel()
			}
		}
	})
	err = cmd.Wait()
	close(done)
	watch.Wait()
	return buf.Bytes(), idle, err
}

// usedTicks returns the processor time that a process used, where the system has files
// about processes.
func usedTicks(pid int) (ticks int, ok bool) {
	text, err := os.ReadFile(fmt.Sprint("/proc/", pid, "/stat"))
	if err != nil {
		return 0, false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(rest)
	if len(f) < 15 {
		return 0, false
	}
	for _, s := range f[11:15] { // of itself and of children that ended
		n, _ := strconv.Atoi(s)
		ticks += n
	}
	return ticks, true
}

// usual is the result of tests without a change.
type usual struct {
	took time.Duration // less than zero if they fail
	idle int           // the longest stretch without a use of a processor, in seconds
	skip string        // tests that fail, such as tests that read the generated code
}

// baseline runs tests without a change, and returns which changes they reach.
func (r *runner) baseline(p *program, name, file string) (u usual, reached map[int]bool, err error) {
	if !p.switches {
		// The change is always on: the tests have to pass without it.
		r.mu.Lock()
		u, ok := r.plain[name]
		r.mu.Unlock()
		if ok {
			return u, nil, nil
		}
		plain := &program{pkg: p.pkg, overlay: strings.TrimSuffix(p.overlay, ".json") + "-none.json", tests: map[string]bool{}}
		if err := os.WriteFile(plain.overlay, []byte("{}"), 0o600); err != nil {
			return u, nil, err
		}
		var failed []byte
		if file, failed = r.testProgram(plain, name); failed != nil {
			return u, nil, fmt.Errorf("%s: %s", name, failed)
		}
		defer os.Remove(file)
	}
	log := strings.TrimSuffix(p.overlay, ".json") + "-reached"
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		return u, nil, err
	}
	for u.skip = "^$"; ; {
		began := time.Now()
		out, idle, failed := r.run(file, name, u.skip, 10*time.Minute, math.MaxInt, "MUTANT=0", "MUTANT_REACHED="+log)
		u.took, u.idle = time.Since(began), idle
		if failed == nil {
			break
		}
		at := failedTest.FindSubmatch(out)
		if at == nil {
			u.took = -1
			break
		}
		test, _, _ := strings.Cut(string(at[1]), "/")
		fmt.Fprintf(r.out, "%s: %s fails without a change: not used\n", r.short(name), test)
		u.skip += "|^" + test + "$"
	}
	if !p.switches {
		r.mu.Lock()
		r.plain[name] = u
		r.mu.Unlock()
	}
	text, err := os.ReadFile(log)
	reached = map[int]bool{}
	for s := range strings.FieldsSeq(string(text)) {
		if n, err := strconv.Atoi(s); err == nil {
			reached[n] = true
		}
	}
	return u, reached, err
}

// short returns an import path without the module's.
func (r *runner) short(name string) string { return strings.TrimPrefix(name, modulePath+"/") }
