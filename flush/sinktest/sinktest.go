// Package sinktest checks that a sink keeps the contract of [flush.Sink]. Authors
// of sinks call [Run] in their tests.
package sinktest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// Receiver is a sink under test together with its destination.
type Receiver struct {
	Sink flush.Sink
	// Received returns the sum of the increments of a counter that arrived so
	// far, or its last reported total if the sink sends totals.
	Received func(name string) uint64
	// Counter is the name of a counter that the sink does not filter. Default
	// "sinktest.requests".
	Counter string
}

// Run runs the tests, each with a new receiver:
//
//   - The sink has a name, which does not change.
//   - A store without stats causes no error.
//   - Every increment arrives exactly once while flushes and writes run.
//   - The sink accepts all kinds of names, tags and values.
//   - The increments of a counter that ends before the flush arrive.
//   - Stats that end between flush and delivery cause no error.
//   - A reset of the counters neither repeats nor takes back increments.
//   - All views of the store are closed in the end.
func Run(t *testing.T, newReceiver func(*testing.T) Receiver) {
	start := func(t *testing.T, st *store.Store) (Receiver, *flush.Scheduler, func()) {
		r := newReceiver(t)
		r.Counter = cmp.Or(r.Counter, "sinktest.requests")
		s, err := flush.New(flush.Config{
			Store: st, OnAdmin: true, Sinks: []flush.Sink{r.Sink}, Queue: 1024, Linger: 10 * time.Second,
			OnError: func(sink string, err error) { t.Errorf("sink %q: %v", sink, err) },
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		return r, s, func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if n := st.OpenViews(); n != 0 {
				t.Errorf("%d views are open", n)
			}
		}
	}
	t.Run("name", func(t *testing.T) {
		r := newReceiver(t)
		if n := r.Sink.Name(); n == "" || n != r.Sink.Name() {
			t.Errorf("name %q", n)
		}
	})
	t.Run("empty", func(t *testing.T) {
		_, s, stop := start(t, store.New(store.Options{}))
		s.FlushForAdmin()
		stop()
	})
	t.Run("exact", func(t *testing.T) {
		st := store.New(store.Options{})
		r, s, stop := start(t, st)
		const writers, each = 4, 5000
		var wg sync.WaitGroup
		for range writers {
			wg.Go(func() {
				c := st.Root().Counter(r.Counter)
				for range each {
					c.Inc()
				}
			})
		}
		for range 50 {
			s.FlushForAdmin()
		}
		wg.Wait()
		stop()
		if got := r.Received(r.Counter); got != writers*each {
			t.Errorf("%d arrived, want %d", got, writers*each)
		}
	})
	t.Run("hostile", func(t *testing.T) {
		st := store.New(store.Options{})
		r, s, stop := start(t, st)
		st.Root().Counter(r.Counter).Add(7)
		for i, name := range []string{"", ".", "a b", "a|b:c@d#e,f", "new\nline", "quote\"", "\xff\xfe", "ünï", "semi;colon=x"} {
			st.Root().Counter(fmt.Sprintf("%s.c%d", name, i)).Inc()
			st.Root().FloatGauge(fmt.Sprintf("%s.f%d", name, i)).Set(-1.5e300)
			st.Root().Text(fmt.Sprintf("%s.t%d", name, i)).Set(name)
			st.Root().Histogram(fmt.Sprintf("%s.h%d", name, i), store.Percent).Record(1 << 62)
		}
		s.FlushForAdmin()
		stop()
		if got := r.Received(r.Counter); got != 7 {
			t.Errorf("%d arrived, want 7", got)
		}
	})
	t.Run("last-delta", func(t *testing.T) {
		st := store.New(store.Options{})
		r, s, stop := start(t, st)
		sc := st.Scope("")
		sc.Counter(r.Counter).Add(5)
		sc.Close()
		s.FlushForAdmin()
		stop()
		if got := r.Received(r.Counter); got != 5 {
			t.Errorf("%d arrived of a counter that ended before the flush, want 5", got)
		}
	})
	t.Run("ended", func(t *testing.T) {
		st := store.New(store.Options{})
		r, s, stop := start(t, st)
		st.Root().Counter(r.Counter).Inc()
		sc := st.Scope("going")
		for i := range 1000 {
			sc.Counter(fmt.Sprint("c", i)).Inc()
		}
		s.FlushForAdmin()
		sc.Close()
		s.FlushForAdmin()
		stop()
		if got := r.Received(r.Counter); got != 1 {
			t.Errorf("%d arrived, want 1", got)
		}
	})
	t.Run("reset", func(t *testing.T) {
		st := store.New(store.Options{})
		r, s, stop := start(t, st)
		c := st.Root().Counter(r.Counter)
		for range 3 {
			c.Add(2)
			s.FlushForAdmin()
			c.Inc() // before the flush that follows
			st.ResetCounters()
		}
		s.FlushForAdmin()
		c.Add(4)
		stop()
		if got := r.Received(r.Counter); got != 13 {
			t.Errorf("%d arrived, want 13", got)
		}
	})
}

// NoOwn returns a filter that excludes the metrics of sinks and of the server.
func NoOwn() sinkqueue.Filter {
	return sinkqueue.Filter{Exclude: match.List{match.Prefix("sink."), match.Prefix("server.")}}
}

// Owed checks that the increments of packets that were not delivered return to their
// series, whether the series have grown since or not. The sink sends increments of st and
// does not run; increments reads them as in [sinkqueue.Config].
func Owed(t *testing.T, st *store.Store, s flush.Movable, increments func(data []byte, yield func(key []byte, n uint64))) {
	t.Helper()
	network := st.ScopeWith("", store.ScopeOptions{Network: true})
	var counters []*store.Counter
	for i := range 4 {
		counters = append(counters, st.Root().Counter(fmt.Sprint("sinktest.plain", i)),
			network.Counter("sinktest.tagged", tags.Tag{Name: "k", Value: fmt.Sprint("v", i)}, tags.Tag{Name: "region", Value: "eu"}))
	}
	var form string
	flushed := func() map[string]uint64 {
		t.Helper()
		snap := st.Flush(store.FlushOptions{})
		defer snap.Close()
		if err := s.Flush(snap); err != nil {
			t.Fatal(err)
		}
		packets := s.Hold(t.Context())
		s.Release(true)
		found := map[string]uint64{}
		for _, p := range packets {
			form = p.Form
			increments(p.Data, func(key []byte, n uint64) {
				if _, again := found[string(key)]; again {
					t.Errorf("%q has increments twice", key)
				}
				if bytes.Contains(key, []byte("sinktest")) {
					found[string(key)] += n
				}
			})
		}
		return found
	}
	for i, c := range counters {
		c.Add(uint64(i) + 1)
	}
	lost := flushed()
	if len(lost) != len(counters) {
		t.Fatalf("%d series with increments, want %d", len(lost), len(counters))
	}
	for key, n := range lost {
		if !s.Inherit(flush.Parcel{Sink: s.Name(), Form: form, Increments: n, Data: []byte(key)}) {
			t.Errorf("the increments of %q are refused", key)
		}
	}
	grown := 0
	for i := 0; i < len(counters); i += 3 {
		counters[i].Add(100)
		grown++
	}
	for key, n := range flushed() {
		switch n - lost[key] {
		case 0:
		case 100:
			grown--
		default:
			t.Errorf("%q has %d increments, %d were owed", key, n, lost[key])
		}
		delete(lost, key)
	}
	if len(lost) != 0 || grown != 0 {
		t.Errorf("%d series were not sent, and the growth of %d is missing", len(lost), grown)
	}
}

// Nameless checks for each kind that a stat without a name is counted and not sent, and
// that counters beside it are sent. The sink sends increments and does not run; increments
// reads them as in [sinkqueue.Config].
func Nameless(t *testing.T, newSink func(*store.Store) (flush.Movable, error), increments func(data []byte, yield func(key []byte, n uint64))) {
	t.Helper()
	for kind, add := range map[store.Kind]func(*store.Scope){
		store.KindCounter:   func(s *store.Scope) { s.Counter("").Inc() },
		store.KindGauge:     func(s *store.Scope) { s.Gauge("").Set(1) },
		store.KindHistogram: func(s *store.Scope) { s.Histogram("", store.Unspecified).Record(1) },
	} {
		st := store.New(store.Options{})
		s, err := newSink(st)
		if err != nil {
			t.Fatal(err)
		}
		st.Root().Counter("sinktest.a").Add(1)
		add(st.Root())
		st.Root().Counter("sinktest.z").Add(2)
		snap := st.Flush(store.FlushOptions{})
		if err := s.Flush(snap); err != nil {
			t.Fatal(err)
		}
		snap.Close()
		var sent []uint64
		for _, p := range s.Hold(t.Context()) {
			increments(p.Data, func(key []byte, n uint64) {
				if bytes.Contains(key, []byte("sinktest")) {
					sent = append(sent, n)
				}
			})
		}
		s.Release(true)
		slices.Sort(sent)
		if !slices.Equal(sent, []uint64{1, 2}) {
			t.Errorf("%v: increments %d, want 1 and 2", kind, sent)
		}
		if n := Own(st, s.Name(), "skipped_names"); n != 1 {
			t.Errorf("%v: %d stats are counted, want 1", kind, n)
		}
	}
}

// Own returns the value of a metric of a sink, 0 if there is none.
func Own(st *store.Store, sink, metric string) uint64 {
	v := st.View()
	defer v.Close()
	if c, ok := v.Find("sink." + metric + ".sink." + sink); ok {
		return c.Uint()
	}
	return 0
}

// Await waits until ok returns true. It does not call ok often, because that
// can lock what the sink waits for.
func Await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// Silent is a connection whose other end, once Gone is true, takes nothing more and gives
// no sign of it: writes succeed and have no effect.
type Silent struct {
	net.Conn
	Gone *atomic.Bool
}

// Write implements [net.Conn].
func (s Silent) Write(b []byte) (int, error) {
	if s.Gone.Load() {
		return len(b), nil
	}
	return s.Conn.Write(b)
}
