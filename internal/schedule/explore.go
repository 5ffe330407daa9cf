//go:build schedule

package schedule

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
)

// current is the running program, nil outside of Explore. Programs run one at a
// time, on goroutines that hand over to each other.
var current *program

// program is a concurrent program of a trial.
type program struct {
	number    int
	processor int
	yield     func(struct{}) bool
	next      func() (struct{}, bool)
	pinned    bool
	waiting   *Mutex // nil unless blocked
	done      bool
}

// stopped is the panic that ends the programs of a failed trial.
type stopped struct{}

// Enabled reports whether Point does anything.
const Enabled = true

// Point is a place where an explored program can be preempted.
func Point() {
	if p := current; p != nil && !p.yield(struct{}{}) {
		panic(stopped{})
	}
}

// Pin returns the processor of the running program, 0 outside of Explore.
func Pin() int {
	if current == nil {
		return 0
	}
	Point()
	current.pinned = true
	return current.processor
}

// Unpin ends what Pin began.
func Unpin() {
	if current != nil {
		current.pinned = false
		Point()
	}
}

// Mutex is a lock for which an explored program can wait.
type Mutex struct{ mu sync.Mutex }

// Lock locks m.
func (m *Mutex) Lock() {
	if current == nil {
		m.mu.Lock()
		return
	}
	for Point(); !m.mu.TryLock(); Point() {
		current.waiting = m
	}
	current.waiting = nil
}

// TryLock tries to lock m and reports whether it succeeded.
func (m *Mutex) TryLock() bool {
	Point()
	return m.mu.TryLock()
}

// Unlock unlocks m.
func (m *Mutex) Unlock() {
	m.mu.Unlock()
	Point()
}

// ready reports whether p can take a step: it has not ended, waits for no lock,
// and no other program is pinned to its processor.
func (p *program) ready(programs []*program) bool {
	if p.done || slices.ContainsFunc(programs, func(q *program) bool {
		return q != p && q.pinned && q.processor == p.processor
	}) {
		return false
	}
	if m := p.waiting; m != nil {
		if !m.mu.TryLock() {
			return false
		}
		m.mu.Unlock()
	}
	return true
}

// Trial is a fresh state, programs that run concurrently on it, and a check of
// the result.
type Trial struct {
	Programs []func()
	Shared   bool // all programs run on processor 0 instead of one on each
	Check    func() error
}

// choice is a step of a schedule at which several programs could run.
type choice struct {
	options []int // the first continues the running program if that is possible
	taken   int
}

// Explore runs the trial that prepare returns under every schedule with at most the
// given number of preemptions, each on a new trial. It returns the number of
// schedules and the first failure. Programs must be deterministic.
func Explore(preemptions int, prepare func() Trial) (schedules int, err error) {
	var path []choice
	for {
		schedules++
		if path, err = run(preemptions, path, prepare()); err != nil {
			return schedules, fmt.Errorf("schedule %s: %w", describe(path), err)
		}
		for len(path) > 0 && path[len(path)-1].taken == len(path[len(path)-1].options)-1 {
			path = path[:len(path)-1]
		}
		if len(path) == 0 {
			return schedules, nil
		}
		path[len(path)-1].taken++
	}
}

// run runs one schedule: the choices of path and, after those, no preemptions.
func run(preemptions int, path []choice, trial Trial) (_ []choice, err error) {
	programs := make([]*program, len(trial.Programs))
	for i, f := range trial.Programs {
		p := &program{number: i, processor: i}
		if trial.Shared {
			p.processor = 0
		}
		var stop func()
		p.next, stop = iter.Pull(func(yield func(struct{}) bool) {
			defer func() {
				if v := recover(); v != nil && v != (stopped{}) {
					panic(v)
				}
			}()
			p.yield = yield
			f()
		})
		defer stop()
		programs[i] = p
	}
	defer func() {
		current = nil
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	steps := 0
	for last := (*program)(nil); ; steps++ {
		options := make([]int, 0, len(programs))
		if last != nil && last.ready(programs) {
			options = append(options, last.number)
		}
		if len(options) == 0 || preemptions > 0 {
			for _, p := range programs {
				if p != last && p.ready(programs) {
					options = append(options, p.number)
				}
			}
		}
		if len(options) == 0 {
			break
		}
		if steps == len(path) {
			path = append(path, choice{options: options})
		} else if !slices.Equal(options, path[steps].options) {
			return path, errors.New("the programs are not deterministic")
		}
		if steps > 100_000 {
			return path, errors.New("the programs do not end")
		}
		p := programs[options[path[steps].taken]]
		if path[steps].taken > 0 && options[0] == lastNumber(last) {
			preemptions--
		}
		current, last = p, p
		_, more := p.next()
		current, p.done = nil, !more
	}
	for _, p := range programs {
		if !p.done {
			return path, errors.New("deadlock")
		}
	}
	return path, trial.Check()
}

func lastNumber(p *program) int {
	if p == nil {
		return -1
	}
	return p.number
}

// describe writes the schedule as runs of steps: 0×12 1×3 0×8.
func describe(path []choice) string {
	var b strings.Builder
	n, last := 0, -1
	for i, c := range path {
		p := c.options[c.taken]
		if p == last {
			n++
		} else {
			n, last = 1, p
		}
		if i+1 == len(path) || path[i+1].options[path[i+1].taken] != last {
			fmt.Fprintf(&b, " %d×%d", last, n)
		}
	}
	return strings.TrimSpace(b.String())
}
