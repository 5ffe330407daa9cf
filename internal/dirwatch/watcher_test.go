package dirwatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/goleak"

	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// log collects events.
type log struct {
	t *testing.T
	*Watcher

	mu   sync.Mutex // guards told
	told []Event
}

func start(t *testing.T) *log {
	l := &log{t: t}
	l.Watcher = Start(slog.New(slog.DiscardHandler), func(e Event) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.told = append(l.told, e)
	})
	t.Cleanup(l.Close)
	return l
}

// expect runs a function and waits until e was reported once more than before.
func (l *log) expect(e Event, do func() error) {
	l.t.Helper()
	count := func() (n int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, x := range l.told {
			if x == e {
				n++
			}
		}
		return n
	}
	before := count()
	if err := do(); err != nil {
		l.t.Fatal(err)
	}
	waittest.Until(l.t, fmt.Sprintf("%+v is reported", e), func() bool { return count() != before })
}

func write(path string) func() error {
	return func() error { return os.WriteFile(path, []byte("x"), 0o600) }
}

func all(steps ...func() error) func() error {
	return func() error {
		for _, step := range steps {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	}
}

func remove(dir string) func() error { return func() error { return os.RemoveAll(dir) } }
func mkdir(dir string) func() error  { return func() error { return os.MkdirAll(dir, 0o700) } }
func link(to, at string) func() error {
	return func() error {
		if err := os.Symlink(to, at+".next"); err != nil {
			return err
		}
		return os.Rename(at+".next", at)
	}
}

func TestRemovedDirectoryIsFollowed(t *testing.T) {
	for _, parentToo := range []bool{false, true} {
		t.Run(fmt.Sprint(parentToo), func(t *testing.T) {
			parent := t.TempDir()
			dir := filepath.Join(parent, "d")
			file := filepath.Join(dir, "f")
			l := start(t)
			if parentToo {
				if err := l.Add(parent); err != nil {
					t.Fatal(err)
				}
			}
			if err := mkdir(dir)(); err != nil {
				t.Fatal(err)
			}
			if err := l.Add(dir); err != nil {
				t.Fatal(err)
			}
			came := Event{Dir: dir, Name: "f", Came: true}
			l.expect(came, write(file))
			l.expect(Event{Dir: dir}, all(remove(dir), mkdir(dir)))
			l.expect(came, write(file))
			l.expect(Event{Dir: dir}, all(func() error { return os.Rename(dir, dir+".old") }, mkdir(dir)))
			l.expect(came, write(file))
			if parentToo {
				l.expect(Event{Dir: parent, Name: "d", Gone: true}, remove(dir))
			}
		})
	}
}

func TestDirectoryThatComesLater(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	l := start(t)
	if l.Add(dir) == nil {
		t.Error("a missing directory is no error")
	}
	l.expect(Event{Dir: dir}, mkdir(dir))
	l.expect(Event{Dir: dir, Name: "f", Came: true}, write(filepath.Join(dir, "f")))
	plain := filepath.Join(dir, "f")
	if l.Add(plain) == nil {
		t.Error("a file is watched as a directory")
	}
	l.expect(Event{Dir: plain}, all(remove(plain), mkdir(plain)))
}

// TestLinksAreFollowed also watches one directory under two paths.
func TestLinksAreFollowed(t *testing.T) {
	root := t.TempDir()
	one, two, current := filepath.Join(root, "one"), filepath.Join(root, "two"), filepath.Join(root, "current")
	if err := all(mkdir(one), mkdir(two), link("one", current))(); err != nil {
		t.Fatal(err)
	}
	l := start(t)
	for _, dir := range []string{current, one} {
		if err := l.Add(dir); err != nil {
			t.Fatal(err)
		}
	}
	l.expect(Event{Dir: current, Name: "f", Came: true}, write(filepath.Join(one, "f")))
	l.expect(Event{Dir: one, Name: "g", Came: true}, write(filepath.Join(current, "g")))
	l.expect(Event{Dir: current}, link("two", current))
	l.expect(Event{Dir: current, Name: "h", Came: true}, write(filepath.Join(two, "h")))
	l.expect(Event{Dir: one, Name: "i", Came: true}, write(filepath.Join(one, "i")))
}

func TestRemovedWatchesTellNothing(t *testing.T) {
	root := t.TempDir()
	a, b := filepath.Join(root, "a"), filepath.Join(root, "b")
	l := start(t)
	for _, dir := range []string{a, a, b} {
		if err := mkdir(dir)(); err != nil {
			t.Fatal(err)
		}
		if err := l.Add(dir); err != nil {
			t.Fatal(err)
		}
	}
	l.Remove(a) // was added twice
	l.expect(Event{Dir: a, Name: "f", Came: true}, write(filepath.Join(a, "f")))
	l.Remove(a)
	// Later changes in b are reported later.
	l.expect(Event{Dir: b, Name: "g", Came: true}, all(write(filepath.Join(a, "g")), write(filepath.Join(b, "g"))))
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.ContainsFunc(l.told, func(e Event) bool { return e.Dir == a && e.Name == "g" }) {
		t.Errorf("%+v told of a directory that was removed", l.told)
	}
	l.Remove(a) // once too often
}

// TestCallbackPanics: a callback that panics still gets the next event.
func TestCallbackPanics(t *testing.T) {
	panics, events := guardtest.New(t), make(chan Event, 100)
	w := Start(panics.Logger(), func(e Event) {
		if e.Name == "bad" && !e.Came {
			return // of the same file
		}
		events <- e
		if e.Name == "bad" {
			panic(guardtest.Canary)
		}
	})
	defer w.Close()
	dir := t.TempDir()
	if err := w.Add(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bad", "good"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for e := range events {
			if e.Name == name {
				break
			}
		}
	}
	panics.Caught("change in a directory")
}

// wildLog panics on the message that events may be lost.
type wildLog struct {
	slog.Handler
	once sync.Once
}

func (w *wildLog) Handle(ctx context.Context, r slog.Record) error {
	w.once.Do(func() { panic(guardtest.Canary) })
	return w.Handler.Handle(ctx, r)
}

func (w *wildLog) Enabled(context.Context, slog.Level) bool { return true }

// TestWatchPanics: watching continues after a panic in the watcher.
func TestWatchPanics(t *testing.T) {
	panics, events := guardtest.New(t), make(chan Event, 100)
	w := Start(slog.New(&wildLog{Handler: panics.Logger().Handler()}), func(e Event) { events <- e })
	defer w.Close()
	dir := t.TempDir()
	if err := w.Add(dir); err != nil {
		t.Fatal(err)
	}
	w.notify.Errors <- errors.New("events are lost")
	panics.Caught("watch of directories")
	if err := os.WriteFile(filepath.Join(dir, "good"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for e := range events {
		if e.Name == "good" {
			break
		}
	}
}

// TestEachDirectoryIsLookedAt has many directories, half of which were replaced: one look
// finds all of these.
func TestEachDirectoryIsLookedAt(t *testing.T) {
	root := t.TempDir()
	var found []string
	w := &Watcher{log: slog.New(slog.DiscardHandler), running: true, dirs: make(map[string]*place), report: func(e Event) { found = append(found, e.Dir) }}
	var err error
	if w.notify, err = fsnotify.NewWatcher(); err != nil {
		t.Skip("the system has no watch left:", err)
	}
	defer w.notify.Close()
	var replaced []string
	for i := range 20 {
		dir := filepath.Join(root, fmt.Sprintf("%02d", i))
		if err := mkdir(dir)(); err != nil {
			t.Fatal(err)
		}
		if err := w.Add(dir); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			replaced = append(replaced, dir)
			if err := all(func() error { return os.Rename(dir, dir+".old") }, mkdir(dir))(); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.look()
	if slices.Sort(found); !slices.Equal(found, replaced) {
		t.Errorf("found %q, want %q", found, replaced)
	}
	found = nil
	if w.look(); len(found) != 0 {
		t.Errorf("the next look finds %q", found)
	}
}
