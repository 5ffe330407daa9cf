package layers

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/descriptors"
	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
)

// TestSymlinkSwap publishes trees by renaming a link into place, as documented.
func TestSymlinkSwap(t *testing.T) {
	one, two := tree(t, map[string]string{"k": "1"}), tree(t, map[string]string{"k": "2", "l": "new"})
	dir := t.TempDir()
	current := filepath.Join(dir, "current")
	swap := func(target string) {
		t.Helper()
		next := filepath.Join(dir, "next")
		if err := os.Symlink(target, next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, current); err != nil {
			t.Fatal(err)
		}
	}
	swap(one)
	changed := make(chan struct{}, 100)
	l := mustNew(t, Config{Changed: func() { changed <- struct{}{} }, Layers: []Layer{
		{Name: "a", Kind: Disk, SymlinkRoot: current}, {Name: "b", Kind: Disk, SymlinkRoot: current, Subdirectory: "none"},
	}})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	swap(two) // before the watch begins
	go func() { done <- l.Run(ctx) }()
	wait := func() {
		t.Helper()
		select {
		case <-changed:
		case <-time.After(30 * time.Second):
			t.Fatal("no reload")
		}
	}
	wait()
	if got, _ := l.Snapshot().Get("k"); got != "2" {
		t.Errorf("k = %q", got)
	}
	swap(one)
	wait()
	if got, _ := l.Snapshot().Get("k"); got != "1" || l.Snapshot().Len() != 1 {
		t.Errorf("k = %q, %d keys", got, l.Snapshot().Len())
	}
	// An edit in place only shows in the next build, whatever causes it.
	if err := os.WriteFile(filepath.Join(one, "k"), []byte("edited"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, _ := l.Snapshot().Get("k"); got != "1" {
		t.Errorf("k = %q after an edit in place", got)
	}
	swap(one) // another link to the same tree
	waittest.Equal(t, "k after another link", "edited", shown(l))
	if err := os.WriteFile(filepath.Join(one, "k"), []byte("again"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.Reload()
	if got, _ := l.Snapshot().Get("k"); got != "again" {
		t.Errorf("k = %q after Reload", got)
	}
	descriptors.Check(t, "reload", l.Reload)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestChangesPanic: a callback that panics is still called for the next values.
func TestChangesPanic(t *testing.T) {
	dir := t.TempDir()
	current := filepath.Join(dir, "current")
	panics := guardtest.New(t)
	var wild atomic.Bool
	l := mustNew(t, Config{
		Layers: []Layer{{Name: "a", Kind: Disk, SymlinkRoot: current}}, Logger: panics.Logger(),
		Changed: func() {
			if wild.Load() {
				panic(guardtest.Canary)
			}
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	swap := func(value string) {
		t.Helper()
		next := filepath.Join(dir, "next")
		if err := os.Symlink(tree(t, map[string]string{"k": value}), next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, current); err != nil {
			t.Fatal(err)
		}
	}
	wild.Store(true)
	swap("1")
	go func() { done <- l.Run(ctx) }()
	panics.Caught("change of runtime values")
	wild.Store(false)
	swap("2")
	waittest.Equal(t, "k", "2", shown(l))
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestDirectoryOfTheLinkIsMadeAgain removes the directory that holds the link to a
// tree, and recreates it with a link to another tree.
func TestDirectoryOfTheLinkIsMadeAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	current := filepath.Join(dir, "current")
	log := make(lines, 100)
	l := mustNew(t, Config{Layers: []Layer{{Name: "a", Kind: Disk, SymlinkRoot: current}}, Logger: slog.New(slog.NewTextHandler(log, nil))})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- l.Run(ctx) }() // there is no directory yet
	if line := <-log; !strings.Contains(line, "cannot watch runtime directory yet") || !strings.Contains(line, dir) {
		t.Errorf("the log says %s", line)
	}
	for _, value := range []string{"1", "2", "3"} {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(tree(t, map[string]string{"k": value}), current); err != nil {
			t.Fatal(err)
		}
		waittest.Equal(t, "k", value, shown(l))
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestRunWithoutDiskReturns(t *testing.T) {
	l := mustNew(t, Config{Layers: []Layer{{Name: "a", Kind: Admin}}})
	if err := l.Run(context.Background()); err != nil {
		t.Error(err)
	}
}
