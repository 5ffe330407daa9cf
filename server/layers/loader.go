package layers

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/store"
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
	// MaxOverrides and MaxOverrideBytes limit the number of entries in the
	// admin layer, and the total size of their keys and values. Defaults 10,000
	// and 1 MiB.
	MaxOverrides, MaxOverrideBytes int
	Logger                         *slog.Logger // nil: none
	// Changed is called after every new snapshot except the first, without a
	// lock held, possibly concurrently. It may be nil.
	Changed func()
}

// Stats are the counters and gauges of a loader, named below "runtime.". Nil
// fields count nothing.
type Stats struct {
	LoadSuccess          *store.Counter // load_success, load_error: one of them for each snapshot
	LoadError            *store.Counter
	OverrideDirExists    *store.Counter // override_dir_exists: more than one disk layer was loaded
	OverrideDirNotExists *store.Counter // override_dir_not_exists: none or one

	OverridesRefused *store.Counter // admin_overrides_refused: changes beyond a limit

	AdminOverridesActive *store.Gauge // admin_overrides_active: 1 when the admin layer has a key
	NumKeys              *store.Gauge // num_keys over all layers
	NumLayers            *store.Gauge // num_layers that were loaded
}

// Loader holds the layers and builds a snapshot after every change.
type Loader struct {
	cfg      Config
	snapshot atomic.Pointer[Snapshot]

	mu     sync.Mutex        // one build at a time; guards the rest
	fixed  []map[string]cell // cells of static, admin and RTDS layers, by layer; disk layers: nil
	admin  int               // index of the admin layer; -1: none
	bytes  int               // of the keys and values of the admin layer
	target map[string]string // where each symlink root pointed when it was last read

	// The result of the last load: the layers of the snapshot, the number of disk layers
	// among them, and whether a disk layer could not be read.
	stack  []layerCells
	disks  int
	failed bool
}

// New checks the layers and loads them. An unreadable disk layer is not an error: it
// is skipped, logged and counted.
func New(cfg Config) (*Loader, error) {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	cfg.MaxOverrides = cmp.Or(cfg.MaxOverrides, 10_000)
	cfg.MaxOverrideBytes = cmp.Or(cfg.MaxOverrideBytes, 1<<20)
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
			l.admin, l.fixed[i] = i, make(map[string]cell)
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

// Uint reads one number from the current values, see [Snapshot.Uint].
func (l *Loader) Uint(key string, byDefault uint64) uint64 { return l.Snapshot().Uint(key, byDefault) }

// Float reads one number from the current values, see [Snapshot.Float].
func (l *Loader) Float(key string, byDefault float64) float64 {
	return l.Snapshot().Float(key, byDefault)
}

// Modify sets values of the admin layer, all in one snapshot. An empty value
// removes an override. Disk layers are read again, other layers do not change. Without
// disk layers, the cost depends on the number of values, not on the number of overrides.
// The error is [ErrNoAdminLayer], or a [*LimitError] if the overrides would exceed a
// limit; then nothing changes.
func (l *Loader) Modify(values map[string]string) error {
	if l.admin < 0 {
		return ErrNoAdminLayer
	}
	changed := false
	defer func() {
		if changed {
			l.notify()
		}
	}()
	l.mu.Lock()
	defer l.mu.Unlock()
	cells, size, err := l.overridesLocked(values)
	if err != nil {
		l.cfg.Stats.OverridesRefused.Inc()
		return err
	}
	overrides := l.fixed[l.admin]
	for key, c := range cells {
		if c.raw == "" {
			delete(overrides, key)
		} else {
			overrides[key] = c
		}
	}
	l.bytes, changed = size, true
	if l.readsDisk() {
		l.buildLocked()
	} else {
		l.publishLocked(l.Snapshot().with(l.stack, cells))
	}
	return nil
}

// readsDisk reports whether there is a disk layer. Then each build reads its files again.
func (l *Loader) readsDisk() bool {
	return slices.ContainsFunc(l.cfg.Layers, func(layer Layer) bool { return layer.Kind == Disk })
}

// Preview returns the snapshot that [Loader.Modify] would build, or its error, and
// changes nothing.
func (l *Loader) Preview(values map[string]string) (*Snapshot, error) {
	if l.admin < 0 {
		return nil, ErrNoAdminLayer
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	cells, _, err := l.overridesLocked(values)
	if err != nil {
		return nil, err
	}
	s := l.Snapshot()
	if l.readsDisk() {
		l.loadLocked()
		s = newSnapshot(l.stack)
	}
	return s.with(l.stack, cells), nil
}

// overridesLocked parses values of the admin layer and returns the size of the layer with
// them, or a [*LimitError]. l.mu must be held.
func (l *Loader) overridesLocked(values map[string]string) (cells map[string]cell, size int, err error) {
	overrides := l.fixed[l.admin]
	entries, size := len(overrides), l.bytes
	cells = make(map[string]cell, len(values))
	for key, raw := range values {
		if old, ok := overrides[key]; ok {
			entries--
			size -= len(key) + len(old.raw)
		}
		if raw != "" {
			entries++
			size += len(key) + len(raw)
		}
		cells[key] = cell{raw, parseText(raw)}
	}
	switch {
	case entries > l.cfg.MaxOverrides:
		return nil, 0, &LimitError{"entries", l.cfg.MaxOverrides}
	case size > l.cfg.MaxOverrideBytes:
		return nil, 0, &LimitError{"bytes", l.cfg.MaxOverrideBytes}
	}
	return cells, size, nil
}

// SetLayer replaces all values of an RTDS layer. On an error the layer keeps
// its previous values.
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

// notify calls Changed after a new snapshot. l.mu must not be held.
func (l *Loader) notify() {
	if f := l.cfg.Changed; f != nil {
		f()
	}
}

func (l *Loader) directory(layer Layer) string {
	dir := filepath.Join(layer.SymlinkRoot, layer.Subdirectory)
	if layer.AppendServiceCluster {
		dir = filepath.Join(dir, l.cfg.ServiceCluster)
	}
	return dir
}

// buildLocked reads the disk layers, and builds and publishes a snapshot. l.mu must be
// held.
func (l *Loader) buildLocked() {
	l.target = make(map[string]string)
	for _, layer := range l.cfg.Layers {
		if layer.Kind == Disk { // before its tree is read, so that no change is missed
			l.target[layer.SymlinkRoot] = linkTarget(layer.SymlinkRoot)
		}
	}
	l.loadLocked()
	l.publishLocked(newSnapshot(l.stack))
}

// publishLocked makes a snapshot the current one. l.mu must be held.
func (l *Loader) publishLocked(s *Snapshot) {
	l.snapshot.Store(s)
	l.cfg.Stats.built(s, l.disks, l.failed, l.admin >= 0 && len(l.fixed[l.admin]) > 0)
}

// loadLocked collects the layers. l.mu must be held.
func (l *Loader) loadLocked() {
	l.stack, l.disks, l.failed = nil, 0, false
	for i, layer := range l.cfg.Layers {
		cells := l.fixed[i]
		if layer.Kind == Disk {
			dir := l.directory(layer)
			tree, exists, err := readTree(dir)
			switch {
			case err != nil:
				l.failed = true
				l.cfg.Logger.Error("error loading runtime values from disk", "layer", layer.Name, "directory", dir, "error", err.Error())
				continue
			case !exists:
				continue
			}
			l.disks++
			cells = tree
		}
		l.stack = append(l.stack, layerCells{layer.Name, cells, layer.Kind == Admin})
	}
}

// linkTarget returns the target of a link, or "".
func linkTarget(path string) string {
	target, _ := os.Readlink(path)
	return target
}

// built counts one build.
func (s *Stats) built(snapshot *Snapshot, disks int, failed, overrides bool) {
	if failed {
		s.LoadError.Inc()
	} else {
		s.LoadSuccess.Inc()
	}
	if disks > 1 {
		s.OverrideDirExists.Inc()
	} else {
		s.OverrideDirNotExists.Inc()
	}
	active := uint64(0)
	if overrides {
		active = 1
	}
	s.AdminOverridesActive.Set(active)
	s.NumKeys.Set(uint64(snapshot.Len()))
	s.NumLayers.Set(uint64(len(snapshot.layers)))
}
