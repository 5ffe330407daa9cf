package browser

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	pagesof "github.com/statsd-admin/statsd-admin/admin/pages"
	"github.com/statsd-admin/statsd-admin/flush/history"
	"github.com/statsd-admin/statsd-admin/store"
)

// shelf is a server whose stats change only when a test says so, on a clock of its own.
type shelf struct {
	*httptest.Server
	store *store.Store
	past  *history.History
	now   time.Time
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	s := &shelf{now: time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return s.now }
	s.store = store.New(store.Options{Now: clock})
	s.past = history.New(history.Config{Store: s.store})
	s.flush()
	srv, err := admin.New(admin.Config{Store: s.store, Now: clock, Sources: admin.Sources{History: s.past}})
	if err != nil {
		t.Fatal(err)
	}
	if err := pagesof.Add(srv); err != nil {
		t.Fatal(err)
	}
	s.Server = httptest.NewServer(srv)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close(); _ = srv.Close() })
	return s
}

// flush ends an interval of five seconds.
func (s *shelf) flush() {
	s.now = s.now.Add(5 * time.Second)
	snap := s.store.Flush(store.FlushOptions{})
	s.past.Add(snap)
	snap.Close()
}

// shaped records values of a random distribution: one or several humps, narrow or over
// many powers of ten, few or many values.
func shaped(hist *store.Histogram, random *rand.Rand) {
	humps, spread, low := 1+random.IntN(3), random.Float64()*2.5, random.Float64()*8
	for range 1 + random.IntN(2000)/(1+random.IntN(50)) {
		hist.Record(uint64(math.Exp(low + 3*float64(random.IntN(humps)) + spread*random.NormFloat64())))
	}
}

// random returns a source of random numbers and logs how to get it again.
func random(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// refill shows another view of the page at once, without waiting for its scripts.
func (p *tab) refill(address string) {
	p.t.Helper()
	eval[bool](p, fmt.Sprintf(`import(document.querySelector('script[src$="/admin.js"]').src).then((m) => m.replace(['content'], %q)).then(() => true)`, address))
}
