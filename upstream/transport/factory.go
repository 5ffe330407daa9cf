package transport

import (
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

// Config is what all dialers of a process share. The zero value works.
type Config struct {
	// Product is the product name in metadata; default "proxy".
	Product string
	// Bind is used by clusters that have no binding of their own; nil: none.
	Bind *config.Bind
	// ReadFile reads certificates, keys and revocation lists; nil means
	// [ReadFile].
	ReadFile func(name string) ([]byte, error)
	// Environment looks up variables that hold such data. Nil refuses them.
	Environment func(name string) (value string, ok bool)
	// Now tells the time in which certificates must be valid; nil means
	// [time.Now].
	Now func() time.Time
	// StaticSecrets are those that contexts name without a source.
	StaticSecrets []*config.Secret
	// Secrets delivers those that contexts name with a source. Nil refuses them.
	Secrets Secrets
	// Registry lists the certificates in use: of each TLS context the first
	// trusted authority and the first certificate of each chain. Can be nil.
	Registry *certinfo.Registry
	// Logger takes notes on reloads; nil discards them.
	Logger *slog.Logger
}

// Factory makes dialers and keeps their files up to date.
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
	if c.Product == "" {
		c.Product = "proxy"
	}
	if c.ReadFile == nil {
		c.ReadFile = ReadFile
	}
	if c.Environment == nil {
		c.Environment = func(string) (string, bool) { return "", false }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Factory{c: c, secrets: secretsByID(c.StaticSecrets), contexts: make(map[*tlsContext]struct{}), watched: make(map[string]int)}
}

// Dialer returns the dialer of a cluster. Its statistics go to scope, that of
// the cluster. Close it when the cluster goes.
func (f *Factory) Dialer(c *config.Cluster, scope *store.Scope) (*Dialer, error) {
	d, err := f.newDialer(c, scope)
	if err != nil {
		return nil, fmt.Errorf("transport: cluster %q: %w", c.Name, err)
	}
	return d, nil
}

// Run reloads files whose watched directory changes until ctx is done; then it
// returns nil. Without it nothing is reloaded but by [Factory.Reload].
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

// Reload reads all files again. Connections that are made from now on use what
// is in them; a context whose files are bad keeps what it had, and the error
// names it.
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

// add registers a context.
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

// remove takes a context out.
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

// watchLocked begins to watch a directory. f.mu is held.
func (f *Factory) watchLocked(dir string) {
	if err := f.watcher.Add(dir); err != nil {
		f.c.Logger.Warn("cannot watch certificates yet", "directory", dir, "error", err.Error())
	}
}
