package layers

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
)

// Kind is the source of a layer's values.
type Kind uint8

// The kinds of layers.
const (
	Unset  Kind = iota
	Static      // values given with the layer
	Disk        // files below a directory
	Admin       // changed with Loader.Modify; at most one
	RTDS        // set as a whole with Loader.SetLayer
)

// Layer describes one layer of the stack.
type Layer struct {
	Name string // unique
	Kind Kind

	// Values of a static layer: string, bool, numbers or map[string]any. The caller
	// must not modify them afterwards.
	Values map[string]any

	// Disk layer: the directory SymlinkRoot/Subdirectory, with the service
	// cluster below it when AppendServiceCluster is set. SymlinkRoot is usually
	// a link that is replaced to publish a new tree.
	SymlinkRoot          string
	Subdirectory         string
	AppendServiceCluster bool
}

// Config configures a [Loader].
type Config struct {
	Layers         []Layer
	ServiceCluster string
	Stats          Stats
	Logger         *slog.Logger // nil: none
	// Changed, if not nil, is called after every new snapshot but the first, without
	// holding a lock, possibly by several goroutines at once.
	Changed func()
}

// Stats are the stats of a loader, named after those below "runtime.". Nil fields are
// not counted.
type Stats struct {
	LoadSuccess          Counter // load_success, load_error: one of them for each snapshot
	LoadError            Counter
	OverrideDirExists    Counter // override_dir_exists: more than one disk layer was loaded
	OverrideDirNotExists Counter // override_dir_not_exists: none or one

	AdminOverridesActive Gauge // admin_overrides_active: 1 when the admin layer has a key
	NumKeys              Gauge // num_keys over all layers
	NumLayers            Gauge // num_layers that were loaded
}

// Counter is a total that rises, such as a counter of the store.
type Counter interface{ Inc() }

// Gauge is a value that is set, such as a gauge of the store.
type Gauge interface{ Set(value uint64) }

// Loader holds the layers and builds a snapshot after every change.
type Loader struct {
	cfg      Config
	snapshot atomic.Pointer[Snapshot]

	mu     sync.Mutex        // one build at a time; guards what follows
	fixed  []map[string]cell // cells of static, admin and RTDS layers, by layer; disk layers: nil
	admin  int               // index of the admin layer; -1: none
	target map[string]string // where each symlink root pointed when it was read last
}

// New checks the layers and loads them. An unreadable disk layer is not an error: it
// is skipped, logged and counted.
func New(cfg Config) (*Loader, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Loader{cfg: cfg, admin: -1, fixed: make([]map[string]cell, len(cfg.Layers))}
	names := make(map[string]bool)
	for i, layer := range cfg.Layers {
		if names[layer.Name] {
			return nil, errDuplicateLayer(layer.Name)
		}
		names[layer.Name] = true
		switch layer.Kind {
		case Static:
			cells, err := flatten(layer.Values)
			if err != nil {
				return nil, err
			}
			l.fixed[i] = cells
		case Admin:
			if l.admin >= 0 {
				return nil, errManyAdminLayers()
			}
			l.admin = i
		case Disk, RTDS:
		default:
			return nil, errors.New("layer specifier not set")
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buildLocked()
	return l, nil
}

// Snapshot returns the current values. Use one snapshot for decisions that belong
// together.
func (l *Loader) Snapshot() *Snapshot { return l.snapshot.Load() }

// Modify sets values of the admin layer in one snapshot. An empty value removes a
// previous override. Other layers never change. The error is [ErrNoAdminLayer].
func (l *Loader) Modify(values map[string]string) error {
	if l.admin < 0 {
		return ErrNoAdminLayer
	}
	defer l.notify()
	l.mu.Lock()
	defer l.mu.Unlock()
	next := maps.Clone(l.fixed[l.admin])
	if next == nil {
		next = make(map[string]cell)
	}
	for key, raw := range values {
		if raw == "" {
			delete(next, key)
		} else {
			next[key] = cell{raw, parseText(raw)}
		}
	}
	l.fixed[l.admin] = next
	l.buildLocked()
	return nil
}

// SetLayer replaces all values of an RTDS layer. On an error the layer keeps its
// previous values.
func (l *Loader) SetLayer(name string, values map[string]any) error {
	cells, err := flatten(values)
	if err != nil {
		return err
	}
	if !l.setLayer(name, cells) {
		return fmt.Errorf("layers: no RTDS layer named %q", name)
	}
	l.notify()
	return nil
}

// setLayer replaces the cells of the RTDS layer with that name and reports whether it
// exists.
func (l *Loader) setLayer(name string, cells map[string]cell) bool {
	i := slices.IndexFunc(l.cfg.Layers, func(layer Layer) bool { return layer.Name == name && layer.Kind == RTDS })
	if i < 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fixed[i] = cells
	l.buildLocked()
	return true
}

// Reload reloads the disk layers.
func (l *Loader) Reload() {
	defer l.notify()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buildLocked()
}

// notify reports a new snapshot. l.mu must not be held.
func (l *Loader) notify() {
	if f := l.cfg.Changed; f != nil {
		f()
	}
}

// directory returns the directory of a disk layer.
func (l *Loader) directory(layer Layer) string {
	dir := filepath.Join(layer.SymlinkRoot, layer.Subdirectory)
	if layer.AppendServiceCluster {
		dir = filepath.Join(dir, l.cfg.ServiceCluster)
	}
	return dir
}

// buildLocked builds and publishes a snapshot. l.mu must be held.
func (l *Loader) buildLocked() {
	l.target = make(map[string]string)
	var stack []layerCells
	disks, failed := 0, false
	for i, layer := range l.cfg.Layers {
		if layer.Kind != Disk {
			stack = append(stack, layerCells{layer.Name, l.fixed[i]})
			continue
		}
		l.target[layer.SymlinkRoot] = linkTarget(layer.SymlinkRoot)
		dir := l.directory(layer)
		cells, exists, err := readTree(dir)
		switch {
		case err != nil:
			failed = true
			l.cfg.Logger.Error("error loading runtime values from disk", "layer", layer.Name, "directory", dir, "error", err.Error())
		case exists:
			disks++
			stack = append(stack, layerCells{layer.Name, cells})
		}
	}
	s := newSnapshot(stack)
	l.snapshot.Store(s)
	l.cfg.Stats.built(s, disks, failed, l.admin >= 0 && len(l.fixed[l.admin]) > 0)
}

// linkTarget returns the target of a link, or "".
func linkTarget(path string) string {
	target, err := os.Readlink(path)
	if err != nil {
		return ""
	}
	return target
}

// built counts one build.
func (s *Stats) built(snapshot *Snapshot, disks int, failed, overrides bool) {
	inc := func(c Counter) {
		if c != nil {
			c.Inc()
		}
	}
	set := func(g Gauge, v uint64) {
		if g != nil {
			g.Set(v)
		}
	}
	if failed {
		inc(s.LoadError)
	} else {
		inc(s.LoadSuccess)
	}
	if disks > 1 {
		inc(s.OverrideDirExists)
	} else {
		inc(s.OverrideDirNotExists)
	}
	active := uint64(0)
	if overrides {
		active = 1
	}
	set(s.AdminOverridesActive, active)
	set(s.NumKeys, uint64(snapshot.Len()))
	set(s.NumLayers, uint64(len(snapshot.layers)))
}
