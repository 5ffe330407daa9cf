package xds

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// followFile leads what a file says to s until ctx is done: at once, and again
// whenever a file is moved into its place, or anything is moved into the
// directory to watch.
func (c *Client) followFile(ctx context.Context, src *config.ConfigSource, s *subscription) {
	w := &fileWatch{dir: filepath.Dir(src.Path), file: filepath.Clean(src.Path), moved: make(chan struct{}, 1)}
	if src.WatchedDirectory != "" {
		w.dir, w.file = src.WatchedDirectory, ""
	}
	w.dir = filepath.Clean(w.dir)
	const again = 5 * time.Second
	retry := time.NewTimer(again)
	defer retry.Stop()
	for first := true; ; first = false {
		err := c.files.watch(w)
		if err == nil {
			retry.Stop()
			defer c.files.leave(w)
			c.readFile(src.Path, s)
			break
		}
		if first { // the file may be there though its directory cannot be watched
			c.log.Warn("cannot watch directory", "directory", w.dir, "error", err.Error())
			c.readFile(src.Path, s)
		}
		retry.Reset(again)
		select {
		case <-ctx.Done():
			return
		case <-retry.C:
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.moved:
			c.readFile(src.Path, s)
		}
	}
}

// readFile puts a file in force.
func (c *Client) readFile(path string, s *subscription) {
	data, err := readAtMost(path, c.o.MaxMessageBytes)
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
			if u.resources[i].Version == "" {
				u.resources[i].Version = u.version
			}
		}
	}
	if err != nil {
		c.log.Warn("discovery file refused", "file", path, "error", err.Error())
		s.reject()
		return
	}
	s.update(u)
}

func readAtMost(path string, most int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(data) > most {
		err = fmt.Errorf("xds: file %q has more than %d bytes", path, most)
	}
	return data, err
}

// fileWatch waits for moves in a directory.
type fileWatch struct {
	dir   string
	file  string        // the place that counts; empty: any
	moved chan struct{} // holds one note
}

// files watches directories for all who wait for moves in them.
type files struct {
	log *slog.Logger

	mu      sync.Mutex // guards what follows
	watcher *fsnotify.Watcher
	ended   chan struct{} // closed when the goroutine of watcher ended
	waiting map[string][]*fileWatch
}

// watch begins to note moves. While anybody waits a goroutine runs.
func (f *files) watch(w *fileWatch) error {
	end := func() {}
	defer func() { end() }() // without f.mu
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watcher == nil {
		watcher, err := fsnotify.NewWatcher()
		if err != nil {
			return fmt.Errorf("xds: %w", err)
		}
		f.watcher, f.ended, f.waiting = watcher, make(chan struct{}), make(map[string][]*fileWatch)
		go f.run(watcher, f.ended)
	}
	if err := f.watcher.Add(w.dir); err != nil {
		end = f.endLocked()
		return fmt.Errorf("xds: directory %q: %w", w.dir, err)
	}
	f.waiting[w.dir] = append(f.waiting[w.dir], w)
	return nil
}

// leave ends a watch.
func (f *files) leave(w *fileWatch) {
	f.mu.Lock()
	var rest []*fileWatch
	for _, x := range f.waiting[w.dir] {
		if x != w {
			rest = append(rest, x)
		}
	}
	f.waiting[w.dir] = rest
	if len(rest) == 0 {
		delete(f.waiting, w.dir)
		_ = f.watcher.Remove(w.dir) // it may be gone already
	}
	end := f.endLocked()
	f.mu.Unlock()
	end()
}

// endLocked stops watching if nobody waits. What it returns is to be called
// without f.mu.
func (f *files) endLocked() func() {
	if len(f.waiting) > 0 {
		return func() {}
	}
	watcher, ended := f.watcher, f.ended
	f.watcher = nil
	return func() {
		_ = watcher.Close()
		<-ended
	}
}

func (f *files) run(watcher *fsnotify.Watcher, ended chan struct{}) {
	defer close(ended)
	for {
		select {
		case e, ok := <-watcher.Events:
			if !ok {
				return
			}
			if e.Has(fsnotify.Create) {
				f.tell(filepath.Dir(e.Name), filepath.Clean(e.Name))
			}
		case err, ok := <-watcher.Errors:
			if !ok {
				return
			}
			f.log.Warn("watching discovery files", "error", err.Error())
			f.tell("", "") // events may have been lost
		}
	}
}

// tell notes that something was moved to a name in dir; no dir is all of them.
func (f *files) tell(dir, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for d, list := range f.waiting {
		for _, w := range list {
			if dir != "" && (d != dir || w.file != "" && w.file != name) {
				continue
			}
			select {
			case w.moved <- struct{}{}:
			default:
			}
		}
	}
}
