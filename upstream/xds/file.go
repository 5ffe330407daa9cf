package xds

import (
	"cmp"
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"

	"github.com/statsd-admin/statsd-admin/internal/boundedfile"
	"github.com/statsd-admin/statsd-admin/internal/dirwatch"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// followFile delivers a file to s until ctx is done: at once, and again when a file
// is moved to its path or into the watched directory, or when that directory is
// replaced.
func (c *Client) followFile(ctx context.Context, src *config.ConfigSource, s *subscription) {
	w := &fileWatch{dir: filepath.Dir(src.Path), file: filepath.Base(src.Path), moved: make(chan struct{}, 1)}
	if src.WatchedDirectory != "" {
		w.dir, w.file = src.WatchedDirectory, ""
	}
	w.dir = filepath.Clean(w.dir)
	if err := c.files.watch(w); err != nil { // the file can exist even if its directory cannot be watched
		c.log.Warn("cannot watch directory yet", "directory", w.dir, "error", err.Error())
	}
	defer c.files.leave(w)
	s.polled = true
	for {
		s.guard.Run("discovery file", func() { c.readFile(src.Path, s) })
		select {
		case <-ctx.Done():
			return
		case <-w.moved:
			s.stats.attempt.Inc()
		}
	}
}

func (c *Client) readFile(path string, s *subscription) {
	data, err := boundedfile.Read(path, c.o.MaxMessageBytes)
	if err != nil {
		c.log.Warn("cannot read discovery file", "error", err.Error())
		s.failed()
		s.answered()
		s.start()
		return
	}
	u := &update{full: true}
	if strings.HasSuffix(path, ".pb") {
		var r *response
		if r, err = decodeResponse(data, false); err == nil {
			u = &r.update
		}
	} else {
		u.version, u.resources, err = c.o.Decoder.ResponseText(path, data)
		for i := range u.resources {
			u.resources[i].Version = cmp.Or(u.resources[i].Version, u.version)
		}
	}
	if err != nil {
		c.log.Warn("discovery file refused", "file", path, "error", err.Error())
		s.reject()
		return
	}
	s.update(u)
}

// fileWatch waits for moves into a directory.
type fileWatch struct {
	dir   string
	file  string        // name to wait for; empty for any
	moved chan struct{} // signals a move; capacity 1
}

// files watches directories for all subscriptions.
type files struct {
	log *slog.Logger

	mu      sync.Mutex // guards the fields below
	watcher *dirwatch.Watcher
	waiting map[*fileWatch]struct{}
}

// watch starts to report moves. After an error it starts later, when the directory
// appears. A goroutine runs while there are watches.
func (f *files) watch(w *fileWatch) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watcher == nil {
		f.watcher, f.waiting = dirwatch.Start(f.log, f.notify), make(map[*fileWatch]struct{})
	}
	f.waiting[w] = struct{}{}
	return f.watcher.Add(w.dir)
}

// leave ends a watch.
func (f *files) leave(w *fileWatch) {
	f.mu.Lock()
	delete(f.waiting, w)
	f.watcher.Remove(w.dir)
	var last *dirwatch.Watcher
	if len(f.waiting) == 0 {
		last, f.watcher = f.watcher, nil
	}
	f.mu.Unlock()
	if last != nil {
		last.Close()
	}
}

// signal reports a change to w.
func (f *files) notify(e dirwatch.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.waiting {
		if w.dir != e.Dir || e.Name != "" && (!e.Came || w.file != "" && w.file != e.Name) {
			continue
		}
		select {
		case w.moved <- struct{}{}:
		default:
		}
	}
}
