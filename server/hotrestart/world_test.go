package hotrestart

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a process that records its calls.
type fake struct {
	mu      sync.Mutex
	asked   []string
	stats   []store.ExportedStat
	parcels []flush.Parcel
	sockets []Socket
	refuse  error
	quit    chan struct{}
	lost    chan bool
	idle    bool // it does not serve
}

func newFake() *fake { return &fake{quit: make(chan struct{}, 9), lost: make(chan bool, 9)} }

func (f *fake) Ready() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refuse
}

// done returns what the process was asked to do.
func (f *fake) done() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.asked, " ")
}

// refuseWith makes the process refuse from now on, or not any more.
func (f *fake) refuseWith(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = err
}

func (f *fake) note(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, what)
}

func (f *fake) Origin() Origin { return Origin{time.Unix(1_700_000_000, 5), 3} }
func (f *fake) Sockets() ([]Socket, error) {
	f.note("sockets")
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sockets, f.refuse
}
func (f *fake) Serving() bool           { return !f.idle }
func (f *fake) Commit()                 { f.note("commit") }
func (f *fake) Acknowledged()           { f.note("ack") }
func (f *fake) Usage() Usage            { return Usage{Memory: 1 << 40, Connections: 7} }
func (f *fake) Drain()                  { f.note("drain") }
func (f *fake) Terminate()              { f.note("terminate"); f.quit <- struct{}{} }
func (f *fake) Lost(replaced bool)      { f.lost <- replaced }
func (f *fake) Parcels() []flush.Parcel { return f.parcels }
func (f *fake) Stats(yield func(*store.ExportedStat) bool) {
	f.note("stats")
	for _, h := range f.has() {
		if !yield(&h) {
			return
		}
	}
}

// has replaces the stats that are to be handed over and returns the old ones.
func (f *fake) has(stats ...store.ExportedStat) []store.ExportedStat {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.stats
	f.stats = stats
	return old
}

// world is a parent that listens.
type world struct {
	t   *testing.T
	cfg Config
	*Parent
	process *fake
	log     bytes.Buffer
	logMu   sync.Mutex
	stop    func()
}

func (w *world) Write(b []byte) (int, error) {
	w.logMu.Lock()
	defer w.logMu.Unlock()
	return w.log.Write(b)
}

func newWorld(t *testing.T) *world { return newPatientWorld(t, 10*time.Second) }

// newPatientWorld is newWorld with another time limit.
func newPatientWorld(t *testing.T, limit time.Duration) *world {
	w := &world{t: t, process: newFake()}
	w.cfg = Config{Path: filepath.Join(t.TempDir(), "hot"), Timeout: limit, Logger: slog.New(slog.NewTextHandler(w, nil))}
	var err error
	if w.Parent, err = Listen(w.cfg); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx, w.process) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(w.stop)
	return w
}

// connect returns a connection to the server, for messages that a successor does not send.
func (w *world) connect() *net.UnixConn {
	w.t.Helper()
	conn, err := net.DialUnix("unix", nil, w.cfg.address(0))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (w *world) dial(to Successor) *Child {
	w.t.Helper()
	next := w.cfg
	next.Epoch++
	c, err := Dial(next, to)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

func samples() []store.ExportedStat {
	return []store.ExportedStat{
		{Name: "rq", Settled: 1 << 63, Delta: 7, Reset: 3},
		{Name: "hits", Network: true, Delta: 1, Tags: []tags.Tag{{Name: "env", Value: "a.b"}, {Name: "bare"}}},
		{Name: "level", Kind: store.KindGauge, Value: 12},
		{Name: "temp\x00\xff", Kind: store.KindGauge, Fractional: true, Network: true, Value: 0xC004000000000000},
		{Name: ""},
	}
}

// parcels are more than fit into one message.
func parcels() []flush.Parcel {
	const age = 10*time.Minute + 7
	return []flush.Parcel{
		{Sink: "a", Form: "statsd", Shard: 3, Age: age, Metrics: 9, Data: bytes.Repeat([]byte("hits:1|c\n"), batchPart/9)},
		{Sink: "", Form: "", Age: age, Data: []byte{0}},
		{Sink: "b", Form: "otlp increments", Age: age, Increments: 1 << 63, Data: bytes.Repeat([]byte("k"), batchPart-5)},
		{Sink: "c", Age: age, Metrics: 1, Data: []byte("last")},
	}
}
