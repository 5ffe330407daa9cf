package transport

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/certinfo"
	"github.com/statsd-admin/statsd-admin/internal/dirwatch"
	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// Config is shared by all dialers of a process. The zero value is valid.
type Config struct {
	// Bind applies to clusters without their own binding. It may be nil.
	Bind *config.Bind
	// ReadFile reads certificates, keys and revocation lists. The default is
	// [ReadFile].
	ReadFile func(name string) ([]byte, error)
	// Environment looks up environment variables with such data. If nil, they are
	// rejected.
	Environment func(name string) (value string, ok bool)
	// Now returns the time at which certificates must be valid. The default is
	// [time.Now].
	Now func() time.Time
	// StaticSecrets are the secrets that contexts reference by name alone.
	StaticSecrets []*config.Secret
	// Secrets delivers the secrets that contexts reference with a source. If nil,
	// such references are rejected.
	Secrets Secrets
	// Registry lists the certificates in use: the first trusted authority and
	// the first certificate of each chain of each TLS context. It may be nil.
	Registry *certinfo.Registry
	// Logger logs reloads. If nil, nothing is logged.
	Logger *slog.Logger
}

// Factory creates dialers and keeps their files up to date.
type Factory struct {
	c       Config
	secrets map[secretID]*config.Secret // static ones

	mu       sync.Mutex
	contexts map[*tlsContext]struct{}
	watched  map[string]int    // directories with the number of contexts that want them
	watcher  *dirwatch.Watcher // nil: not running
}

// New returns a factory.
func New(c Config) *Factory {
	if c.ReadFile == nil {
		c.ReadFile = ReadFile
	}
	if c.Environment == nil {
		c.Environment = func(string) (string, bool) { return "", false }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return &Factory{c: c, secrets: secretsByID(c.StaticSecrets), contexts: make(map[*tlsContext]struct{}), watched: make(map[string]int)}
}

// Dialer returns the dialer of a cluster. Its statistics go to scope, the cluster's
// scope. Close it when the cluster is removed.
func (f *Factory) Dialer(c *config.Cluster, scope *store.Scope) (*Dialer, error) {
	d, err := f.newDialer(c, scope)
	if err != nil {
		return nil, fmt.Errorf("transport: cluster %q: %w", c.Name, err)
	}
	return d, nil
}

// Run reloads files when their watched directory changes, until ctx is done; then it
// returns nil. Without Run, only [Factory.Reload] reloads files.
func (f *Factory) Run(ctx context.Context) error {
	w := dirwatch.Start(f.c.Logger, func(e dirwatch.Event) {
		if !e.Gone {
			_ = f.reload(func(t *tlsContext) bool { return slices.Contains(t.directories, e.Dir) }) // it is logged
		}
	})
	defer w.Close()
	f.mu.Lock()
	f.watcher = w
	for dir := range f.watched {
		f.watchLocked(dir)
	}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.watcher = nil
		f.mu.Unlock()
	}()
	guard.New(f.c.Logger).Run("certificates of clusters", func() {
		_ = f.reload(func(t *tlsContext) bool { return len(t.directories) > 0 }) // what changed before the watch began
	})
	<-ctx.Done()
	return nil
}

// Reload reloads all files. New connections use the new content. A context with
// invalid files keeps its previous content, and the error names it.
func (f *Factory) Reload() error { return f.reload(func(*tlsContext) bool { return true }) }

func (f *Factory) reload(which func(*tlsContext) bool) error {
	f.mu.Lock()
	var list []*tlsContext
	for t := range f.contexts {
		if which(t) {
			list = append(list, t)
		}
	}
	f.mu.Unlock()
	var first error
	for _, t := range list {
		if err := t.load(); err != nil {
			err = fmt.Errorf("transport: cluster %q: %w", t.cluster, err)
			f.c.Logger.Warn("certificates are not reloaded, the old ones stay", "error", err.Error())
			if first == nil {
				first = err
			}
		}
	}
	return first
}

func (f *Factory) add(t *tlsContext) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.contexts[t] = struct{}{}
	for _, dir := range t.directories {
		f.watched[dir]++
		if f.watched[dir] == 1 && f.watcher != nil {
			f.watchLocked(dir)
		}
	}
}

func (f *Factory) remove(t *tlsContext) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, there := f.contexts[t]; !there {
		return
	}
	delete(f.contexts, t)
	for _, dir := range t.directories {
		if f.watched[dir]--; f.watched[dir] > 0 {
			continue
		}
		delete(f.watched, dir)
		if f.watcher != nil {
			f.watcher.Remove(dir)
		}
	}
}

// watchLocked starts to watch a directory. f.mu is held.
func (f *Factory) watchLocked(dir string) {
	if err := f.watcher.Add(dir); err != nil {
		f.c.Logger.Warn("cannot watch certificates yet", "directory", dir, "error", err.Error())
	}
}
