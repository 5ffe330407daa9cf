package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/internal/fingerprint"
)

// ScopeOptions are the settings of a scope. Scopes inside it inherit all but the
// limits.
type ScopeOptions struct {
	// MaxCounters, MaxGauges and MaxHistograms limit the stats of a kind in
	// the scope. Nil means no limit; 0 allows none. Stats beyond a limit are
	// null stats, counted in server.stats_overflow.counter, .gauge and
	// .histogram.
	MaxCounters, MaxGauges, MaxHistograms *int
	// Evict ends stats that were not updated between two sweeps; see
	// [Store.Sweep]. Writes to the handle of an ended stat have no effect:
	// look the stat up again.
	Evict bool
	// TTL ends stats of a kind after this time without an update. 0 means
	// never. Times are checked at flushes and rounded up to seconds.
	TTL TTL
	// Network marks a scope for stats that network input creates. They have a
	// separate name space, so they never conflict with the program's stats.
	Network bool
	// ExtractTags applies the tag rules to names without tags of a Network
	// scope too. They always apply to other scopes.
	ExtractTags bool
	// Histograms is the form of the histograms that the scope creates. Nil means
	// buckets as in Options.Histograms. It must not be changed.
	Histograms *HistogramForm
}

// HistogramForm is the precision of histograms and their form in expositions;
// see [histogram.Config] for the fields. Histograms of equal forms share a layout.
type HistogramForm struct {
	Scale         int64     // six decimals in Network scopes
	Buckets       []float64 // nil: as in Options.Histograms
	Quantiles     []float64
	Window        time.Duration
	Steps         int
	NativeFactor  float64
	NativeBuckets int
}

// errForm is logged for a scope with an invalid form.
var errForm = errors.New("invalid form of histograms")

// Check returns an error if the form is invalid. A store ignores an invalid form, and
// logs it once for each prefix; see [Store.SetLogger].
func (f *HistogramForm) Check() error {
	c := histogram.Config{}
	f.apply(&c)
	_, err := histogram.NewLayout(c)
	return err
}

// apply sets the fields of c.
func (f *HistogramForm) apply(c *histogram.Config) {
	if f.Buckets != nil {
		c.Bounds = f.Buckets
	}
	c.Scale = f.Scale
	c.Quantiles, c.Window, c.Steps = f.Quantiles, f.Window, f.Steps
	c.NativeFactor, c.NativeBuckets = f.NativeFactor, f.NativeBuckets
}

// TTL holds a time for each kind of stat.
type TTL struct {
	Counter, Gauge, Text, Histogram time.Duration
}

// seconds returns t in whole seconds, rounded up.
func (t TTL) seconds() (s ttls) {
	for k, d := range [kinds]time.Duration{t.Counter, t.Gauge, t.Text, t.Histogram} {
		if d > 0 {
			s[k] = uint32((d + time.Second - 1) / time.Second)
		}
	}
	return s
}

// Scope creates and looks up stats whose names begin with its prefix. Two scopes
// with the same prefix share their stats.
type Scope struct {
	_ noCopy

	store  *Store
	prefix string
	id     uint32
	salt   fingerprint.Salt // for hotNames
	cls    *class
	tagged bool // tag rules apply to its names
	limits [kinds]*int
	form   *HistogramForm // nil: the default

	closed atomic.Bool
	held   []id       // stats, empty in network scopes, see Scope.stats; guarded by Store.mu
	counts [kinds]int // of stats; guarded by Store.mu
}

type classKey struct {
	network bool
	evict   bool
	ttl     ttls
}

// classFor returns the class of the stats of a scope with these options.
// Store.mu must be held or the store not shared yet.
func (s *Store) classFor(o ScopeOptions) *class {
	k := classKey{network: o.Network, evict: o.Evict, ttl: o.TTL.seconds()}
	c := s.classes[k]
	if c == nil {
		c = &class{network: k.network, evict: k.evict, ttl: k.ttl}
		s.classes[k] = c
	}
	return c
}

func (s *Store) newScope(prefix string, c *class, o ScopeOptions) *Scope {
	s.lastScope++
	sc := &Scope{store: s, prefix: prefix, id: s.lastScope, salt: s.hot.salt(s.lastScope), cls: c}
	sc.tagged = !c.network || o.ExtractTags
	sc.form = o.Histograms
	sc.limits[KindCounter] = o.MaxCounters
	sc.limits[KindGauge] = o.MaxGauges
	sc.limits[KindHistogram] = o.MaxHistograms
	s.scopes[sc.id] = sc
	return sc
}

// Scope returns a new scope inside sc with the settings of sc, except for its
// limits. One dot at each end of prefix is dropped, and each ':' and NUL in it
// becomes '_'.
//
// Envoy's default tag rules apply to full names, prefix included: "http.ingress.rq" has
// the family "http.rq" and the tag proxy.http_conn_manager_prefix=ingress. Most rules
// are for a first token such as cluster, http, listener or tcp; some are for endings
// such as "_rq_5xx". Names with tags given in code have exactly those; see
// [Scope.Counter]. [Options].Tags replaces the rules: an extractor of
// tags.New(tags.Config{}) has none.
func (sc *Scope) Scope(prefix string) *Scope {
	return sc.inside(prefix, sc.cls, ScopeOptions{ExtractTags: sc.tagged, Histograms: sc.form})
}

// ScopeWith is [Scope.Scope] with settings in place of the settings of sc.
func (sc *Scope) ScopeWith(prefix string, o ScopeOptions) *Scope {
	return sc.inside(prefix, nil, o)
}

// WithHistograms returns a scope with the prefix and the settings of sc, except for its
// limits, that creates histograms of a form.
func (sc *Scope) WithHistograms(form *HistogramForm) *Scope {
	return sc.inside("", sc.cls, ScopeOptions{ExtractTags: sc.tagged, Histograms: form})
}

// inside makes a scope in sc. If c is nil the class follows from o.
func (sc *Scope) inside(prefix string, c *class, o ScopeOptions) *Scope {
	prefix = joinName(sc.prefix, sanitizePrefix(prefix))
	s := sc.store
	if f := o.Histograms; f != nil && f != sc.form {
		if err := f.Check(); err != nil {
			s.logOnce("histograms in "+prefix, fmt.Errorf("store: scope %q: %w: %w", prefix, errForm, err))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c == nil {
		c = s.classFor(o)
	}
	o.Histograms = s.sharedForm(o.Histograms)
	return s.newScope(prefix, c, o)
}

// Prefix returns the prefix of the names of sc's stats, without a trailing dot.
func (sc *Scope) Prefix() string { return sc.prefix }

// FullName returns the full name of the stat that the scope has by name.
func (sc *Scope) FullName(name string) string { return joinName(sc.prefix, name) }

// withFullNames returns names, and then their full names.
func (sc *Scope) withFullNames(names []string) []string {
	all := slices.Clone(names)
	for _, name := range names {
		all = append(all, sc.FullName(name))
	}
	return all
}

// Store returns the store that sc belongs to.
func (sc *Scope) Store() *Store { return sc.store }

// Close closes the scope. Its stats end unless another scope holds them too;
// writes to their handles then have no effect. Scopes inside sc stay open.
// Closing twice, or closing the root scope, does nothing.
func (sc *Scope) Close() {
	s := sc.store
	s.mu.Lock()
	if sc.closed.Load() || sc == s.root || sc == s.own {
		s.mu.Unlock()
		return
	}
	sc.closed.Store(true)
	delete(s.scopes, sc.id)
	for _, x := range sc.stats() {
		s.unhold(sc, x)
	}
	sc.held = nil
	many := len(s.dead) > purgeAfter+s.stats/8
	s.mu.Unlock()
	if many {
		s.purge()
	}
}

// purgeAfter is the number of dead stats, besides an eighth of the live ones,
// that can wait for the next view to remove them from the orders, which costs a
// walk over all names.
const purgeAfter = 4096

// hold makes sc a holder of the existing stat x. Store.mu must be held.
func (s *Store) hold(sc *Scope, b *block, slot int, x id) error {
	if b.owner(slot) == sc.id {
		return nil
	}
	at, shared := slices.BinarySearch(s.sharers[x], sc.id)
	if shared {
		return nil
	}
	k := b.variant.kind()
	if l := sc.limits[k]; l != nil && sc.counts[k] >= *l {
		return s.overflowed(k)
	}
	s.sharers[x] = slices.Insert(s.sharers[x], at, sc.id)
	sc.add(k, x)
	return nil
}

// add counts a stat that sc holds. Store.mu must be held.
func (sc *Scope) add(k Kind, x id) {
	sc.counts[k]++
	if !sc.cls.network { // which can hold millions
		sc.held = append(sc.held, x)
	}
}

// stats returns the stats that sc holds. A network scope visits all stats of the
// store for it. Store.mu must be held.
func (sc *Scope) stats() []id {
	if !sc.cls.network {
		return sc.held
	}
	s, held := sc.store, []id(nil)
	for _, b := range s.eachBlock() {
		for i := range b.n {
			x := makeID(b.index, i)
			if !b.alive.has(i) {
				continue
			}
			if _, shared := slices.BinarySearch(s.sharers[x], sc.id); shared || b.owner(i) == sc.id {
				held = append(held, x)
			}
		}
	}
	return held
}

// unhold removes x from sc. Store.mu must be held.
func (s *Store) unhold(sc *Scope, x id) {
	b, slot := s.at(x)
	if b == nil || !b.alive.has(slot) {
		return
	}
	others := s.sharers[x]
	switch {
	case b.owner(slot) != sc.id:
		if at, shared := slices.BinarySearch(others, sc.id); shared {
			others = slices.Delete(others, at, at+1)
		}
	case len(others) > 0:
		b.setOwner(slot, others[0])
		others = others[1:]
	default:
		s.kill(b, slot, x)
		return
	}
	if len(others) == 0 {
		delete(s.sharers, x)
	} else {
		s.sharers[x] = others
	}
}

func sanitizePrefix(p string) string {
	p = strings.TrimPrefix(strings.TrimSuffix(p, "."), ".")
	return strings.ReplaceAll(strings.ReplaceAll(p, ":", "_"), "\x00", "_")
}

// joinName joins two names, if neither is empty, with a dot.
func joinName(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	}
	return a + "." + b
}
