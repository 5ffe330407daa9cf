package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/dirwatch"
)

// settleTime is how long files must be unchanged before they are read: programs that
// write a certificate and its key write two files.
const settleTime = 200 * time.Millisecond

// watching returns a function that runs a file watch and logs its error: systems limit
// the number of watches, and the server works without them.
func (s *Server) watching(what string, watch func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := watch(ctx); err != nil {
			s.log.Warn("cannot watch files; send SIGHUP to reload them", "what", what, "error", err)
		}
		return nil
	}
}

// mostUnsettled limits how long repeated changes can delay reading.
const mostUnsettled = 2 * time.Second

// watchSecrets reloads tokens and certificates when their files change, whether in
// place, by replacement, or by a link that points elsewhere. It returns nil when ctx
// is done, or immediately if there are no files.
func (s *Server) watchSecrets(ctx context.Context) error {
	// The files can have changed since they were read.
	return s.watchFiles(ctx, "tokens and certificates", s.secretFiles(), "", s.reloadSecrets)
}

// watchFiles calls reload when any of the files differs from seen, its stamps. It
// returns nil when ctx is done, or immediately if there are no files.
func (s *Server) watchFiles(ctx context.Context, what string, files []string, seen string, reload func()) error {
	if len(files) == 0 {
		return nil
	}
	changed := make(chan struct{}, 1)
	watcher := dirwatch.Start(s.log, func(dirwatch.Event) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	defer watcher.Close()
	for _, file := range files {
		if err := watcher.Add(filepath.Dir(file)); err != nil {
			s.log.Warn("cannot watch directory yet; send SIGHUP to reload its files", "directory", filepath.Dir(file), "error", err)
		}
	}
	settled := time.NewTimer(0)
	var since time.Time // first change not yet handled
	wait := func() {
		now := time.Now()
		if since.IsZero() {
			since = now
		}
		// The directory can be one with constant unrelated changes.
		settled.Reset(min(settleTime, max(0, since.Add(mostUnsettled).Sub(now))))
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			wait()
		case <-settled.C:
			since = time.Time{}
			if now := stamps(files); now != seen {
				seen = now
				s.guard.Run(what, reload)
			}
		}
	}
}

// stamps returns a string that changes whenever any of the files does.
func stamps(files []string) string {
	var out []byte
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			out = append(out, "none\n"...)
			continue
		}
		target, _ := filepath.EvalSymlinks(file)
		out = fmt.Appendf(out, "%s %d %d %v\n", target, info.Size(), info.ModTime().UnixNano(), info.Mode())
	}
	return string(out)
}
