package layers

import (
	"context"
	"path/filepath"

	"github.com/statsd-admin/statsd-admin/internal/dirwatch"
	"github.com/statsd-admin/statsd-admin/internal/guard"
)

// Run watches the symlink roots of disk layers. It builds a new snapshot when
// something is moved into the place of a root, or when the directory of a root is
// replaced. Edits below a root are not noticed: publish a tree by replacing the link.
// Run returns nil when ctx is done, or at once if there is no disk layer.
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
	changed := make(chan struct{}, 1)
	watcher := dirwatch.Start(l.cfg.Logger, func(e dirwatch.Event) {
		if e.Name == "" || e.Came && roots[filepath.Join(e.Dir, e.Name)] {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	})
	defer watcher.Close()
	for root := range roots {
		if err := watcher.Add(filepath.Dir(root)); err != nil {
			l.cfg.Logger.Warn("cannot watch runtime directory yet", "directory", filepath.Dir(root), "error", err.Error())
		}
	}
	next := l.catchUp // moves from before the watch began
	for {
		guard.New(l.cfg.Logger).Run("change of runtime values", next)
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			next = l.Reload
		}
	}
}

// catchUp reloads if a symlink root has changed since it was read.
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
