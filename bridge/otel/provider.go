package otel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// MeterProvider creates instruments that write to a store. Stats have the names of their
// instruments and the attributes as tags, and keep both in the exposition formats, like
// stats received from the network. Instruments of one name share their stats, whichever
// meter made them.
//
//   - Counters become counters; the fractions of float counters are carried over.
//   - Up-down counters and gauges become gauges.
//   - Histograms become histograms with six decimals, and with the boundaries of the
//     instrument if it has any, of the store otherwise. Boundaries must be positive.
//   - Observable instruments are read by [MeterProvider.Refresh].
//
// The descriptions of instruments become help texts, and units become units where the
// exposition formats show them. Negative increments of counters and values that are not
// finite are ignored.
//
// As the specification of the SDK has it, an instrument has at most as many sets of
// attributes as its cardinality limit, 2,000 by default. Further sets share one with the
// attribute otel.metric.overflow. Observable counters have no limit, because totals cannot
// share a stat.
//
// A MeterProvider and its instruments are safe for concurrent use.
type MeterProvider struct {
	noop.MeterProvider // for the methods of newer versions of the API
	scope              *store.Scope
	limit              int // of sets of attributes, if positive

	refreshing sync.Mutex // an older total after a newer one would count as a restart

	mu        sync.Mutex
	callbacks map[*callback]struct{}
	scopes    map[string]*store.Scope // of histograms, by their boundaries
	err       error
}

// callback reads observable instruments.
type callback struct{ read func(context.Context) error }

var _ metric.MeterProvider = (*MeterProvider)(nil)

// Option is an option of [NewMeterProvider].
type Option func(*MeterProvider)

// WithCardinalityLimit limits the sets of attributes of each instrument, that of the
// overflow included. There is no limit if n is not positive.
func WithCardinalityLimit(n int) Option { return func(p *MeterProvider) { p.limit = n } }

// NewMeterProvider returns a provider whose instruments write to st.
func NewMeterProvider(st *store.Store, options ...Option) *MeterProvider {
	p := &MeterProvider{
		scope:     st.ScopeWith("", store.ScopeOptions{Network: true}),
		limit:     2000,
		callbacks: make(map[*callback]struct{}),
		scopes:    make(map[string]*store.Scope),
	}
	for _, o := range options {
		o(p)
	}
	return p
}

// histograms returns the scope of the histograms with the boundaries.
func (p *MeterProvider) histograms(bounds []float64) *store.Scope {
	if len(bounds) == 0 {
		return p.scope
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	k := fmt.Sprint(bounds)
	sc := p.scopes[k]
	if sc == nil {
		positive := slices.DeleteFunc(slices.Clone(bounds), func(b float64) bool { return !(b > 0) })
		sc = p.scope.WithHistograms(&store.HistogramForm{Buckets: positive})
		p.scopes[k] = sc
	}
	return sc
}

// Meter implements [metric.MeterProvider].
func (p *MeterProvider) Meter(string, ...metric.MeterOption) metric.Meter { return meter{p: p} }

// Refresh runs the callbacks of observable instruments, one at a time. Its signature is that of the
// elements of flush.Config.Before, so that each flush has fresh values.
func (p *MeterProvider) Refresh(time.Time) {
	p.refreshing.Lock()
	defer p.refreshing.Unlock()
	p.mu.Lock()
	all := slices.Collect(maps.Keys(p.callbacks))
	p.mu.Unlock()
	var errs []error
	for _, c := range all {
		errs = append(errs, c.read(context.Background()))
	}
	p.mu.Lock()
	p.err = errors.Join(errs...)
	p.mu.Unlock()
}

// Err returns the errors of the callbacks in the last Refresh, if there were any.
func (p *MeterProvider) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// register adds a callback and returns a function that removes it.
func (p *MeterProvider) register(read func(context.Context) error) (remove func()) {
	c := &callback{read}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.callbacks[c] = struct{}{}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.callbacks, c)
	}
}

// series holds the handles of one instrument by attributes.
type series[H any] struct {
	create func(...tags.Tag) H
	limit  int      // of all, if positive
	all    sync.Map // of attribute.Distinct to H

	mu sync.Mutex
	n  int // length of all without the overflow; guarded by mu
}

// of returns the handle for a set of attributes.
func (s *series[H]) of(set attribute.Set) H {
	if h, ok := s.all.Load(set.Equivalent()); ok {
		return h.(H)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limit > 0 && s.n >= s.limit-1 {
		set = attribute.NewSet(attribute.Bool("otel.metric.overflow", true))
	}
	if h, ok := s.all.Load(set.Equivalent()); ok {
		return h.(H)
	}
	list := make([]tags.Tag, 0, set.Len())
	for i := set.Iter(); i.Next(); {
		kv := i.Attribute()
		list = append(list, tags.Tag{Name: string(kv.Key), Value: kv.Value.String()})
	}
	h := s.create(list...)
	s.all.Store(set.Equivalent(), h)
	s.n++
	return h
}

// fractional is a counter that takes fractions. The rest below a whole number, a float64
// in [0, 1), waits for the next increment.
type fractional struct {
	whole *store.Counter
	rest  atomic.Uint64
}

func (f *fractional) add(x float64) {
	if !(x > 0 && x < math.MaxInt64) {
		return
	}
	for {
		old := f.rest.Load()
		whole, rest := math.Modf(math.Float64frombits(old) + x)
		if f.rest.CompareAndSwap(old, math.Float64bits(rest)) {
			f.whole.Add(uint64(whole))
			return
		}
	}
}

// follower is a counter that follows an observed total.
type follower struct {
	fractional
	mu   sync.Mutex
	last float64
}

// observe adds the growth of a total. A total that fell has started again from zero. What
// cannot be a total is ignored.
func (f *follower) observe(total float64) {
	if !(total >= 0 && total < math.MaxInt64) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if total < f.last {
		f.last = 0
	}
	f.add(total - f.last)
	f.last = total
}
