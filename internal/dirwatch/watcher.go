package dirwatch

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/statsd-admin/statsd-admin/internal/guard"
)

// lookAgain is the interval at which directories are compared with the active
// watches. The system reports most losses of a directory, but not a changed link
// above it, a mount over it, or its return.
const lookAgain = time.Second

// Event is a change in a directory.
type Event struct {
	Dir string // as it was added
	// Name is the changed entry. If it is empty, the directory has been replaced or
	// events may have been lost, so anything may have changed.
	Name string
	// Came means that the entry was created or moved here, Gone that it was removed
	// or moved away. If both are false, it changed in place.
	Came, Gone bool
}

// Watcher reports changes in directories. Create it with [Start]. Its methods are
// safe for concurrent use.
type Watcher struct {
	log    *slog.Logger
	report func(Event)

	stop, ended chan struct{}

	mu      sync.Mutex        // guards the rest
	running bool              // run has been started
	notify  *fsnotify.Watcher // nil: the system has no more; run sets it once it runs, and reads it without the lock
	dirs    map[string]*place
}

// place is the watched location of a directory.
type place struct {
	uses int
	real string // its path without links; empty: nothing is watched
	info fs.FileInfo
}

// Start returns a watcher without directories, which takes nothing from the system until
// the first Add. It calls report for each change, in sequence and without holding a lock;
// report must not call Close. A panic in report is logged, and watching continues.
func Start(log *slog.Logger, report func(Event)) *Watcher {
	return &Watcher{log: log, report: report, stop: make(chan struct{}), ended: make(chan struct{}), dirs: make(map[string]*place)}
}

// runLocked starts watching unless it has been started. w.mu is held.
func (w *Watcher) runLocked() {
	if w.running {
		return
	}
	w.running = true
	var err error
	if w.notify, err = fsnotify.NewWatcher(); err != nil {
		w.log.Warn("cannot watch directories yet", "error", err.Error())
	}
	go func() {
		defer close(w.ended)
		for !guard.New(w.log).Run("watch of directories", w.run) { // run starts with a pause
		}
	}()
}

// Close stops watching. After it returns, report is not called any more.
func (w *Watcher) Close() {
	w.mu.Lock()
	running := w.running
	w.mu.Unlock()
	close(w.stop)
	if running {
		<-w.ended
	}
}

// Add watches a directory. An error means that it cannot be watched yet; the watcher
// keeps trying and reports when it succeeds. Each Add needs its own Remove.
func (w *Watcher) Add(dir string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.dirs[dir]; p != nil {
		p.uses++
		return nil
	}
	p := &place{uses: 1}
	w.dirs[dir] = p
	w.runLocked()
	return w.watchLocked(dir, p)
}

// Remove undoes one call of Add.
func (w *Watcher) Remove(dir string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.dirs[dir]
	if p == nil {
		return
	}
	if p.uses--; p.uses > 0 {
		return
	}
	delete(w.dirs, dir)
	w.dropLocked(p.real)
}

// watchLocked watches the current directory at dir. w.mu is held.
func (w *Watcher) watchLocked(dir string, p *place) error {
	if w.notify == nil {
		return fmt.Errorf("dirwatch: directory %q: the system has no watches left", dir)
	}
	real, err := realPath(dir)
	if err != nil {
		return fmt.Errorf("dirwatch: %w", err)
	}
	// In this order, so that the next comparison notices a replacement in between.
	info, err := os.Stat(real)
	if err != nil {
		return fmt.Errorf("dirwatch: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("dirwatch: %q is not a directory", dir)
	}
	if err := w.notify.Add(real); err != nil {
		return fmt.Errorf("dirwatch: directory %q: %w", dir, err)
	}
	p.real, p.info = real, info
	return nil
}

// realPath returns the absolute path of a directory without links.
func realPath(dir string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	return filepath.Abs(real)
}

// dropLocked stops the watch of a path that no directory needs. w.mu is held.
func (w *Watcher) dropLocked(real string) {
	for _, p := range w.dirs {
		if p.real == real {
			return
		}
	}
	if real != "" && w.notify != nil {
		_ = w.notify.Remove(real) // it may be gone
	}
}

func (w *Watcher) run() {
	tick := time.Tick(lookAgain)
	for {
		var events chan fsnotify.Event
		var failures chan error
		if w.notify != nil {
			events, failures = w.notify.Events, w.notify.Errors
		}
		select {
		case <-w.stop:
			if w.notify != nil {
				_ = w.notify.Close()
			}
			return
		case e := <-events:
			w.changed(e)
		case err := <-failures: // events may have been lost
			w.log.Warn("watching directories", "error", err.Error())
			w.mu.Lock()
			var all []Event
			for dir := range w.dirs {
				all = append(all, Event{Dir: dir})
			}
			w.mu.Unlock()
			w.tellAll(all)
		case <-tick:
			if w.notify == nil {
				notify, _ := fsnotify.NewWatcher()
				w.mu.Lock()
				w.notify = notify
				w.mu.Unlock()
			}
			w.look()
		}
	}
}

func (w *Watcher) tellAll(list []Event) {
	for _, e := range list {
		guard.New(w.log).Run("change in a directory", func() { w.report(e) })
	}
}

// changed handles an event of the system.
func (w *Watcher) changed(e fsnotify.Event) {
	parent, gone := filepath.Dir(e.Name), e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)
	var list []Event
	w.mu.Lock()
	for dir, p := range w.dirs {
		if gone && p.real == e.Name {
			p.real = ""
			if w.watchLocked(dir, p) == nil {
				list = append(list, Event{Dir: dir})
			}
		} else if p.real == parent {
			list = append(list, Event{Dir: dir, Name: filepath.Base(e.Name), Came: e.Has(fsnotify.Create), Gone: gone})
		}
	}
	w.mu.Unlock()
	w.tellAll(list)
}

// look compares the directory at each place with its watch.
func (w *Watcher) look() {
	var list []Event
	w.mu.Lock()
	for _, p := range w.dirs {
		if info, err := os.Stat(p.real); err != nil || !os.SameFile(info, p.info) {
			w.forgetLocked(p) // also one that has no watch
		}
	}
	for dir, p := range w.dirs {
		if p.real != "" {
			if real, err := realPath(dir); err == nil && real == p.real {
				continue
			}
			w.forgetLocked(p)
		}
		if w.watchLocked(dir, p) == nil {
			list = append(list, Event{Dir: dir})
		}
	}
	w.mu.Unlock()
	w.tellAll(list)
}

// forgetLocked stops the watch of p. w.mu is held.
func (w *Watcher) forgetLocked(p *place) {
	real := p.real
	p.real = ""
	w.dropLocked(real)
}
