package deltastream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/deltastream"
	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/internal/jsonschema"
	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
)

// page is the client side of a stream, which reads or stalls.
type page struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	stuck chan struct{} // nil: takes everything at once
}

func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	stuck := p.stuck
	p.mu.Unlock()
	if stuck != nil {
		<-stuck
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.Write(b)
}

func (p *page) Flush() error { return nil }

// take returns the bytes received since the last call.
func (p *page) take() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.buf.String()
	p.buf.Reset()
	return s
}

func (p *page) stall(c chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stuck = c
}

// world is a store with a stream. Use it in a bubble of synctest.
type world struct {
	t      *testing.T
	store  *store.Store
	stream *deltastream.Stream
}

func newWorld(t *testing.T, cfg deltastream.Config) *world {
	st := store.New(store.Options{})
	cfg.Store = st
	if cfg.Epoch == 0 {
		cfg.Epoch = 7
	}
	return &world{t, st, deltastream.New(cfg)}
}

// tick lets a second pass and looks at the store.
func (w *world) tick() {
	w.t.Helper()
	time.Sleep(time.Second)
	w.stream.Tick()
	synctest.Wait()
	w.checkViews()
}

// checkViews checks that all views are closed.
func (w *world) checkViews() {
	w.t.Helper()
	if n := w.store.OpenViews(); n != 0 {
		w.t.Errorf("%d views are open", n)
	}
}

// listen connects a client; end disconnects it and returns what Serve did.
func (w *world) listen(p deltastream.Writer, r deltastream.Request) (end func() error) {
	w.t.Helper()
	c, err := w.stream.Subscribe(r)
	if err != nil {
		w.t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- c.Serve(p, stop) }()
	synctest.Wait()
	return func() error {
		c.Close()
		close(stop)
		return <-done
	}
}

// data is the body of an event.
type data struct {
	V        int
	Seq      uint64
	T        int64
	Interval int64 `json:"interval_ms"`
	More     bool
	New      [][]any
	Rows     [][]any
	Gone     []uint64
	Skipped  int
	Reason   string
}

// table is a client that keeps the rows, as the documentation describes it.
type table struct {
	t      *testing.T
	names  map[uint64]string
	rows   map[string]string
	resets []string
	lastID string
	count  int // of rows received
	skips  int
}

func newTable(t *testing.T) *table {
	return &table{t: t, names: make(map[uint64]string), rows: make(map[string]string)}
}

// read applies events.
func (tb *table) read(text string) *table {
	tb.t.Helper()
	for block := range strings.SplitSeq(text, "\n\n") {
		var kind, body string
		for line := range strings.SplitSeq(block, "\n") {
			name, value, _ := strings.Cut(line, ":")
			value = strings.TrimPrefix(value, " ")
			switch name {
			case "event":
				kind = value
			case "id":
				tb.lastID = value
			case "data":
				body = value
			}
		}
		if body == "" {
			continue
		}
		jsonschema.Check(tb.t, "../../docs/schema/stats-stream.schema.json", []byte(body))
		var d data
		dec := json.NewDecoder(strings.NewReader(body))
		dec.UseNumber()
		if err := dec.Decode(&d); err != nil || d.V != 1 {
			tb.t.Fatalf("%v in %q", err, body)
		}
		if kind == "reset" {
			tb.resets = append(tb.resets, d.Reason)
			clear(tb.names)
			clear(tb.rows)
		}
		for _, n := range d.New {
			tb.names[ref(n)] = n[2].(string)
		}
		for _, id := range d.Gone {
			delete(tb.rows, tb.names[id])
			delete(tb.names, id)
		}
		for _, r := range d.Rows {
			name, ok := tb.names[ref(r)]
			if !ok {
				tb.t.Fatalf("row %v has no name", r)
			}
			tb.rows[name] = strings.TrimSuffix(fmt.Sprintln(r[1:]...), "\n")
			tb.count++
		}
		tb.skips += d.Skipped
	}
	return tb
}

func ref(row []any) uint64 {
	n, _ := row[0].(json.Number).Int64()
	return uint64(n)
}

func (tb *table) String() string {
	var out []string
	for name, row := range tb.rows {
		out = append(out, name+"="+row)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, deltastream.Config{})
		root := w.store.Root()
		a, big := root.Counter("a"), root.Counter("big")
		g, f := root.Gauge("g"), root.FloatGauge(`f"<b>`)
		h, text := root.Histogram("h", store.Milliseconds), root.Text("t")
		a.Add(5)
		big.Add(1<<53 - 1)
		g.Set(1 << 60)
		p := &page{}
		defer w.listen(p, deltastream.Request{})()
		check := func(name string) {
			t.Helper()
			text := p.take()
			golden.Check(t, name, []byte(text))
			newTable(t).read(text)
		}
		check("start")
		a.Add(7)
		big.Inc()
		_ = f.Set(-2.25)
		text.Set("x\n\"y\"")
		for v := range uint64(100) {
			h.Record(v)
		}
		w.store.Flush(store.FlushOptions{}).Close()
		w.tick()
		golden.Check(t, "changes", []byte(p.take()))
		w.tick()
		if got := p.take(); got != "" {
			t.Errorf("nothing changed, but there is %q", got)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		golden.Check(t, "heartbeat", []byte(p.take()))
		w.store.ResetCounters()
		w.tick()
		check("counters")
	})
}

// TestOnlyChangesAreSent: an event has the stats that changed, are selected, and
// no other.
func TestOnlyChangesAreSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, deltastream.Config{})
		root := w.store.Root()
		for i := range 2000 {
			root.Counter(fmt.Sprint("idle", i)).Inc()
		}
		a, b := root.Counter("ab"), root.Counter("bb")
		filter, err := render.NewFilter(render.RE2, "^a", render.FilterLimits{})
		if err != nil {
			t.Fatal(err)
		}
		all, some := &page{}, &page{}
		defer w.listen(all, deltastream.Request{})()
		defer w.listen(some, deltastream.Request{Options: render.Options{Filter: filter, UsedOnly: true}})()
		ta, ts := newTable(t).read(all.take()), newTable(t).read(some.take())
		if len(ta.rows) != 2002 || len(ts.rows) != 0 {
			t.Fatalf("%d rows at first, %d of the filter", len(ta.rows), len(ts.rows))
		}
		ta.count = 0
		a.Add(3)
		b.Inc()
		root.Counter("ax")
		root.Counter("ay").Inc()
		w.tick()
		if ta.read(all.take()); ta.count != 4 {
			t.Errorf("%d rows, want 4", ta.count)
		}
		if got, want := ts.read(some.take()).String(), "ab=3 3 ay=1 1"; got != want {
			t.Errorf("with a filter: %s, want %s", got, want)
		}
	})
}

func TestRefsAndKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, deltastream.Config{})
		a, b := w.store.Root().Counter("a"), w.store.Root().Counter("b")
		g := w.store.Root().Gauge("g")
		v := w.store.View()
		cur, _ := v.Find("b")
		r := cur.Ref()
		v.Close()
		p, q := &page{}, &page{}
		defer w.listen(p, deltastream.Request{Refs: []uint64{r, 1 << 40}})()
		defer w.listen(q, deltastream.Request{Options: render.Options{Type: render.Gauges}, ChangesOnly: true})()
		if got := q.take(); strings.Contains(got, "rows") {
			t.Errorf("the values at the beginning are there: %q", got)
		}
		a.Inc()
		b.Inc()
		g.Set(4)
		w.tick()
		if got := newTable(t).read(p.take()).String(); got != "b=1 1" {
			t.Errorf("by reference: %s", got)
		}
		if got := newTable(t).read(q.take()).String(); got != "g=4 0" {
			t.Errorf("gauges: %s", got)
		}
	})
}

// TestContinuedCounters: a counter that continues that of a parent process was created at 0.
func TestContinuedCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, deltastream.Config{})
		w.store.Root().Counter("own").Inc()
		w.store.Root().Counter("continued").Inc()
		if err := w.store.NewImport(nil).Add(&store.ExportedStat{Name: "continued", Settled: 7}); err != nil {
			t.Fatal(err)
		}
		p := &page{}
		defer w.listen(p, deltastream.Request{})()
		got := p.take()
		if !strings.Contains(got, `,"counter","continued",0]`) || strings.Contains(got, `,"counter","own",0]`) {
			t.Errorf("got %s", got)
		}
	})
}

// TestOthersFollow: stats that a client has not asked for stand before, between and behind its
// own, at the beginning and among the changes.
func TestOthersFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, deltastream.Config{})
		root := w.store.Root()
		var want []string
		var change []func()
		for i, name := range []string{"a", "b", "c", "d", "e"} {
			mode := store.HiddenAccumulate
			if i%2 == 1 {
				mode = store.Accumulate
				want = append(want, name)
			}
			g := root.GaugeWithMode(name, mode)
			g.Set(1)
			change = append(change, func() { g.Add(1) })
		}
		refs := []uint64{1 << 40}
		v := w.store.View()
		for _, name := range want {
			cur, _ := v.Find(name)
			refs = append(refs, cur.Ref(), 1<<41)
		}
		v.Close()
		p, q := &page{}, &page{}
		defer w.listen(p, deltastream.Request{})()
		defer w.listen(q, deltastream.Request{Refs: refs})()
		all, some := newTable(t), newTable(t)
		for value := 1; value <= 2; value++ {
			got, want := all.read(p.take()).String(), fmt.Sprintf("b=%d 0 d=%d 0", value, value)
			if got != want {
				t.Errorf("all that is shown: %s, want %s", got, want)
			}
			if got := some.read(q.take()).String(); got != want {
				t.Errorf("by reference: %s, want %s", got, want)
			}
			for _, f := range change {
				f()
			}
			w.tick()
		}
	})
}

func TestEndedStatsAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, deltastream.Config{})
		sc := w.store.Scope("x")
		sc.Counter("a").Inc()
		w.store.Root().Counter("b").Inc()
		p := &page{}
		defer w.listen(p, deltastream.Request{})()
		tb := newTable(t).read(p.take())
		sc.Close()
		w.tick()
		if got := tb.read(p.take()).String(); got != "b=1 0" {
			t.Errorf("%s", got)
		}
		sc = w.store.Scope("x")
		sc.Counter("a").Add(2) // another stat
		w.tick()
		if got := tb.read(p.take()).String(); got != "b=1 0 x.a=2 2" {
			t.Errorf("%s", got)
		}
	})
}

func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, deltastream.Config{Linger: 5 * time.Second})
		sc := w.store.Scope("x")
		sc.Counter("y").Inc()
		a := w.store.Root().Counter("a")
		w.store.Root().Counter("idle").Inc()
		p := &page{}
		end := w.listen(p, deltastream.Request{})
		a.Inc()
		w.tick()
		tb := newTable(t).read(p.take())
		if err := end(); err != nil {
			t.Fatal(err)
		}
		a.Add(2)
		w.tick()
		sc.Close()
		a.Add(3)
		w.tick()
		end = w.listen(p, deltastream.Request{LastEventID: tb.lastID})
		w.tick()
		tb.count = 0
		if got := tb.read(p.take()).String(); got != "a=6 2.5 idle=1 0" || len(tb.resets) != 1 || tb.count != 1 {
			t.Errorf("resumed: %s, resets %v, %d rows", got, tb.resets, tb.count)
		}
		_ = end()
		for _, tt := range []struct{ id, reason string }{{"6.1", "restart"}, {"7.900", "expired"}, {"", "start"}} {
			end := w.listen(p, deltastream.Request{LastEventID: tt.id})
			if tb := newTable(t).read(p.take()); len(tb.resets) != 1 || tb.resets[0] != tt.reason || tb.rows["a"] != "6 0" {
				t.Errorf("id %q: resets %v, rows %s", tt.id, tb.resets, tb)
			}
			_ = end()
		}
		for w.stream.Tick() { // until the stream stops to collect
		}
		end = w.listen(p, deltastream.Request{LastEventID: tb.lastID})
		if tb := newTable(t).read(p.take()); len(tb.resets) != 1 || tb.resets[0] != "expired" {
			t.Errorf("after the linger: resets %v", tb.resets)
		}
		_ = end()
		for _, id := range []string{"x", "7", "7.", ".7", "7.1.1", "-1.2"} {
			if _, err := w.stream.Subscribe(deltastream.Request{LastEventID: id}); !errors.Is(err, deltastream.ErrLastEventID) {
				t.Errorf("id %q: %v", id, err)
			}
		}
	})
}

// TestResumeAfterALinger: what changed while nothing was collected is sent even to a
// client that had all before.
func TestResumeAfterALinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, deltastream.Config{Linger: time.Millisecond})
		a := w.store.Root().Counter("a")
		p := &page{}
		end := w.listen(p, deltastream.Request{})
		a.Inc()
		w.tick()
		id := newTable(t).read(p.take()).lastID
		_ = end()
		if w.stream.Tick() {
			t.Error("changes are still collected")
		}
		a.Add(4)
		end = w.listen(p, deltastream.Request{LastEventID: id})
		if tb := newTable(t).read(p.take()); len(tb.resets) != 1 || tb.resets[0] != "expired" || tb.rows["a"] != "5 0" {
			t.Errorf("resets %v, rows %s", tb.resets, tb)
		}
		_ = end()
	})
}

// TestSlowClient: a client that stalls gets merged changes, or a reset if the ring
// no longer has them, and costs the others nothing.
func TestSlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, deltastream.Config{RingBytes: 20 << 10})
		a := w.store.Root().Counter("a")
		slow, quick := &page{}, &page{}
		defer w.listen(slow, deltastream.Request{})()
		defer w.listen(quick, deltastream.Request{})()
		ts, tq := newTable(t).read(slow.take()), newTable(t).read(quick.take())
		go1 := make(chan struct{})
		slow.stall(go1)
		for range 10 {
			a.Inc()
			w.tick()
		}
		if tq.read(quick.take()); tq.rows["a"] != "10 1" || tq.count != 11 {
			t.Errorf("the other client has %s after %d rows", tq, tq.count)
		}
		slow.stall(nil)
		close(go1)
		synctest.Wait()
		if ts.read(slow.take()); ts.rows["a"] != "10 1" || ts.count != 3 || ts.skips != 8 || len(ts.resets) != 1 {
			t.Errorf("merged: %s after %d rows, %d skipped, resets %v", ts, ts.count, ts.skips, ts.resets)
		}
		go2 := make(chan struct{})
		slow.stall(go2)
		for i := range 60 {
			a.Inc()
			for j := range 20 {
				w.store.Root().Counter(fmt.Sprint("n", i, ".", j)).Inc()
			}
			w.tick()
		}
		slow.stall(nil)
		close(go2)
		synctest.Wait()
		ts.read(slow.take())
		if tq.read(quick.take()); ts.String() == "" || len(ts.rows) != len(tq.rows) || ts.rows["a"] != "70 0" {
			t.Errorf("after a reset: %d rows, want %d; a is %s", len(ts.rows), len(tq.rows), ts.rows["a"])
		}
		if want := []string{"start", "slow"}; !slices.Equal(ts.resets, want) {
			t.Errorf("resets %v, want %v", ts.resets, want)
		}
		if len(tq.resets) != 1 {
			t.Errorf("the other client has resets %v", tq.resets)
		}
	})
}

// TestLongEvents: an event in parts has its id at the end, and nothing is lost if
// the memory of the client is short.
func TestLongEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, deltastream.Config{ClientBytes: 1000})
		var counters []*store.Counter
		for i := range 10000 {
			counters = append(counters, w.store.Root().Counter(fmt.Sprintf("counter.number.%05d", i)))
		}
		p := &page{}
		defer w.listen(p, deltastream.Request{})()
		text := p.take()
		tb := newTable(t).read(text)
		if len(tb.rows) != len(counters) {
			t.Fatalf("%d rows", len(tb.rows))
		}
		if parts, ids := strings.Count(text, "event: delta"), strings.Count(text, "\nid: "); parts < 10 || ids != 1 {
			t.Errorf("%d parts, %d ids", parts, ids)
		}
		for _, c := range counters {
			c.Inc()
		}
		w.tick()
		tb.read(p.take())
		for i := range counters {
			if name := fmt.Sprintf("counter.number.%05d", i); tb.rows[name] != "1 1" {
				t.Fatalf("%s is %q", name, tb.rows[name])
			}
		}
	})
}

func TestInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, deltastream.Config{})
		a := w.store.Root().Counter("a")
		p := &page{}
		defer w.listen(p, deltastream.Request{Interval: 3 * time.Second, ChangesOnly: true})()
		tb := newTable(t).read(p.take())
		for i := range 6 {
			a.Add(3)
			w.tick()
			tb.count = 0
			tb.read(p.take())
			if due := i%3 == 2; due != (tb.count == 1) || due && (tb.rows["a"] != fmt.Sprint(3*(i+1))+" 3" || tb.skips != 0) {
				t.Errorf("second %d: %d rows, %s, %d skipped", i, tb.count, tb, tb.skips)
			}
		}
	})
}

func TestLimitOfClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, deltastream.Config{Clients: 1})
		end := w.listen(&page{}, deltastream.Request{})
		var full *deltastream.FullError
		if _, err := w.stream.Subscribe(deltastream.Request{}); !errors.As(err, &full) || full.Clients != 1 {
			t.Errorf("%v", err)
		}
		_ = end()
		end = w.listen(&page{}, deltastream.Request{})
		_ = end()
	})
}

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, deltastream.Config{Linger: 3 * time.Second})
		done := make(chan error, 1)
		ctx := t.Context()
		go func() { done <- w.stream.Run(ctx) }()
		a := w.store.Root().Counter("a")
		for range 2 { // the second client comes after the stream went idle
			p := &page{}
			end := w.listen(p, deltastream.Request{ChangesOnly: true})
			p.take()
			a.Inc()
			time.Sleep(1500 * time.Millisecond)
			synctest.Wait()
			if tb := newTable(t).read(p.take()); tb.count != 1 {
				t.Errorf("%d rows in 1.5 s", tb.count)
			}
			_ = end()
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if w.stream.Tick() {
				t.Error("the stream still looks at the store without clients")
			}
		}
	})
}

func TestTooExpensiveFilter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, deltastream.Config{})
		w.store.Root().Counter("a").Inc()
		filter, err := render.NewFilter(render.RE2, "a+b*", render.FilterLimits{Now: func() func() time.Time {
			at := time.Now()
			return func() time.Time { at = at.Add(time.Hour); return at }
		}()})
		if err != nil {
			t.Fatal(err)
		}
		p := &page{}
		began := 0
		end := w.listen(p, deltastream.Request{Options: render.Options{Filter: filter}, Began: func() { began++ }})
		golden.Check(t, "expensive", []byte(p.take()))
		if err := end(); err != nil || began != 1 {
			t.Errorf("%v, began %d", err, began)
		}
	})
}

// TestFilterThatBecomesTooExpensive: the client of a filter whose budget does not suffice for
// changes gets an error and no half of them.
func TestFilterThatBecomesTooExpensive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, deltastream.Config{})
		w.store.Root().Counter("a").Inc()
		slow := time.Duration(0)
		at := time.Now()
		filter, err := render.NewFilter(render.RE2, "a+b*", render.FilterLimits{Now: func() time.Time { at = at.Add(slow); return at }})
		if err != nil {
			t.Fatal(err)
		}
		p := &page{}
		end := w.listen(p, deltastream.Request{Options: render.Options{Filter: filter}})
		if got := newTable(t).read(p.take()).String(); got != "a=1 0" {
			t.Errorf("at the beginning: %s", got)
		}
		slow = time.Hour
		w.store.Root().Counter("ab").Inc() // must be judged
		w.tick()
		if got := p.take(); !strings.Contains(got, "event: error") || strings.Contains(got, "rows") {
			t.Errorf("at the change: %q", got)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestCutBeginning: a client whose connection is lost among the initial values gets all of
// them when it comes back.
func TestCutBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, deltastream.Config{})
		for i := range 2000 { // some parts
			w.store.Root().Counter(fmt.Sprint("a.counter.of.a.subsystem.", i)).Inc()
		}
		p := &page{}
		end := w.listen(p, deltastream.Request{})
		parts := strings.SplitAfter(p.take(), "\n\n")
		_ = end()
		for n := range parts {
			tb := newTable(t).read(strings.Join(parts[:n], ""))
			end := w.listen(p, deltastream.Request{LastEventID: tb.lastID})
			tb.read(p.take())
			_ = end()
			if len(tb.rows) != 2000 {
				t.Errorf("cut after %d of %d events: %d rows, want 2000", n, len(parts)-1, len(tb.rows))
			}
		}
	})
}

// slowPage is a page that takes a while for each part of an event.
type slowPage struct {
	page
	pause time.Duration
}

func (p *slowPage) Flush() error {
	time.Sleep(p.pause)
	return nil
}

// TestSlowBeginning: a client gets all values as long as it reads them in two minutes,
// and is told otherwise. It keeps no view of the store and no slot for longer.
func TestSlowBeginning(t *testing.T) {
	for pause, ends := range map[time.Duration]bool{20 * time.Second: false, 50 * time.Second: true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, deltastream.Config{})
			for i := range 2000 { // some parts
				w.store.Root().Counter(fmt.Sprint("a.counter.of.a.subsystem.", i)).Inc()
			}
			p, begin := &slowPage{pause: pause}, time.Now()
			var began time.Time
			end := w.listen(p, deltastream.Request{Began: func() {
				if began.IsZero() {
					began = time.Now()
				}
			}})
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			got := p.take()
			if told := strings.Contains(got, `event: error`) && strings.Contains(got, `"read too slowly"`); told != ends || strings.Contains(got, ".999\"") == ends {
				t.Errorf("a pause of %v: ended %t, want %t; %d bytes", pause, told, ends, len(got))
			}
			if took := began.Sub(begin); took > 5*time.Minute {
				t.Errorf("a pause of %v: the beginning took %v", pause, took)
			}
			if err := end(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestEndOfRun: nothing follows the store after the end of Run, even if a client has not
// left yet or another one comes, since nothing would end that.
func TestEndOfRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, deltastream.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.stream.Run(ctx) }()
		c, err := w.stream.Subscribe(deltastream.Request{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if w.stream.Tick() {
			t.Error("the stream still looks at the store")
		}
		late := w.listen(&page{}, deltastream.Request{})
		if w.stream.Tick() {
			t.Error("a client that came late made the stream look at the store")
		}
		if err := late(); err != nil {
			t.Error(err)
		}
	})
}

func TestClosedStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, deltastream.Config{})
		end := w.listen(&page{}, deltastream.Request{})
		w.stream.Close()
		w.stream.Close()
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// brokenPage fails from some write on.
type brokenPage struct {
	page
	left int // writes that succeed
}

var errBroken = errors.New("broken")

func (p *brokenPage) Write(b []byte) (int, error) {
	if p.left--; p.left < 0 {
		return 0, errBroken
	}
	return p.page.Write(b)
}

// TestBrokenConnections: whichever write fails, Serve returns its error at once and leaves
// no view open.
func TestBrokenConnections(t *testing.T) {
	for _, refs := range []bool{false, true} {
		for _, left := range []int{0, 1, 2, 3, 5, 8, 13, 21, 34} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, deltastream.Config{ClientBytes: 500})
				sc := w.store.Scope("ends")
				var counters []*store.Counter
				for i := range 60 {
					counters = append(counters, w.store.Root().Counter(fmt.Sprintf("counter.number.%05d", i)))
					sc.Counter(fmt.Sprintf("counter.number.%05d", i)).Inc()
				}
				r := deltastream.Request{}
				if refs {
					v := w.store.View()
					for c := v.ByName(store.Scalars); c.Next(); {
						r.Refs = append(r.Refs, c.Ref())
					}
					v.Close()
				}
				p := &brokenPage{left: left}
				end := w.listen(p, r)
				for _, c := range counters {
					c.Inc()
				}
				sc.Close()
				w.tick()
				failed := p.left < 0
				if p.left < -1 {
					t.Errorf("%d writes after the one that failed", -1-p.left)
				}
				if err := end(); failed != errors.Is(err, errBroken) {
					t.Errorf("after %d writes: %v, failed %t", left, err, failed)
				}
				w.stream.Close()
			})
		}
	}
}

func TestTextsOfErrors(t *testing.T) {
	if got, want := (&deltastream.FullError{Clients: 5}).Error(), "deltastream: 5 clients listen, which is the limit"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
