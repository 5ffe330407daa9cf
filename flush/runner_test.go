package flush_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/store"
)

// runner is a sink with a sender, which records what happens to it.
type runner struct {
	mu       sync.Mutex
	log      []string
	closed   chan struct{}
	run, end func()
}

func (r *runner) note(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, what)
}

func (r *runner) Name() string                { return "runner" }
func (r *runner) Flush(*store.Snapshot) error { r.note("flush"); return nil }

func (r *runner) Run(ctx context.Context) {
	r.run()
	select {
	case <-r.closed:
	case <-ctx.Done():
	}
	r.note("returned")
}

func (r *runner) Close() {
	r.note("close")
	close(r.closed)
	r.end()
}

func runOnce(t *testing.T, c flush.Config) {
	t.Helper()
	c.Store, c.OnAdmin = store.New(store.Options{}), true
	s, err := flush.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Error(err)
	}
}

func TestRunnerIsClosedAfterTheLastFlush(t *testing.T) {
	r := &runner{closed: make(chan struct{}), run: func() {}, end: func() {}}
	runOnce(t, flush.Config{Sinks: []flush.Sink{r}})
	if want := []string{"flush", "close", "returned"}; !slices.Equal(r.log, want) {
		t.Errorf("%q, want %q", r.log, want)
	}
}

func TestPanicsOfRunners(t *testing.T) {
	panics := guardtest.New(t)
	bad := func() { panic(guardtest.Canary) }
	r := &runner{closed: make(chan struct{}), run: bad, end: bad}
	runOnce(t, flush.Config{Sinks: []flush.Sink{r}, Logger: panics.Logger()})
	panics.Caught("sender of a sink")
	panics.Caught("close of a sink")
}
