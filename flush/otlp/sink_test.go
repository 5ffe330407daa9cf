package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/sinkhttp"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/flush/sinktest"
	"github.com/statsd-admin/statsd-admin/internal/clocktest"
	"github.com/statsd-admin/statsd-admin/internal/protobuf"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver is a transport that keeps the sums it gets. Fail decides on each request.
type receiver struct {
	mu     sync.Mutex
	n      int
	fail   func(n int) (err error, applied bool)
	delta  bool
	sums   map[string]uint64
	values uint64 // of histograms, of delta temporality
	answer []byte
}

func (r *receiver) Export(_ context.Context, request []byte) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	var err error
	if r.fail != nil {
		var applied bool
		if err, applied = r.fail(r.n); err != nil && !applied {
			return nil, err
		}
	}
	visit(request, func(name, _ []byte, n uint64) {
		if r.delta {
			n += r.sums[string(name)]
		}
		r.sums[string(name)] = max(n, r.sums[string(name)])
	}, func(n uint64) { r.values += n })
	return r.answer, err
}

func (*receiver) Target() string { return "test" }
func (*receiver) Close()         {}

func (r *receiver) sum(name string) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sums[name]
}

// exporting returns a store, its running sink, and a function that stops it.
func exporting(t *testing.T, cfg Config) (*store.Store, *Sink, func()) {
	t.Helper()
	cfg.Store = store.New(store.Options{})
	cfg.Store.KeepNames()
	cfg.Filter = sinktest.NoOwn()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() { s.Run(context.Background()) })
	return cfg.Store, s, func() { s.Close(); done.Wait() }
}

func tick(t *testing.T, st *store.Store, s *Sink) {
	t.Helper()
	snap := st.Flush(store.FlushOptions{Totals: s.NeedsTotals()})
	defer snap.Close()
	if err := s.Flush(snap); err != nil {
		t.Error(err)
	}
}

func drain(t *testing.T, s *Sink) {
	t.Helper()
	waittest.Equal(t, "bytes in the queue", 0, func() int { return int(s.Delivery().Bytes) })
}

func TestSinkKeepsTheContract(t *testing.T) {
	for _, delta := range []bool{false, true} {
		t.Run(fmt.Sprint(delta), func(t *testing.T) {
			sinktest.Run(t, func(t *testing.T) sinktest.Receiver {
				r := &receiver{sums: map[string]uint64{}, delta: delta}
				s, err := New(Config{Options: sinkqueue.Options{Store: store.New(store.Options{})}, Transport: r, Delta: delta})
				if err != nil {
					t.Fatal(err)
				}
				return sinktest.Receiver{Sink: s, Received: r.sum}
			})
		})
	}
}

var errDown = errors.New("down")

// TestFaults: increments that arrived, or may have, or are lost, add up to all; totals
// are exact in the end.
func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		name    string
		err     error
		applied bool
		delta   bool
	}{
		{"down", errDown, false, true},
		{"refused", fmt.Errorf("status 400: %w", sinkqueue.ErrRefused), false, true},
		{"doubtful", fmt.Errorf("timeout: %w", sinkqueue.ErrAmbiguous), false, true},
		{"duplicate", fmt.Errorf("timeout: %w", sinkqueue.ErrAmbiguous), true, true},
		{"down, totals", errDown, false, false},
		{"duplicate, totals", fmt.Errorf("timeout: %w", sinkqueue.ErrAmbiguous), true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &receiver{sums: map[string]uint64{}, delta: tt.delta, fail: func(n int) (error, bool) {
				if n%3 == 1 {
					return tt.err, tt.applied
				}
				return nil, false
			}}
			st, s, stop := exporting(t, Config{Options: sinkqueue.Options{QueueBytes: 2000}, Transport: r, Delta: tt.delta, Batch: 4})
			added, values := uint64(0), uint64(0)
			for i := range 10 {
				for j := range 10 {
					st.Root().Counter(fmt.Sprint("c", j)).Add(uint64(i + j))
					added += uint64(i + j)
				}
				st.Root().Histogram("h", store.Bytes).Record(5)
				values++
				tick(t, st, s)
			}
			drain(t, s)
			tick(t, st, s) // sends the owed increments
			drain(t, s)
			tick(t, st, s)
			drain(t, s)
			stop()
			if !tt.delta {
				for j := range 10 {
					if got, want := r.sum(fmt.Sprint("c", j)), uint64(45+10*j); got != want {
						t.Errorf("c%d is %d, want %d", j, got, want)
					}
				}
				return
			}
			sum := uint64(0)
			for _, n := range r.sums {
				sum += n
			}
			other := sinktest.Own(st, "otlp", "lost_increments") + sinktest.Own(st, "otlp", "ambiguous_increments")
			otherValues := sinktest.Own(st, "otlp", "lost_values") + sinktest.Own(st, "otlp", "ambiguous_values")
			if tt.applied { // the doubtful report arrived
				other, otherValues = sinktest.Own(st, "otlp", "lost_increments"), sinktest.Own(st, "otlp", "lost_values")
			}
			if d := s.Delivery(); sum+other != added || r.values+otherValues != values || d.Owed != 0 {
				t.Errorf("%d increments and %d values arrived, %d and %d are counted as lost or doubtful; want %d and %d; %d series owed",
					sum, r.values, other, otherValues, added, values, d.Owed)
			}
		})
	}
}

func TestPartialSuccess(t *testing.T) {
	partial := protobuf.AppendBytes(protobuf.AppendUint(nil, 1, 3), 2, "too old")
	r := &receiver{sums: map[string]uint64{}, answer: protobuf.AppendBytes(nil, 1, partial)}
	st, s, stop := exporting(t, Config{Transport: r})
	st.Root().Counter("c").Inc()
	tick(t, st, s)
	stop()
	if sinktest.Own(st, "otlp", "rejected_metrics") != 3 || sinktest.Own(st, "otlp", "packets") != 1 || r.n != 1 {
		t.Errorf("%d rejected, %d packets in %d requests", sinktest.Own(st, "otlp", "rejected_metrics"), sinktest.Own(st, "otlp", "packets"), r.n)
	}
}

// TestRejectedPointsAreLogged: a receiver that rejects a part of each request does not
// fill the log.
func TestRejectedPointsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		partial := protobuf.AppendBytes(protobuf.AppendUint(nil, 1, 3), 2, "too old")
		st := store.New(store.Options{})
		s, err := New(Config{
			Options:   sinkqueue.Options{Store: st, Logger: slog.New(slog.NewTextHandler(&log, nil))},
			Transport: &receiver{answer: protobuf.AppendBytes(nil, 1, partial)},
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			if _, err := s.send(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		lines := strings.Count(log.String(), `level=WARN msg="sink: the receiver accepted a part" sink=otlp rejected=3 message="too old"`)
		if rejected := sinktest.Own(st, "otlp", "rejected_metrics"); lines != 2 || rejected != 300 {
			t.Errorf("%d points rejected, logged %s", rejected, log.String())
		}
	})
}

// TestPartialSuccessOverHTTP: a long answer counts, but only if its content type says that it is
// one, and not the page of a proxy.
func TestPartialSuccessOverHTTP(t *testing.T) {
	partial := protobuf.AppendBytes(protobuf.AppendUint(nil, 1, 3), 2, strings.Repeat("host h1 is too old\n", 20_000))
	for kind, want := range map[string]uint64{"application/x-protobuf": 3, "application/x-protobuf; charset=utf-8": 3, "text/html": 0} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(protobuf.AppendBytes(nil, 1, partial))
		}))
		st, s, stop := exporting(t, Config{HTTP: sinkhttp.Config{URL: srv.URL}})
		st.Root().Counter("c").Inc()
		tick(t, st, s)
		stop()
		srv.Close()
		if sinktest.Own(st, "otlp", "rejected_metrics") != want || sinktest.Own(st, "otlp", "packets") != 1 {
			t.Errorf("%s: %d rejected, want %d, %d packets", kind, sinktest.Own(st, "otlp", "rejected_metrics"), want, sinktest.Own(st, "otlp", "packets"))
		}
	}
}

// TestGzip compresses requests over HTTP.
func TestGzip(t *testing.T) {
	size := 0
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := gzip.NewReader(r.Body)
		if err != nil || r.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%v, %v", err, r.Header)
			return
		}
		b, err := io.ReadAll(body)
		if size = len(b); err != nil || !strings.Contains(string(b), "service.name") {
			t.Errorf("%v: %q", err, b)
		}
	}))
	defer srv.Close()
	st, s, stop := exporting(t, Config{HTTP: sinkhttp.Config{URL: srv.URL}, Gzip: true})
	st.Root().Counter("c").Inc()
	tick(t, st, s)
	stop()
	if size == 0 || sinktest.Own(st, "otlp", "packets") != 1 {
		t.Errorf("%d bytes in %d packets", size, sinktest.Own(st, "otlp", "packets"))
	}
}

func TestOverHTTP(t *testing.T) {
	var got string
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = fmt.Sprint(r.URL.Path, " ", r.Header.Get("Content-Type"), " ", strings.Contains(string(body), "service.name"))
	}))
	defer srv.Close()
	st, s, stop := exporting(t, Config{HTTP: sinkhttp.Config{URL: srv.URL}})
	st.Root().Counter("c").Inc()
	tick(t, st, s)
	stop()
	if want := "/v1/metrics application/x-protobuf true"; got != want || s.Delivery().Target != srv.URL+"/v1/metrics" {
		t.Errorf("%s to %s, want %s", got, s.Delivery().Target, want)
	}
	for _, cfg := range []Config{{}, {Options: sinkqueue.Options{Store: st}}} {
		if _, err := New(cfg); err == nil || !strings.HasPrefix(err.Error(), "otlp: ") {
			t.Errorf("%v", err)
		}
	}
}

// TestOutageIsBounded flushes each second of ten minutes while every request fails: the
// queue stays within its limit, and no increment is lost.
func TestOutageIsBounded(t *testing.T) {
	const seconds, series, limit = 600, 100, 64 << 10
	r := &receiver{sums: map[string]uint64{}, delta: true, fail: func(int) (error, bool) { return errDown, false }}
	st, s, stop := exporting(t, Config{Options: sinkqueue.Options{QueueBytes: limit}, Transport: r, Delta: true})
	counters := make([]*store.Counter, series)
	for i := range counters {
		counters[i] = st.Root().Counter(fmt.Sprint("c", i), tags.Tag{Name: "zone", Value: fmt.Sprint(i % 7)})
	}
	for range seconds {
		for i, c := range counters {
			c.Add(uint64(i))
		}
		tick(t, st, s)
		if d := s.Delivery(); d.Bytes > limit || d.Owed > series {
			t.Fatalf("%d bytes are queued, %d series are owed", d.Bytes, d.Owed)
		}
	}
	if s.Delivery().Dropped == 0 {
		t.Error("nothing was dropped, so the limit was not reached")
	}
	r.mu.Lock()
	r.fail = nil
	r.mu.Unlock()
	s.queue.Retry()
	drain(t, s)
	tick(t, st, s) // the increments of dropped packets
	stop()
	for i := range counters {
		if got := r.sum(fmt.Sprint("c", i)); got != seconds*uint64(i) {
			t.Fatalf("counter %d: %d arrived, want %d", i, got, seconds*i)
		}
	}
}

// TestDefaults: zero settings mean the defaults, others stay.
func TestWrongSettings(t *testing.T) {
	o := sinkqueue.Options{Store: store.New(store.Options{})}
	for _, cfg := range []Config{
		{}, {Options: o}, {HTTP: sinkhttp.Config{URL: "http://127.0.0.1:1"}}, {Options: o, HTTP: sinkhttp.Config{URL: "ftp://127.0.0.1:1"}},
	} {
		if s, err := New(cfg); err == nil || s != nil || !strings.HasPrefix(err.Error(), "otlp: ") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

func TestDefaults(t *testing.T) {
	for _, tt := range []struct {
		batch   int
		refresh time.Duration
		want    Config
	}{{0, 0, Config{Batch: 2000, Refresh: time.Minute}}, {-1, -1, Config{Batch: 2000, Refresh: -1}}, {1, 1, Config{Batch: 1, Refresh: 1}}} {
		s, err := New(Config{
			Options: sinkqueue.Options{Store: store.New(store.Options{})}, HTTP: sinkhttp.Config{URL: "http://127.0.0.1:1"}, Batch: tt.batch, Refresh: tt.refresh,
		})
		if err != nil {
			t.Fatal(err)
		}
		if s.cfg.Batch != tt.want.Batch || s.cfg.Refresh != tt.want.Refresh || s.walk.Refresh != tt.want.Refresh || s.cfg.Name != "otlp" {
			t.Errorf("a batch of %d, a refresh of %v, want %+v", s.cfg.Batch, s.cfg.Refresh, tt.want)
		}
	}
}

// TestTotalsAreSentAgain: only increments need the setting for that.
func TestTotalsAreSentAgain(t *testing.T) {
	for _, tt := range []struct{ delta, resend, want bool }{{false, false, true}, {false, true, true}, {true, false, false}, {true, true, true}} {
		o := sinkqueue.Options{Store: store.New(store.Options{}), Resend: tt.resend}
		s, err := New(Config{Options: o, HTTP: sinkhttp.Config{URL: "http://127.0.0.1:1"}, Delta: tt.delta})
		if err != nil {
			t.Fatal(err)
		}
		if s.cfg.Resend != tt.want {
			t.Errorf("delta %t, resend %t: %t", tt.delta, tt.resend, s.cfg.Resend)
		}
	}
}

// TestPointsWithTheSamePattern: counters of a family differ in the values of tags only.
func TestPointsWithTheSamePattern(t *testing.T) {
	for _, delta := range []bool{false, true} {
		st, s, stop := exporting(t, Config{
			Options:   sinkqueue.Options{Prefix: "edge", Tags: []tags.Tag{{Name: "zone", Value: "own"}, {Name: "instance", Value: "a"}}},
			Transport: &receiver{sums: map[string]uint64{}, delta: delta}, Delta: delta, Batch: 7,
		})
		s.Hold(t.Context())
		text := func(name, value string) []byte { return fixed(attributesNumber, tags.Tag{Name: name, Value: value}) }
		want := map[string]uint64{}
		for i := range 40 {
			x, n := fmt.Sprint("x", i), uint64(i+1)
			st.Root().Counter("hits", tags.Tag{Name: "zone", Value: x}, tags.Tag{Name: "code", Value: "y"}).Add(n)
			st.Root().Counter("twice", tags.Tag{Name: "host", Value: x}, tags.Tag{Name: "host", Value: "second"}).Add(n)
			want["edge.hits"+string(bytes.Join([][]byte{text("zone", x), text("code", "y"), text("instance", "a")}, nil))] = n
			want["edge.twice"+string(bytes.Join([][]byte{text("host", x), text("zone", "own"), text("instance", "a")}, nil))] = n
		}
		tick(t, st, s)
		got := map[string]uint64{}
		for _, p := range s.Hold(t.Context()) {
			visit(p.Data, func(name, attrs []byte, n uint64) { got[string(name)+string(attrs)] += n }, func(uint64) {})
		}
		if !maps.Equal(got, want) {
			t.Errorf("delta %t:\n%v, want\n%v", delta, got, want)
		}
		s.Release(true)
		stop()
	}
}

// TestSizeOfRequests: a request ends with the point that makes it complete, by number or
// by bytes.
func TestSizeOfRequests(t *testing.T) {
	const long = 4000
	for _, tt := range []struct{ points, batch, bytes int }{{8, 3, 0}, {600, 10_000, 1 << 20}} {
		st, s, stop := exporting(t, Config{Transport: &receiver{sums: map[string]uint64{}}, Batch: tt.batch})
		s.Hold(t.Context())
		for i := range tt.points {
			st.Root().Counter("c", tags.Tag{Name: "x", Value: fmt.Sprint(i) + strings.Repeat("v", min(tt.bytes, long))}).Inc()
		}
		tick(t, st, s)
		all := s.Hold(t.Context())
		if len(all) < 3 {
			t.Errorf("%d requests", len(all))
		}
		for i, p := range all {
			complete := p.Metrics == tt.batch
			if size := len(p.Data); tt.bytes > 0 {
				complete = size >= tt.bytes && size < tt.bytes+long+300
			}
			if last := i == len(all)-1; complete == last {
				t.Errorf("request %d of %d has %d points and %d bytes", i+1, len(all), p.Metrics, len(p.Data))
			}
		}
		s.Release(true)
		stop()
	}
}

func TestNamelessStats(t *testing.T) {
	sinktest.Nameless(t, func(st *store.Store) (flush.Movable, error) {
		return New(Config{Options: sinkqueue.Options{Store: st}, Transport: &receiver{}, Delta: true})
	}, increments)
}

func TestUndeliveredIncrementsReturn(t *testing.T) {
	for _, batch := range []int{1, 100} {
		st := store.New(store.Options{})
		s, err := New(Config{Options: sinkqueue.Options{Store: st, Tags: []tags.Tag{{Name: "dc", Value: "x"}}}, Transport: &receiver{}, Delta: true, Batch: batch})
		if err != nil {
			t.Fatal(err)
		}
		sinktest.Owed(t, st, s, increments)
	}
}

// TestClockSetForward: after the clock of the system was set forward, increments have the
// interval in which they happened, not the time that was skipped.
func TestClockSetForward(t *testing.T) {
	now := time.Now()
	st := store.New(store.Options{Now: func() time.Time { return now }})
	s, err := New(Config{Options: sinkqueue.Options{Store: st}, Transport: &receiver{}, Delta: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []time.Duration{0, time.Hour, 0} {
		st.Root().Counter("a").Inc()
		now = clocktest.Set(now.Add(5*time.Second), by)
		tick(t, st, s)
		var got []byte
		s.queue.Take(func(data []byte, _ int) { got = append(got, data...) })
		end := now.UnixMilli()
		if want := times(nil, end-5000, end); !bytes.Contains(got, want) {
			t.Errorf("clock set by %v: no point of the last 5 seconds", by)
		}
	}
}

// TestClockSetBack: after the clock was set back by more than ten minutes, increments have
// the time of the clock again, and the interval in which they happened.
func TestClockSetBack(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	st := store.New(store.Options{Now: func() time.Time { return now }})
	s, err := New(Config{Options: sinkqueue.Options{Store: st}, Transport: &receiver{}, Delta: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		by         time.Duration
		start, end time.Duration // of the points
	}{
		{5 * time.Second, 0, 5 * time.Second},
		{-time.Minute, 5 * time.Second, 5*time.Second + time.Millisecond},
		{-time.Hour, -time.Hour - 55*time.Second - time.Millisecond, -time.Hour - 55*time.Second},
		{5 * time.Second, -time.Hour - 55*time.Second, -time.Hour - 50*time.Second},
	} {
		st.Root().Counter("a").Inc()
		now = now.Add(tt.by)
		tick(t, st, s)
		var got []byte
		s.queue.Take(func(data []byte, _ int) { got = append(got, data...) })
		begin := time.UnixMilli(1_800_000_000_000)
		if want := times(nil, begin.Add(tt.start).UnixMilli(), begin.Add(tt.end).UnixMilli()); !bytes.Contains(got, want) {
			t.Errorf("clock set by %v: no point from %v to %v", tt.by, tt.start, tt.end)
		}
	}
}
