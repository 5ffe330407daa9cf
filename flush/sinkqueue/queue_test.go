package sinkqueue_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// target is a destination that can fail. Packets are lines of key:increment.
type target struct {
	mu   sync.Mutex
	err  error
	sent int // bytes that count as sent in spite of err
	got  []string
	at   []time.Time // of attempts
}

func (r *target) send(_ context.Context, data []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = append(r.at, time.Now())
	if r.err != nil {
		r.got = append(r.got, string(data[:r.sent]))
		return r.sent, r.err
	}
	r.got = append(r.got, string(data))
	return len(data), nil
}

func (r *target) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

func (r *target) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.got, "|")
}

func increments(data []byte, yield func([]byte, uint64)) {
	for line := range bytes.Lines(data) {
		key, n, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(":"))
		v, err := strconv.ParseUint(string(n), 10, 64)
		if err == nil {
			yield(key, v)
		}
	}
}

// queue returns a running queue, and a function that closes it and waits.
func queue(t *testing.T, r *target, change func(*sinkqueue.Config)) (*sinkqueue.Queue, func(name string) uint64, func()) {
	t.Helper()
	st := store.New(store.Options{})
	cfg := sinkqueue.Config{Options: sinkqueue.Options{Name: "out", Store: st}, Send: r.send, Increments: increments}
	if change != nil {
		change(&cfg)
	}
	q := sinkqueue.New(cfg)
	var done sync.WaitGroup
	done.Go(func() { q.Run(t.Context()) })
	metric := func(name string) uint64 {
		v := st.View()
		defer v.Close()
		c := v.ByName(store.Scalars)
		for c.Next() {
			if strings.HasPrefix(c.Name(), "sink."+name) {
				return c.Uint()
			}
		}
		t.Errorf("no metric %s", name)
		return 0
	}
	return q, metric, func() { q.Close(); done.Wait() }
}

var errDown = errors.New("down")

func TestTimeOfTheLastPacket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &target{}
		q, _, stop := queue(t, r, nil)
		if at := q.Delivery().LastSent; !at.IsZero() {
			t.Errorf("sent at %v before the first packet", at)
		}
		time.Sleep(time.Minute)
		q.Add([]byte("a:1\n"), 1)
		synctest.Wait()
		if at := q.Delivery().LastSent; !at.Equal(time.Now()) {
			t.Errorf("sent at %v, want %v", at, time.Now())
		}
		for i, err := range []error{sinkqueue.ErrRefused, nil} {
			r.fail(err)
			time.Sleep(100 * time.Millisecond)
			q.Add([]byte("a:1\n"), 1)
			synctest.Wait()
			if d := q.Delivery(); d.LastSent.After(d.LastErrorAt) != (err == nil) {
				t.Errorf("packet %d: sent at %v, error at %v", i+1, d.LastSent, d.LastErrorAt)
			}
		}
		stop()
	})
}

func TestStatsWithoutANameAreCounted(t *testing.T) {
	q, metric, stop := queue(t, &target{}, nil)
	defer stop()
	q.Skipped()
	q.Skipped()
	if n := metric("skipped_names"); n != 2 {
		t.Errorf("%d stats were skipped, want 2", n)
	}
}

func TestRetriesBackOffAndKeepTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &target{err: errDown}
		q, metric, stop := queue(t, r, nil)
		q.Add([]byte("a:1\n"), 1)
		q.Add([]byte("b:2\n"), 1)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if s := q.Delivery(); s.Packets != 2 || s.Bytes != 8 || s.LastError != errDown || !s.NextRetry.After(time.Now()) {
			t.Errorf("%+v", s)
		}
		for i := 1; i < len(r.at); i++ {
			base := min(sinkqueue.MinRetry<<(i-1), sinkqueue.MaxRetry)
			if d := r.at[i].Sub(r.at[i-1]); d < base*8/10 || d > base*12/10 {
				t.Errorf("attempt %d after %v, want %v and a fifth either way", i, d, base)
			}
		}
		r.fail(nil)
		time.Sleep(time.Minute)
		stop()
		if got := strings.TrimLeft(r.text(), "|"); got != "a:1\n|b:2\n" {
			t.Errorf("sent %q", got)
		}
		if metric("packets") != 2 || metric("metrics") != 2 || metric("bytes") != 8 || metric("retries") == 0 || metric("queue_bytes") != 0 {
			t.Error("metrics are wrong")
		}
	})
}

func TestDroppedIncrementsAreOwed(t *testing.T) {
	for _, tt := range []struct {
		name    string
		change  func(*sinkqueue.Config)
		want    map[string]uint64
		lost    uint64
		dropped uint64 // packets
	}{
		{"bytes", func(c *sinkqueue.Config) { c.QueueBytes = 9 }, map[string]uint64{"a": 1}, 0, 1},
		{"age", func(c *sinkqueue.Config) { c.QueueAge = time.Minute }, map[string]uint64{"a": 4, "b": 2}, 0, 3},
		{"series", func(c *sinkqueue.Config) { c.QueueAge, c.Series = time.Minute, 1 }, map[string]uint64{"a": 4}, 2, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &target{err: errDown}
				q, metric, stop := queue(t, r, tt.change)
				for _, p := range []string{"a:1\n", "b:2\n", "a:3\n"} {
					q.Add([]byte(p), 2)
					synctest.Wait()
				}
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if got := fmt.Sprint(q.Owed()); got != fmt.Sprint(tt.want) {
					t.Errorf("owed %s, want %v", got, tt.want)
				}
				if q.Owed() != nil {
					t.Error("owed twice")
				}
				if got := metric("lost_increments"); got != tt.lost {
					t.Errorf("%d increments lost, want %d", got, tt.lost)
				}
				if packets, metrics := metric("dropped_packets"), metric("dropped_metrics"); packets != tt.dropped || metrics != 2*tt.dropped {
					t.Errorf("%d packets with %d metrics dropped, want %d with 2 each", packets, metrics, tt.dropped)
				}
				stop()
			})
		})
	}
}

func TestAmbiguousPacketsAreCounted(t *testing.T) {
	for _, resend := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := &target{err: fmt.Errorf("timeout: %w", sinkqueue.ErrAmbiguous), sent: 4}
			q, metric, stop := queue(t, r, func(c *sinkqueue.Config) { c.Resend = resend })
			q.Add([]byte("a:1\nb:2\n"), 2)
			synctest.Wait()
			r.fail(nil)
			time.Sleep(time.Second)
			stop()
			want := "a:1\n"
			if resend {
				want = "a:1\n|b:2\n"
			}
			if r.text() != want || metric("ambiguous_packets") != 1 || q.Owed() != nil {
				t.Errorf("resend %t: sent %q, %d ambiguous", resend, r.text(), metric("ambiguous_packets"))
			}
		})
	}
}

func TestRefusedPacketsAreLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &target{err: sinkqueue.ErrRefused}
		q, metric, stop := queue(t, r, nil)
		q.Add([]byte("a:5\n"), 1)
		stop()
		if metric("lost_packets") != 1 || metric("lost_increments") != 5 || q.Owed() != nil {
			t.Error("a refused packet was not counted as lost")
		}
	})
}

func TestRestOfAPartlySentPacketIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &target{err: errDown, sent: 4}
		q, _, stop := queue(t, r, nil)
		q.Add([]byte("a:1\nb:2\n"), 2)
		synctest.Wait()
		r.fail(nil)
		time.Sleep(time.Second)
		stop()
		if r.text() != "a:1\n|b:2\n" {
			t.Errorf("sent %q", r.text())
		}
	})
}

func TestCloseSendsTheRestAndGivesUpAtAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := &target{}
		q, _, stop := queue(t, r, nil)
		q.Add([]byte("a:1\n"), 1)
		q.Add([]byte("b:1\n"), 1)
		stop()
		if r.text() != "a:1\n|b:1\n" {
			t.Errorf("sent %q", r.text())
		}
		down := &target{err: errDown}
		q, metric, stop := queue(t, down, nil)
		q.Add([]byte("a:1\n"), 1)
		stop()
		if d := time.Since(began); d > time.Second || metric("dropped_packets") != 1 || metric("lost_increments") != 1 || q.Owed() != nil {
			t.Errorf("closed after %v with %d packets dropped and %d increments lost", d, metric("dropped_packets"), metric("lost_increments"))
		}
		q.Add([]byte("a:2\n"), 1) // too late
		if metric("dropped_packets") != 2 || metric("lost_increments") != 3 || metric("queue_bytes") != 0 {
			t.Errorf("a late packet: %d packets dropped and %d increments lost", metric("dropped_packets"), metric("lost_increments"))
		}
	})
}

// TestLastPacketsSurviveOneError: a receiver that was restarted fails the first attempt over
// the old connection. That must not end a closed queue. A request for a pause does.
func TestLastPacketsSurviveOneError(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fails []bool // attempts
		err   error
		sent  string
	}{
		{"once", []bool{true}, errDown, "a b c "},
		{"now and then", []bool{true, false, true}, errDown, "a b c "},
		{"twice", []bool{false, true, true}, errDown, "a "},
		{"busy", []bool{false, true}, &sinkqueue.Wait{After: time.Second, Err: errDown}, "a "},
	} {
		sent := ""
		q := sinkqueue.New(sinkqueue.Config{
			Options: sinkqueue.Options{Name: "out", Store: store.New(store.Options{})},
			Send: func(_ context.Context, data []byte) (int, error) {
				fails := len(tt.fails) > 0 && tt.fails[0]
				tt.fails = tt.fails[min(1, len(tt.fails)):]
				if fails {
					return 0, tt.err
				}
				sent += string(data)
				return len(data), nil
			},
		})
		for _, p := range []string{"a ", "b ", "c "} {
			q.Add([]byte(p), 1)
		}
		q.Close()
		q.Run(t.Context())
		if d := q.Delivery(); sent != tt.sent || d.Packets != 0 || int(d.Dropped) != 3-len(sent)/2 {
			t.Errorf("%s: sent %q, %d packets dropped; want %q", tt.name, sent, d.Dropped, tt.sent)
		}
	}
}

// TestNothingIsSentAfterTheEnd: the context ends while the first packets are sent, whatever
// becomes of them.
func TestNothingIsSentAfterTheEnd(t *testing.T) {
	for name, err := range map[string]error{
		"sent": nil, "down": errDown, "refused": sinkqueue.ErrRefused, "ambiguous": sinkqueue.ErrAmbiguous, "together": nil,
	} {
		ctx, cancel := context.WithCancel(t.Context())
		attempts := 0
		cfg := sinkqueue.Config{
			Options: sinkqueue.Options{Name: "out", Store: store.New(store.Options{})},
			Send:    func(context.Context, []byte) (int, error) { attempts++; cancel(); return 0, err },
		}
		if name == "together" {
			cfg.SendAll = func([][]byte) bool { attempts++; cancel(); return true }
		}
		q := sinkqueue.New(cfg)
		q.AddAll([]sinkqueue.Packed{{Data: []byte("a:1\n"), Metrics: 1}, {Data: []byte("b:1\n"), Metrics: 1}})
		q.Add([]byte("c:1\n"), 1)
		q.Run(ctx)
		if attempts != 1 {
			t.Errorf("%s: %d attempts, want 1", name, attempts)
		}
	}
}

func TestPanicOfTheSenderIsAmbiguous(t *testing.T) {
	panics := guardtest.New(t)
	var fuse guardtest.Fuse
	fuse.Light(1)
	r := &target{}
	q, metric, stop := queue(t, r, func(c *sinkqueue.Config) {
		c.Logger = panics.Logger()
		c.Send = func(ctx context.Context, data []byte) (int, error) {
			fuse.Burn()
			return r.send(ctx, data)
		}
	})
	q.Add([]byte("a:1\n"), 1)
	panics.Caught("send of a sink")
	q.Add([]byte("b:1\n"), 1)
	stop()
	if r.text() != "b:1\n" || metric("ambiguous_packets") != 1 {
		t.Errorf("sent %q, %d ambiguous", r.text(), metric("ambiguous_packets"))
	}
}

// TestNothingIsLostWhileTheTargetFlaps adds increments from several goroutines while
// sends fail, and adds owed increments again.
func TestNothingIsLostWhileTheTargetFlaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &target{}
		var n atomic.Int64
		q, metric, stop := queue(t, r, func(c *sinkqueue.Config) {
			c.QueueBytes = 64
			c.Send = func(ctx context.Context, data []byte) (int, error) {
				if n.Add(1)%3 != 0 {
					return 0, errDown
				}
				return r.send(ctx, data)
			}
		})
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 500 {
					q.Add([]byte("a:1\n"), 1)
					for key, n := range q.Owed() {
						q.Add(fmt.Appendf(nil, "%s:%d\n", key, n), 1)
					}
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
		all.Wait()
		stop()
		total := metric("lost_increments") // the rest in the end
		increments([]byte(strings.Join(r.got, "")), func(_ []byte, n uint64) { total += n })
		if total != 2000 {
			t.Errorf("%d increments arrived or were left, want 2000", total)
		}
	})
}

func TestFilter(t *testing.T) {
	f := sinkqueue.Filter{
		Include: match.List{match.Prefix("api.")}, Exclude: match.List{match.Suffix(".debug")}, Kinds: []store.Kind{store.KindCounter},
	}
	for _, tt := range []struct {
		kind store.Kind
		name string
		want bool
	}{
		{store.KindCounter, "api.hits", true},
		{store.KindCounter, "api.debug", false},
		{store.KindCounter, "db.hits", false},
		{store.KindGauge, "api.hits", false},
	} {
		if got := f.Allows(tt.kind, tt.name); got != tt.want {
			t.Errorf("%v %s: %t", tt.kind, tt.name, got)
		}
	}
	if all := (&sinkqueue.Filter{}); !all.Allows(store.KindGauge, "x") {
		t.Error("the zero filter does not allow all")
	}
}

func TestFilterOrigin(t *testing.T) {
	st := store.New(store.Options{})
	st.Scope("").Counter("own").Inc()
	received, err := st.Scope("").ScopeWith("", store.ScopeOptions{Network: true}).TryCounter("received")
	if err != nil {
		t.Fatal(err)
	}
	received.Inc()
	for want, f := range map[string]sinkqueue.Filter{
		"own received": {},
		"received":     {Origin: sinkqueue.Received},
		"own":          {Origin: sinkqueue.Own},
		"":             {Origin: sinkqueue.Own, Include: match.List{match.Exact("received")}},
	} {
		var names []string
		f.Used(st.View(), store.KindCounter, func(c *store.Cursor) { names = append(names, c.Name()) })
		slices.Sort(names)
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%+v: %q, want %q", f, got, want)
		}
	}
}

// TestMetricsAreDescribed: each metric of a queue has a help text, whatever its words.
func TestMetricsAreDescribed(t *testing.T) {
	for _, words := range []sinkqueue.Words{{}, {Scope: "relay", Tag: "target", Unit: "lines"}} {
		st := store.New(store.Options{})
		sinkqueue.New(sinkqueue.Config{Options: sinkqueue.Options{Name: "out", Store: st}, Send: (&target{}).send, Increments: increments, Words: words})
		v := st.View()
		n := 0
		for c := v.ByName(store.Scalars); c.Next(); n++ {
			if d := st.DescriptionOf(&c); !strings.HasSuffix(d.Help, ".") {
				t.Errorf("%s is described as %q", c.Name(), d.Help)
			}
		}
		v.Close()
		if n < 12 {
			t.Errorf("%d metrics", n)
		}
	}
}

// TestFilteredLists has stats that a filter leaves out before, between and behind others,
// in all lists of a snapshot.
func TestFilteredLists(t *testing.T) {
	st := store.New(store.Options{})
	for _, name := range []string{"a.debug", "b", "c.debug", "d", "e.debug"} {
		st.Root().Counter("c." + name).Add(3)
		st.Root().Gauge("g." + name).Set(4)
		st.Root().GaugeWithMode("hidden."+name, store.HiddenAccumulate).Set(4)
		st.Root().Histogram("h."+name, store.Unspecified).Record(5)
		st.Root().Counter("unused." + name)
	}
	snap := st.Flush(store.FlushOptions{})
	defer snap.Close()
	for _, kinds := range [][]store.Kind{nil, {store.KindCounter, store.KindGauge, store.KindHistogram}, {store.KindText}} {
		f := sinkqueue.Filter{Exclude: match.List{match.Suffix(".debug")}, Kinds: kinds}
		got := map[string][]string{}
		f.Counters(snap, func(c *store.Cursor, n uint64) { got["counters"] = append(got["counters"], fmt.Sprint(c.Name(), n)) })
		f.ChangedGauges(snap, func(c *store.Cursor) { got["gauges"] = append(got["gauges"], c.Name()) })
		f.Histograms(snap, func(c *store.Cursor, h *histogram.Snapshot) {
			got["histograms"] = append(got["histograms"], fmt.Sprint(c.Name(), h.Interval.Count()))
		})
		for _, k := range []store.Kind{store.KindCounter, store.KindGauge, store.KindHistogram} {
			f.Used(snap.View(), k, func(c *store.Cursor) { got["used"] = append(got["used"], c.Name()) })
		}
		want := map[string][]string{
			"counters": {"c.b3", "c.d3"}, "gauges": {"g.b", "g.d"}, "histograms": {"h.b1", "h.d1"},
			"used": {"c.b", "c.d", "g.b", "g.d", "h.b", "h.d"},
		}
		if len(kinds) == 1 {
			want = map[string][]string{}
		}
		if !maps.EqualFunc(got, want, slices.Equal) {
			t.Errorf("kinds %v: %q, want %q", kinds, got, want)
		}
	}
}

// TestStateOfShards: the state has the oldest packet and the next attempt of all shards,
// whichever has them, and Take gives packets of all shards by their age.
func TestStateOfShards(t *testing.T) {
	for first := range 3 {
		synctest.Test(t, func(t *testing.T) {
			q, metric, stop := queue(t, &target{err: errDown}, func(c *sinkqueue.Config) { c.Shards, c.QueueAge = 3, time.Hour })
			defer stop()
			if d := q.Delivery(); d.Packets != 0 || d.Age != 0 || !d.NextRetry.IsZero() || q.Shards() != 3 {
				t.Errorf("empty: %+v", d)
			}
			began := time.Now()
			for i := range 3 {
				q.AddTo((first+i)%3, fmt.Appendf(nil, "%c:1\n", 'a'+i), 2)
				time.Sleep(time.Second)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			d := q.Delivery()
			if d.Packets != 3 || d.Bytes != 12 || d.Metrics != 6 || d.Age != time.Since(began) {
				t.Errorf("%+v after %v", d, time.Since(began))
			}
			if wait := time.Until(d.NextRetry); wait <= 0 || wait > sinkqueue.MaxRetry*12/10 {
				t.Errorf("the next attempt is in %v", wait)
			}
			if got := time.Duration(metric("queue_age_seconds")) * time.Second; got > d.Age || got < d.Age-40*time.Second {
				t.Errorf("the gauge says %v", got)
			}
			q.Hold(t.Context())
			q.Release(false)
			var got string
			metrics := 0
			q.Take(func(data []byte, n int) { got += string(data); metrics += n })
			if want := "a:1\nb:1\nc:1\n"; got != want || metrics != 6 {
				t.Errorf("took %q with %d metrics, want %q", got, metrics, want)
			}
			if d := q.Delivery(); d.Packets != 0 || d.Bytes != 0 || d.Metrics != 0 || d.Age != 0 {
				t.Errorf("after Take: %+v", d)
			}
		})
	}
}

// TestNextRetryIsTheFirst: the state has the next attempt of all shards that wait after errors.
func TestNextRetryIsTheFirst(t *testing.T) {
	for fresh := range 3 {
		synctest.Test(t, func(t *testing.T) {
			q, _, stop := queue(t, &target{err: errDown}, func(c *sinkqueue.Config) { c.Shards, c.QueueAge = 3, time.Hour })
			defer stop()
			for shard := range 3 {
				if shard != fresh {
					q.AddTo(shard, []byte("a:1\n"), 1)
				}
			}
			time.Sleep(10 * time.Minute)
			q.AddTo(fresh, []byte("b:1\n"), 1)
			synctest.Wait()
			if wait := time.Until(q.Delivery().NextRetry); wait <= 0 || wait > sinkqueue.MinRetry*12/10 {
				t.Errorf("shard %d tries again in %v", fresh, wait)
			}
		})
	}
}

func ExampleQueue() {
	q := sinkqueue.New(sinkqueue.Config{
		Options: sinkqueue.Options{Name: "printer", Store: store.New(store.Options{})},
		Send: func(_ context.Context, data []byte) (int, error) {
			fmt.Printf("%s", data)
			return len(data), nil
		},
	})
	q.Add([]byte("orders:3|c\n"), 1)
	q.Close()
	q.Run(context.Background())
	// Output: orders:3|c
}

// TestWordsCountAndTake uses a queue that does not belong to a sink: part of a packet
// is sent, and what waits is taken away while an attempt is made.
func TestWordsCountAndTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &target{err: errDown, sent: 4}
		var st *store.Store
		q, _, stop := queue(t, r, func(c *sinkqueue.Config) {
			c.Words = sinkqueue.Words{Scope: "relay", Tag: "target", Unit: "lines"}
			c.Count, c.Increments, st = func(data []byte) int { return bytes.Count(data, []byte("\n")) }, nil, c.Store
		})
		q.Add([]byte("a:1\nb:2\n"), 2)
		synctest.Wait()
		q.Add([]byte("c:3\n"), 1)
		d := q.Delivery()
		if d.SentMetrics != 1 || d.Metrics != 2 || d.Bytes != 8 {
			t.Errorf("%d sent, %d lines and %d bytes wait; want 1, 2, 8", d.SentMetrics, d.Metrics, d.Bytes)
		}
		var taken []string
		q.Take(func(data []byte, lines int) { taken = append(taken, fmt.Sprint(string(data), lines)) })
		if got := strings.Join(taken, "|"); got != "b:2\n1|c:3\n1" || q.Delivery().Metrics != 0 || q.Delivery().Bytes != 0 {
			t.Errorf("took %q and left %+v", got, q.Delivery())
		}
		v := st.View()
		if c, ok := v.Find("relay.queue_bytes.target.out"); !ok || c.Uint() != 0 {
			t.Errorf("queue_bytes is shown: %t", ok)
		}
		v.Close()
		r.fail(nil)
		q.Add([]byte("d:4\n"), 1)
		attempts := len(r.at)
		q.Retry()
		synctest.Wait()
		if len(r.at) != attempts+1 || q.Delivery().SentMetrics != 2 {
			t.Errorf("%d attempts after Retry, %d lines sent", len(r.at)-attempts, q.Delivery().SentMetrics)
		}
		stop()
		v = st.View()
		defer v.Close()
		for c := v.ByName(store.Scalars); c.Next(); {
			if !strings.HasPrefix(c.Name(), "relay.") || !strings.HasSuffix(c.Name(), ".target.out") || strings.Contains(c.Name(), "increments") {
				t.Errorf("metric %s", c.Name())
			}
		}
	})
}

// TestPacketsWakeTheirShard: when it is idle, and after Hold.
func TestPacketsWakeTheirShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &target{}
		q, _, stop := queue(t, r, nil)
		synctest.Wait()
		q.Add([]byte("a:1\n"), 1)
		synctest.Wait()
		q.Add([]byte("b:1\n"), 1)
		synctest.Wait()
		if r.text() != "a:1\n|b:1\n" {
			t.Errorf("sent %q", r.text())
		}
		q.Hold(t.Context())
		q.Add([]byte("c:1\n"), 1)
		q.Add([]byte("d:1\n"), 1)
		synctest.Wait()
		q.Release(true)
		synctest.Wait()
		if r.text() != "a:1\n|b:1\n|c:1\n|d:1\n" {
			t.Errorf("sent %q", r.text())
		}
		stop()
	})
}

// TestManyPacketsAtOnce adds packets of three sizes together. SendAll gets what it can
// send, refuses one call, and panics in another.
func TestManyPacketsAtOnce(t *testing.T) {
	panics := guardtest.New(t)
	r := &target{}
	var runs []string
	q, metric, stop := queue(t, r, func(c *sinkqueue.Config) {
		c.Logger = panics.Logger()
		c.SendAll = func(packets [][]byte) bool {
			run := string(bytes.Join(packets, []byte("|")))
			runs = append(runs, strings.ReplaceAll(run, "\n", ""))
			if strings.Contains(run, "refuse") {
				return false
			}
			if strings.Contains(run, "panic") {
				panic("test")
			}
			return true
		}
	})
	q.AddAll(nil)
	q.AddAll([]sinkqueue.Packed{{[]byte("a:1\n"), 1}, {[]byte("refuse2:1\n"), 1}, {[]byte("b:1\n"), 1}, {[]byte("refuse1:1\n"), 1}, {[]byte("cc:1\n"), 1}})
	q.AddAll([]sinkqueue.Packed{{[]byte("panic:5\n"), 2}, {[]byte("z:1\n"), 1}, {[]byte("panik:6\n"), 2}, {[]byte("y:1\n"), 1}})
	panics.Caught("send of many packets of a sink")
	stop()
	if got, want := strings.Join(runs, " "), "refuse2:1|refuse1:1|cc:1 a:1|b:1 panic:5|panik:6|z:1"; got != want {
		t.Errorf("sent together: %s, want %s", got, want)
	}
	if got, want := r.text(), "refuse2:1\n|refuse1:1\n|cc:1\n|y:1\n"; got != want {
		t.Errorf("sent alone: %q, want %q", got, want)
	}
	for name, want := range map[string]uint64{"packets": 6, "metrics": 6, "bytes": 10 + 10 + 5 + 4 + 4 + 4, "ambiguous_packets": 3, "ambiguous_metrics": 5, "ambiguous_increments": 12, "dropped_packets": 0, "send_errors": 1} {
		if got := metric(name); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	if d := q.Delivery(); d.Bytes != 0 || d.Metrics != 0 || d.Packets != 0 {
		t.Errorf("%d bytes, %d metrics, %d packets wait", d.Bytes, d.Metrics, d.Packets)
	}
}
