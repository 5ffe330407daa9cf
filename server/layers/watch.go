package layers

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// Run watches the symlink roots of disk layers and builds a new snapshot
// whenever something is moved into the place of one of them. Edits below a
// root are not noticed: a tree is published by replacing the link. Run returns
// nil when ctx is done, at once when there is no disk layer.
func (l *Loader) Run(ctx context.Context) error {
	roots := make(map[string]bool)
	for _, layer := range l.cfg.Layers {
		if layer.Kind == Disk {
			roots[filepath.Clean(layer.SymlinkRoot)] = true
		}
	}
	if len(roots) == 0 {
		return nil
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("layers: %w", err)
	}
	defer watcher.Close()
	for root := range roots {
		if err := watcher.Add(filepath.Dir(root)); err != nil {
			l.cfg.Log.Warn("cannot watch runtime directory", "directory", filepath.Dir(root), "error", err.Error())
		}
	}
	l.catchUp() // what was moved before the watch began
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-watcher.Events:
			if !ok {
				return nil
			}
			if event.Has(fsnotify.Create) && roots[filepath.Clean(event.Name)] {
				l.Reload()
			}
		case err, ok := <-watcher.Errors:
			if !ok {
				return nil
			}
			l.cfg.Log.Warn("watching runtime directories", "error", err.Error())
			l.Reload() // events may have been lost
		}
	}
}

// catchUp reloads when a symlink root points elsewhere than when it was read.
func (l *Loader) catchUp() {
	l.mu.Lock()
	moved := false
	for root, target := range l.target {
		moved = moved || linkTarget(root) != target
	}
	l.mu.Unlock()
	if moved {
		l.Reload()
	}
}
