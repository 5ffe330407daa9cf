package store

import (
	"errors"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/internal/directory"
	"github.com/statsd-admin/statsd-admin/internal/schedule"
	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/store/tags"
	"github.com/statsd-admin/statsd-admin/symtab"
)

// Options are the settings of a [Store]. The zero value means all defaults.
type Options struct {
	// Product is the product name: in the names of default tags and metrics, and in
	// the identifiers of servers that show the store. Default "proxy". With Tags it
	// is unused, because the rules have a product name; see [Store.Product].
	Product string
	// Tags splits names into a base name and labels. Default: the default
	// rules for Product.
	Tags *tags.Extractor
	// Reject reports whether a full name is rejected. Default: none is. See
	// also [Store.SetReject].
	Reject func(name string) bool
	// Histograms are settings for histograms by name; the first match applies.
	// Default: default bounds and precision for all.
	Histograms []HistogramSetting
	// MaxStats limits the number of stats. Default and negative: no limit.
	MaxStats int
	// Naming are the rules for names in the exposition formats. By default the product
	// precedes all names of the program; Namespaces lists scopes whose names it does not.
	Naming naming.Rules
	// OwnPrefix is put before the names of the stats that the packages of this
	// module create about themselves; see [Store.Own]. Tag rules do not see it, and
	// the namespaces of Naming hold below it too. Default: none.
	OwnPrefix string
	// Symbols are the settings of the symbol table.
	Symbols symtab.Options
	// Now returns the time. Default time.Now.
	Now func() time.Time
}

// HistogramSetting sets bucket bounds and precision of the histograms whose full
// name matches. Both are fixed when a histogram is created.
type HistogramSetting struct {
	Match             func(name string) bool
	Buckets           []float64 // ascending upper bounds; nil: the defaults
	SignificantDigits int       // 1 to 5; 0: the default
}

// Errors of the Try functions of [Scope]. They are wrapped; use errors.Is. The logger
// of [Store.SetLogger] gets a warning for the first ErrKind of a name, for up to 100
// names.
var (
	ErrLimit    = errors.New("limit reached")
	ErrKind     = errors.New("the name has another kind")
	ErrRejected = errors.New("rejected by the stats matcher")
	ErrClosed   = errors.New("scope is closed")
)

// Store holds stats. Stores are independent of each other.
type Store struct {
	opts    Options
	symbols *symtab.Table
	root    *Scope
	own     *Scope    // see Own
	opened  time.Time // see age

	lookup    lookup
	hot       hotNames
	names     nameTable                  // tag-extracted names and names of tags
	blocks    directory.Directory[block] // by block index
	null      *block                     // holds the null stats
	remains   atomic.Int64               // see NetworkRemains
	series    seriesIndex
	collided  atomic.Uint64
	described atomic.Pointer[map[string]Description] // see Describe; immutable

	describedNetwork atomic.Pointer[map[string]Description] // see Scope.Describe; immutable
	networkDescribed atomic.Pointer[func(family string) Description]
	intervals        atomic.Pointer[func(mark uint32) (float64, bool)] // see OnNetworkInterval

	refreshers refreshers
	conflict   atomic.Pointer[Collision] // the last one in collided
	recycled   atomic.Uint64             // incremented when ids become free for reuse

	// Locks are taken in the order flushMu, orderMu, mu; order.sorting before any.

	flushMu  schedule.Mutex
	flushes  uint64    // so far; written under mu too
	flushed  time.Time // of the last flush
	leap     leap      // see followClock
	rebirths uint64    // see setBack: blocks whose births were corrected
	watches  []*Watch
	resets   atomic.Uint64 // resets of counters; written under mu

	orderMu  schedule.Mutex
	byName   [nameSets]order
	byFamily [kinds]order
	byTag    []*order // of explorers; changed under both orderMu and mu
	epoch    uint64
	views    map[uint64]int // open views by the epoch they began in
	removed  []removed      // dead stats that views can still have
	keeping  bool           // see KeepEnded
	unsent   []id           // dead stats with changes for the next flush
	naming   bool           // see KeepNames
	named    []id           // dead stats that the next snapshot lists
	settled  []id           // those of named that are not in unsent
	enders   []*Watch       // watches; like Store.watches, but guarded by orderMu

	mu         schedule.Mutex // guards creation and removal of stats and scopes
	reject     func(name string) bool
	classes    map[classKey]*class
	blockCount uint32 // block indexes handed out so far, free ones included
	freeBlocks []freeBlock
	stats      int // alive
	byKind     [kinds]int
	scopes     map[uint32]*Scope
	lastScope  uint32
	sharers    map[id][]uint32 // further scopes that hold a stat; ascending, since there can be thousands
	dead       []id            // killed since the last purge
	layouts    map[layoutKey]*histogram.Layout
	forms      map[string]*HistogramForm // by their text
	overflow   [kinds]*Counter
	ended      func(mark uint32) // see OnNetworkEnd
	misused    map[string]error  // by name: the error that is not logged yet, or nil; at most maxMisused
}

// New returns an empty store.
func New(opts Options) *Store {
	if opts.Tags == nil {
		opts.Tags = defaultTags(opts.Product)
	}
	opts.Product = opts.Tags.Product()
	opts.Naming.Product = opts.Product
	if opts.Now == nil {
		opts.Now = time.Now
	}
	s := &Store{
		opts:    opts,
		reject:  opts.Reject,
		symbols: symtab.New(opts.Symbols),
		views:   make(map[uint64]int),
		classes: make(map[classKey]*class),
		scopes:  make(map[uint32]*Scope),
		sharers: make(map[id][]uint32),
		layouts: make(map[layoutKey]*histogram.Layout),
		forms:   make(map[string]*HistogramForm),
		opened:  opts.Now(),
	}
	s.flushed = s.opened
	s.lookup.init()
	s.hot.init()
	s.series.owners, s.series.seed = naming.NewOwners(s.ownsMetric), maphash.MakeSeed()
	for i := range s.byName {
		s.byName[i].key = textKey
	}
	for i := range s.byFamily {
		s.byFamily[i].key = familyTextKey
	}
	s.null = newNull()
	s.root = s.newScope("", s.classFor(ScopeOptions{}), ScopeOptions{})
	s.own = s.root
	if p := sanitizePrefix(opts.OwnPrefix); p != "" {
		s.own = s.newScope(p, s.root.cls, ScopeOptions{})
		s.opts.Naming.Namespaces = s.own.withFullNames(opts.Naming.Namespaces)
		s.opts.Naming.Bare = s.own.withFullNames(opts.Naming.Bare)
	}
	return s
}

// age returns the age of the store at now in seconds. Unlike the time of day, it does not
// jump when the clock of the system is set.
func (s *Store) age(now time.Time) uint32 { return uint32(now.Sub(s.opened) / time.Second) }

// Symbols returns the symbol table of the names.
func (s *Store) Symbols() *symtab.Table { return s.symbols }

// Product returns the product name. Packages that serve or fill the store take
// the name from here, so that metric names, default tags, headers, metadata and
// runtime keys agree.
func (s *Store) Product() string { return s.opts.Product }

// FixedTags returns the tags that all of the program's stats have.
func (s *Store) FixedTags() []tags.Tag { return s.opts.Tags.Fixed() }

// Root returns the scope with the empty prefix. It cannot be closed.
func (s *Store) Root() *Scope { return s.root }

// Own returns the scope for the stats that the packages of this module create, such
// as "server.live" and the stats of clusters: the root, or the scope of
// Options.OwnPrefix. It cannot be closed.
func (s *Store) Own() *Scope { return s.own }

// Scope returns a new scope; see [Scope.Scope].
func (s *Store) Scope(prefix string) *Scope { return s.root.Scope(prefix) }

// ScopeWith returns a new scope with settings; see [Scope.ScopeWith].
func (s *Store) ScopeWith(prefix string, o ScopeOptions) *Scope {
	return s.root.ScopeWith(prefix, o)
}

// Len returns the number of live stats of a kind.
func (s *Store) Len(k Kind) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byKind[k]
}

// at returns the block and slot of the stat x. The block is nil if x was released.
func (s *Store) at(x id) (*block, int) {
	return s.blocks.Find(int(x >> slotBits)), int(x & (1<<slotBits - 1))
}

// newNull returns a block of null stats, with that of a variant in the slot of
// the same number.
func newNull() *block {
	b := &block{null: true, cls: &class{}}
	b.pg = newPages()[0]
	b.pg.blk = b
	texts := make([]*TextReadout, variants)
	texts[variantText] = &TextReadout{null: true}
	b.texts.Store(&texts)
	hists := make([]*histogram.Histogram, variants)
	hists[variantHistogram] = histogram.New(defaultLayout())
	b.hists.Store(&hists)
	return b
}

// defaultTags returns the default tag rules for a product name.
func defaultTags(product string) *tags.Extractor {
	e, err := tags.New(tags.Config{Product: product, UseDefaults: true})
	if err != nil {
		panic("store: the default tag rules are refused: " + err.Error())
	}
	return e
}
