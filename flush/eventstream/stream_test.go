package eventstream_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/eventstream"
	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/store"
)

// page is the client side of a stream, which reads or stalls.
type page struct {
	mu     sync.Mutex
	unsent []byte // written, but not flushed
	buf    bytes.Buffer
	stuck  chan struct{} // nil: takes everything at once
	err    error

	writeErr error // of writes only
}

func (p *page) Write(b []byte) (int, error) {
	if p.stuck != nil {
		<-p.stuck
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil || p.writeErr != nil {
		return 0, cmp.Or(p.writeErr, p.err)
	}
	p.unsent = append(p.unsent, b...)
	return len(b), nil
}

func (p *page) Flush() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.buf.Write(p.unsent)
	p.unsent = nil
	return p.err
}

func (p *page) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.String()
}

// take returns the bytes received since the last call.
func (p *page) take() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.buf.String()
	p.buf.Reset()
	return s
}

// world is a store with a stream. Use it in a bubble of synctest.
type world struct {
	t      *testing.T
	store  *store.Store
	stream *eventstream.Stream
}

func newWorld(t *testing.T, cfg eventstream.Config) *world {
	if cfg.Now == nil {
		cfg.Now = func() time.Time { return time.Unix(1_700_000_000, 5e8) }
	}
	return &world{t, store.New(store.Options{}), eventstream.New(cfg)}
}

func (w *world) flush() {
	w.t.Helper()
	snap := w.store.Flush(store.FlushOptions{})
	if err := w.stream.Flush(snap); err != nil {
		w.t.Error(err)
	}
	synctest.Wait()
	snap.Close()
	if n := w.store.OpenViews(); n != 0 {
		w.t.Errorf("%d views are open after a flush", n)
	}
}

// listen connects a client; end disconnects it and returns what Serve did.
func (w *world) listen(p *page) (end func() error) {
	w.t.Helper()
	c, err := w.stream.Subscribe()
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

func (w *world) add(cluster, stat string, n uint64) {
	w.store.Scope("cluster." + cluster).Counter(stat).Add(n)
}

// command returns the command event about a cluster.
func command(t *testing.T, text, cluster string) map[string]any {
	t.Helper()
	for event := range strings.SplitSeq(text, "\n\n") {
		body, ok := strings.CutPrefix(event, "data: ")
		if !ok {
			continue
		}
		var m map[string]any
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			t.Fatalf("%v in %q", err, body)
		}
		if m["type"] == "HystrixCommand" && m["name"] == cluster {
			return m
		}
	}
	return nil
}

// counts returns some numbers of a command: requests, errors, success,
// rejected, timeouts, error percentage.
func counts(m map[string]any) string {
	if m == nil {
		return "none"
	}
	var out []string
	for _, key := range []string{"requestCount", "errorCount", "rollingCountSuccess", "rollingCountSemaphoreRejected", "rollingCountTimeout", "errorPercentage"} {
		out = append(out, fmt.Sprint(m[key]))
	}
	return strings.Join(out, " ")
}

func TestPayload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, eventstream.Config{
			Interval: 1500 * time.Millisecond,
			Cluster: func(statName string) (string, uint64) {
				if statName == "busy" {
					return "busy", 77
				}
				return statName, 1024
			},
		})
		w.store.Scope("cluster.busy").GaugeWithMode("membership_total", store.NeverImport).Set(3)
		h := w.store.Scope("cluster.busy").Histogram("upstream_rq_time", store.Milliseconds)
		w.store.Scope(`cluster.od"d<b>`).GaugeWithMode("membership_total", store.NeverImport).Set(0)
		w.store.Scope("http.ingress").Counter("downstream_rq_2xx").Inc()
		p := &page{}
		defer w.listen(p)()
		w.flush()
		golden.Check(t, "first", []byte(p.take()))

		w.add("busy", "upstream_rq_2xx", 70)
		w.add("busy", "upstream_rq_5xx", 9)
		w.add("busy", "upstream_rq_4xx", 4)
		w.add("busy", "retry.upstream_rq_5xx", 2)
		w.add("busy", "retry.upstream_rq_4xx", 1)
		w.add("busy", "upstream_rq_timeout", 3)
		w.add("busy", "upstream_rq_per_try_timeout", 2)
		w.add("busy", "upstream_rq_pending_overflow", 6)
		w.add("busy", "upstream_rq_total", 1000)
		for v := range uint64(9) {
			h.Record(10 * (v + 1))
		}
		w.flush()
		got := p.take()
		golden.Check(t, "busy", []byte(got))
		// errors 9+2+4+1-3 = 13, timeouts 5, success 70, rejected 6: 94
		if c := counts(command(t, got, "busy")); c != "94 13 70 6 5 25" {
			t.Errorf("counts %s", c)
		}
	})
}

func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, eventstream.Config{Buckets: 3})
		w.add("a", "upstream_rq_2xx", 1000) // before anybody listens
		p := &page{}
		end := w.listen(p)
		next := func(n uint64, want string) {
			t.Helper()
			w.add("a", "upstream_rq_2xx", n)
			w.flush()
			if got := counts(command(t, p.take(), "a")); got != want+" 0 "+want+" 0 0 0" {
				t.Errorf("after %d more: %s, want %s", n, got, want)
			}
		}
		next(5, "0") // the first sample fills the window
		next(5, "5")
		next(10, "15")
		next(20, "35")
		next(0, "30") // the first 5 are out
		next(0, "20")
		w.store.ResetCounters()
		next(0, "0")
		next(3, "0")
		next(3, "0")
		next(3, "9") // the window begins at the reset
		next(3, "9")
		if err := end(); err != nil {
			t.Error(err)
		}
		// Without a client nothing is sampled, so the next one begins at 0.
		w.add("a", "upstream_rq_2xx", 100)
		w.flush()
		defer w.listen(p)()
		p.take()
		next(1, "0")
		next(1, "1")
	})
}

// TestDefaultWindow: unless it is said otherwise the window has ten flushes.
func TestDefaultWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, eventstream.Config{})
		p := &page{}
		defer w.listen(p)()
		for i := range 15 {
			w.add("a", "upstream_rq_2xx", 1)
			w.flush()
			want := fmt.Sprint(min(i, 10))
			if got := counts(command(t, p.take(), "a")); got != want+" 0 "+want+" 0 0 0" {
				t.Errorf("flush %d: %s, want %s", i, got, want)
			}
		}
	})
}

// TestDefaults shows an event of a stream without settings, at the time of the bubble.
func TestDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t, store.New(store.Options{}), eventstream.New(eventstream.Config{})}
		w.add("a", "upstream_rq_2xx", 1)
		p := &page{}
		defer w.listen(p)()
		w.flush()
		got := command(t, p.take(), "a")
		if got["currentTime"] != float64(time.Now().Unix()) || got["propertyValue_metricsRollingStatisticalWindowInMilliseconds"] != 5000. ||
			got["propertyValue_executionIsolationSemaphoreMaxConcurrentRequests"] != 1024. {
			t.Errorf("event %v", got)
		}
	})
}

// TestEndedStats ends a stat of a cluster and creates it again: it counts from 0.
func TestEndedStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, eventstream.Config{Buckets: 2})
		w.add("a", "upstream_rq_2xx", 1)
		failures := func(n uint64) *store.Scope {
			sc := w.store.Scope("cluster.a")
			sc.Counter("upstream_rq_5xx").Add(n)
			return sc
		}
		p := &page{}
		defer w.listen(p)()
		sc := failures(5)
		w.flush()
		sc.Close()
		for range 3 {
			w.flush()
		}
		p.take()
		failures(3)
		w.flush()
		if got := counts(command(t, p.take(), "a")); got != "3 3 0 0 0 100" {
			t.Errorf("counts %s", got)
		}
	})
}

// TestNewSession lets the last client leave and another one come between two
// flushes.
func TestNewSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, eventstream.Config{})
		w.add("a", "upstream_rq_2xx", 1)
		p := &page{}
		end := w.listen(p)
		w.flush()
		w.add("a", "upstream_rq_2xx", 8)
		_ = end()
		p.take()
		defer w.listen(p)()
		w.flush()
		if got := counts(command(t, p.take(), "a")); got != "0 0 0 0 0 0" {
			t.Errorf("the new client begins with %s", got)
		}
	})
}

func TestClusterComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, eventstream.Config{})
		p := &page{}
		defer w.listen(p)()
		sc := w.store.Scope("cluster.gone")
		sc.Counter("upstream_rq_2xx").Add(5)
		w.flush()
		sc.Counter("upstream_rq_2xx").Add(5)
		p.take()
		w.flush()
		if got := counts(command(t, p.take(), "gone")); got != "5 0 5 0 0 0" {
			t.Errorf("before: %s", got)
		}
		sc.Close()
		w.flush()
		if got := p.take(); got != ":\n\n" {
			t.Errorf("a removed cluster shows: %q", got)
		}
		w.add("gone", "upstream_rq_2xx", 100)
		w.flush()
		if got := counts(command(t, p.take(), "gone")); got != "0 0 0 0 0 0" {
			t.Errorf("after its return: %s", got)
		}
	})
}

func TestWhichClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, eventstream.Config{})
		w.store.Scope("cluster.dotted.name.membership_total").Counter("x").Inc()
		w.store.Scope("cluster.dotted.name").GaugeWithMode("membership_total", store.NeverImport).Set(1)
		w.add("dotted.name", "upstream_rq_2xx", 1)
		w.add("plain", "canary.upstream_rq_2xx", 1)
		w.add("plain", "zone.a.b.upstream_rq_2xx", 1)
		w.add("plain", "upstream_rq_2xx", 1)
		w.add("nothing", "upstream_cx_total", 1)
		w.store.Scope("cluster.wrong").Gauge("upstream_rq_2xx").Set(1)
		w.store.Scope("cluster.hist").Histogram("upstream_rq_2xx", store.Unspecified).Record(1)
		w.store.ScopeWith("", store.ScopeOptions{Network: true}).Counter("cluster.forged.upstream_rq_2xx").Inc()
		w.store.Root().Counter("cluster.upstream_rq_2xx").Inc()
		w.store.Root().Counter("cluster..upstream_rq_2xx").Inc()
		p := &page{}
		defer w.listen(p)()
		w.flush()
		var names []string
		for event := range strings.SplitSeq(p.take(), "\n\n") {
			if _, rest, ok := strings.Cut(event, `"HystrixCommand", "name": "`); ok {
				name, _, _ := strings.Cut(rest, `"`)
				names = append(names, name)
			}
		}
		if got := strings.Join(names, " "); got != "dotted.name plain" {
			t.Errorf("clusters %q", got)
		}
	})
}

// TestFailedWrite: a write that fails ends the client, though a later flush of the
// connection would succeed.
func TestFailedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, eventstream.Config{})
		w.add("a", "upstream_rq_2xx", 1)
		broken := errors.New("broken pipe")
		end := w.listen(&page{writeErr: broken})
		w.flush()
		if err := end(); !errors.Is(err, broken) {
			t.Errorf("ended by %v", err)
		}
	})
}

func TestLimitOfClients(t *testing.T) {
	s := eventstream.New(eventstream.Config{})
	var all []*eventstream.Client
	for range eventstream.DefaultClients {
		c, err := s.Subscribe()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	var full *eventstream.FullError
	if _, err := s.Subscribe(); !errors.As(err, &full) || full.Clients != 16 || err.Error() != "eventstream: 16 clients listen, which is the limit" {
		t.Errorf("one more client: %v", err)
	}
	all[3].Close()
	all[3].Close()
	if _, err := s.Subscribe(); err != nil {
		t.Errorf("after one left: %v", err)
	}
	if _, err := s.Subscribe(); err == nil {
		t.Error("closing twice made two places")
	}
	endless := eventstream.New(eventstream.Config{Clients: -1})
	for range 2 * eventstream.DefaultClients {
		if _, err := endless.Subscribe(); err != nil {
			t.Errorf("without a limit: %v", err)
		}
	}
}

// TestSlowClient stops reading. It must be dropped with a last comment, and
// neither the flushes nor the other client may notice.
func TestSlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, eventstream.Config{QueueBytes: 10_000})
		w.add("a", "upstream_rq_2xx", 1)
		slow, quick := &page{stuck: make(chan struct{})}, &page{}
		c, err := w.stream.Subscribe()
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- c.Serve(slow, nil) }()
		defer w.listen(quick)()
		for range 50 {
			w.flush()
		}
		if n := strings.Count(quick.text(), "HystrixCommand"); n != 50 {
			t.Errorf("the other client got %d events, want 50", n)
		}
		close(slow.stuck)
		if err := <-done; err != nil {
			t.Error(err)
		}
		got := slow.text()
		if !strings.HasSuffix(got, "\n\n: dropped: this client reads too slowly\n\n") {
			t.Errorf("the stream ends with %q", got[max(0, len(got)-80):])
		}
		if n := strings.Count(got, "HystrixCommand"); n != 1 {
			t.Errorf("the slow client got %d events, want the one that was under way", n)
		}
	})
}

// TestLateClient falls behind by some flushes and gets them all without another one.
func TestLateClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, eventstream.Config{})
		w.add("a", "upstream_rq_2xx", 1)
		p := &page{stuck: make(chan struct{})}
		defer w.listen(p)()
		for range 4 {
			w.flush()
		}
		close(p.stuck)
		synctest.Wait()
		if n := strings.Count(p.text(), "HystrixCommand"); n != 4 {
			t.Errorf("%d events of 4", n)
		}
	})
}

// TestFullQueue fills the queue of a client to its last byte, and then exceeds it.
func TestFullQueue(t *testing.T) {
	for _, spare := range []int{0, -1} {
		synctest.Test(t, func(t *testing.T) {
			const bytes = len(":\n\n") // of a flush without clusters
			w := newWorld(t, eventstream.Config{QueueBytes: 2*bytes + spare})
			p := &page{stuck: make(chan struct{})}
			defer w.listen(p)()
			w.flush()
			w.flush()
			close(p.stuck)
			synctest.Wait()
			if dropped := strings.Contains(p.text(), "dropped"); dropped != (spare < 0) {
				t.Errorf("%d bytes of room: dropped %t", spare, dropped)
			}
		})
	}
}

// TestLargePayload has more clusters than fit in the queue: who keeps up gets
// them all the same.
func TestLargePayload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, eventstream.Config{QueueBytes: 1000})
		for i := range 20 {
			w.add(fmt.Sprint("c", i), "upstream_rq_2xx", 1)
		}
		p := &page{}
		defer w.listen(p)()
		for range 3 {
			w.flush()
			if n := strings.Count(p.take(), "HystrixCommand"); n != 20 {
				t.Fatalf("%d clusters", n)
			}
		}
	})
}

func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, eventstream.Config{Interval: time.Minute})
		p := &page{}
		defer w.listen(p)()
		time.Sleep(16 * time.Second)
		synctest.Wait()
		if got := p.take(); got != ":\n\n:\n\n:\n\n" {
			t.Errorf("in 16 s without a flush: %q", got)
		}
	})
	// Flushes that come each 5 s, a little late, are heartbeat enough.
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, eventstream.Config{Interval: 5 * time.Second})
		p := &page{}
		defer w.listen(p)()
		for range 3 {
			time.Sleep(5*time.Second + 10*time.Millisecond)
			w.flush()
		}
		if got := p.take(); got != ":\n\n:\n\n:\n\n" {
			t.Errorf("after 3 flushes: %q", got)
		}
	})
}

func TestEnds(t *testing.T) {
	t.Run("stream", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, eventstream.Config{})
			c, err := w.stream.Subscribe()
			if err != nil {
				t.Fatal(err)
			}
			began, done := time.Now(), make(chan error, 1)
			go func() { done <- c.Serve(&page{}, nil) }()
			synctest.Wait()
			w.stream.Close()
			w.stream.Close()
			if err := <-done; err != nil || time.Since(began) > 0 {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		})
	})
	t.Run("client", func(t *testing.T) {
		gone := errors.New("gone")
		c, err := eventstream.New(eventstream.Config{}).Subscribe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Serve(&page{err: gone}, nil); !errors.Is(err, gone) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("later", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, eventstream.Config{})
			p := &page{}
			end := w.listen(p)
			p.mu.Lock()
			p.err = errors.New("gone")
			p.mu.Unlock()
			w.flush()
			if err := end(); err == nil {
				t.Error("no error although the client is gone")
			}
		})
	})
	t.Run("heartbeat", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, eventstream.Config{})
			p := &page{}
			end := w.listen(p)
			p.mu.Lock()
			p.err = errors.New("gone")
			p.mu.Unlock()
			time.Sleep(time.Minute)
			if err := end(); err == nil {
				t.Error("no error although the client is gone")
			}
		})
	})
}

// TestNobodyListens makes sure that a flush without clients touches nothing.
func TestNobodyListens(t *testing.T) {
	st := store.New(store.Options{})
	st.Root().Counter("cluster.a.upstream_rq_2xx").Inc()
	s := eventstream.New(eventstream.Config{})
	snap := st.Flush(store.FlushOptions{})
	defer snap.Close()
	if n := testing.AllocsPerRun(100, func() { _ = s.Flush(snap) }); n > 0 {
		t.Errorf("%v allocations in a flush that nobody listens to", n)
	}
}

// TestRace has clients come and go during flushes.
func TestRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, eventstream.Config{})
		w.add("a", "upstream_rq_2xx", 1)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 50 {
					c, err := w.stream.Subscribe()
					if err != nil {
						t.Error(err)
						return
					}
					stop := make(chan struct{})
					var served sync.WaitGroup
					served.Go(func() { _ = c.Serve(&page{}, stop) })
					close(stop)
					served.Wait()
					c.Close()
				}
			})
		}
		for range 50 {
			snap := w.store.Flush(store.FlushOptions{})
			if err := w.stream.Flush(snap); err != nil {
				t.Error(err)
			}
			snap.Close()
		}
		all.Wait()
	})
}
