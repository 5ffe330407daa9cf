package remotewrite

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
	"go.uber.org/goleak"

	"github.com/statsd-admin/statsd-admin/flush/sinkhttp"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/flush/sinktest"
	"github.com/statsd-admin/statsd-admin/internal/protobuf"
	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fill writes one stat of each sort.
func fill(st *store.Store) {
	st.Describe("requests", store.Description{Help: "Requests so far.", Unit: "requests"})
	st.Root().Counter("requests", tags.Tag{Name: "zone", Value: "b"}, tags.Tag{Name: "code", Value: "200"}).Add(7)
	st.Root().Gauge("unused")
	n := st.ScopeWith("", store.ScopeOptions{Network: true})
	n.FloatGauge("shop.temp", tags.Tag{Name: "job", Value: "own"}, tags.Tag{Name: "bad\xff"}).Set(-2.5)
	h := n.Histogram("shop.rt", store.Milliseconds)
	h.RecordN(100, 3)
	h.Record(3_000_000)
	_ = st.Root().FloatGauge("half").Set(0.5)
}

func TestSeries(t *testing.T) {
	external := []tags.Tag{{Name: "instance", Value: "a:1"}, {Name: "job", Value: "statsd"}}
	for _, tt := range []struct {
		version Version
		form    Histograms
		want    []string
	}{
		{Version2, ByVersion, []string{
			"edge_proxy_half instance=a:1 job=statsd: 0.5@11000 [2]",
			"edge_proxy_requests code=200 instance=a:1 job=statsd zone=b: 1000>7@11000 [1 Requests so far. requests]",
			"edge_shop_rt instance=a:1 job=statsd: 1000>4@11000 [3]",
			"edge_shop_temp bad_=true instance=a:1 job=own: -2.5@11000 [2]",
		}},
		{Version1, ByVersion, []string{
			"edge_proxy_half instance=a:1 job=statsd: 0.5@11000 []",
			"edge_proxy_requests code=200 instance=a:1 job=statsd zone=b: 0@1000 7@11000 []",
			"edge_shop_rt_bucket instance=a:1 job=statsd le=+Inf: 0@1000 4@11000 []",
			"edge_shop_rt_bucket instance=a:1 job=statsd le=0.05: 0@1000 0@11000 []",
			"edge_shop_rt_bucket instance=a:1 job=statsd le=0.1: 0@1000 3@11000 []",
			"edge_shop_rt_count instance=a:1 job=statsd: 0@1000 4@11000 []",
			"edge_shop_rt_sum instance=a:1 job=statsd: 0@1000 3000.3@11000 []",
			"edge_shop_temp bad_=true instance=a:1 job=own: -2.5@11000 []",
		}},
		{Version2, Both, []string{"edge_shop_rt instance=a:1 job=statsd: 1000>4@11000 [3]", "edge_shop_rt_count instance=a:1 job=statsd: 1000>4@11000 [3]"}},
		{Version1, Native, []string{"edge_shop_rt instance=a:1 job=statsd: 4@11000 []"}},
	} {
		t.Run(fmt.Sprint(tt.version, tt.form), func(t *testing.T) {
			r := receive(t, Version2)
			w := write(t, Config{
				Options: sinkqueue.Options{Prefix: "edge", Tags: external}, HTTP: to(r.url), Version: tt.version, Histograms: tt.form,
			}, store.Options{
				Naming:     naming.Rules{NetworkSeconds: true},
				Histograms: []store.HistogramSetting{{Match: func(string) bool { return true }, Buckets: []float64{50, 100}}},
			})
			w.now = time.UnixMilli(1000)
			fill(w.st)
			w.tick()
			w.stop()
			var got []string
			for _, name := range r.names() {
				got = append(got, fmt.Sprintf("%s: %s [%s]", name, r.list(name), r.metas[name]))
			}
			for _, line := range tt.want {
				if !slices.Contains(got, line) {
					t.Errorf("no %s in\n%s", line, strings.Join(got, "\n"))
				}
			}
			if tt.form == ByVersion && len(got) != len(tt.want) {
				t.Errorf("%d series, want %d:\n%s", len(got), len(tt.want), strings.Join(got, "\n"))
			}
		})
	}
}

// TestUnchangedSeriesAreRefreshed counts points over three minutes.
func TestUnchangedSeriesAreRefreshed(t *testing.T) {
	r := receive(t, Version2)
	w := write(t, Config{HTTP: to(r.url), Shards: 1}, store.Options{})
	w.st.Root().Counter("idle").Inc()
	busy := w.st.Root().Counter("busy")
	for range 18 {
		busy.Inc()
		w.tick()
	}
	w.stop()
	if got := r.list("proxy_idle"); got != "1000000>1@1010000 1000000>1@1070000 1000000>1@1130000" {
		t.Errorf("idle: %s", got)
	}
	if got := len(strings.Fields(r.list("proxy_busy"))); got != 18 {
		t.Errorf("busy has %d points, want 18", got)
	}
}

// TestEndsAreMarked: expired, removed and created again, and the end of the program.
func TestEndsAreMarked(t *testing.T) {
	for _, v := range []Version{Version1, Version2} {
		r := receive(t, Version2)
		w := write(t, Config{HTTP: to(r.url), Version: v}, store.Options{})
		sc := w.st.Scope("s")
		sc.Counter("gone").Inc()
		sc.Counter("back").Inc()
		sc.Histogram("h", store.Bytes).Record(5)
		w.st.Root().Counter("stays").Inc()
		w.tick()
		sc.Counter("gone").Add(2) // no flush before its end
		sc.Counter("back").Add(2)
		sc.Close()
		w.now = w.now.Add(5 * time.Second)
		w.st.Root().Counter("s.back").Inc()
		w.now = w.now.Add(-5 * time.Second)
		w.tick()
		w.now = w.now.Add(time.Second)
		w.flush(true)
		w.stop()
		check := func(series, v1, v2 string) {
			t.Helper()
			want := v1
			if v == Version2 {
				want = v2
			}
			if got := r.list(series); got != want {
				t.Errorf("version %d, %s: %s, want %s", v, series, got, want)
			}
		}
		check("proxy_s_gone", "0@1000000 1@1010000 3@1020000 stale@1020001", "1000000>1@1010000 1000000>3@1020000 stale@1020001")
		check("proxy_stays", "0@1000000 1@1010000 1@1021000 stale@1021001", "1000000>1@1010000 1000000>1@1021000 stale@1021001")
		if v == Version2 {
			check("proxy_s_h", "", "1000000>1@1010000 stale@1020001")
		} else {
			check("proxy_s_h_count", "0@1000000 1@1010000 stale@1020001", "")
			check("proxy_s_h_bucket le=+Inf", "0@1000000 1@1010000 stale@1020001", "")
		}
		check("proxy_s_back", "0@1000000 1@1010000 3@1014999 0@1015000 1@1020000 1@1021000 stale@1021001",
			"1000000>1@1010000 1000000>3@1014999 1015000>1@1020000 1015000>1@1021000 stale@1021001")
	}
}

// TestNamelessStats: stats with nothing but tags are counted at each flush and not sent; the
// stats behind them are.
func TestNamelessStats(t *testing.T) {
	r := receive(t, Version2)
	w := write(t, Config{HTTP: to(r.url), Shards: 1}, store.Options{Naming: naming.Rules{Namespaces: []string{"gone"}}})
	for i := range 4 { // enough for a pattern
		w.st.Root().Counter("gone.1", tags.Tag{Name: "k", Value: fmt.Sprint("v", i)}).Inc()
		w.st.Root().Counter("named", tags.Tag{Name: "k", Value: fmt.Sprint("v", i)}).Inc()
	}
	w.tick()
	w.sent()
	w.stop()
	if n := w.own("skipped_names"); n != 4 {
		t.Errorf("%d stats are counted, want 4", n)
	}
	if n := w.own("metrics"); n != 4 {
		t.Errorf("%d samples of the stats behind are sent, want 4", n)
	}
}

// TestDowngrade converts a request with a series of each kind: version 1.0 has native
// histograms only if they were asked for, and no series that has nothing else.
func TestDowngrade(t *testing.T) {
	for _, native := range []bool{true, false} {
		r := receive(t, Version1)
		w := write(t, Config{HTTP: to(r.url), Shards: 1, Histograms: Native}, store.Options{})
		for i := range 3 {
			w.st.Root().Histogram(fmt.Sprint("h", i), store.Bytes).Record(5)
			w.st.Root().Gauge(fmt.Sprint("g", i)).Set(uint64(i) + 1)
			w.st.Root().Histogram(fmt.Sprint("i", i), store.Bytes).Record(5)
		}
		w.sink.queue.Hold(t.Context()) // so that the packets stay
		w.tick()
		packets := w.sink.queue.Hold(t.Context())
		series := map[string]int{}
		for _, data := range packets {
			p, err := unpack(data.Data)
			if err != nil || p.version != Version2 {
				t.Fatal(p.version, err)
			}
			if p, err = downgrade(p, native); err != nil {
				t.Fatal(err)
			}
			body, err := s2.Decode(nil, p.body)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			protobuf.Fields(body, func(f protobuf.Field) { // TimeSeries
				var name string
				points := 0
				protobuf.Fields(f.Bytes, func(f protobuf.Field) {
					switch f.Number {
					case 1:
						if text := string(f.Bytes); strings.Contains(text, "__name__") {
							name = text[strings.Index(text, "proxy_"):]
						}
					case 2, 4:
						points++
					}
				})
				series[name] += points
				n += points
			})
			if p.samples != n {
				t.Errorf("%d samples, said to be %d", n, p.samples)
			}
		}
		for i := range 3 {
			for _, kind := range []string{"h", "i", "g"} {
				want := 1
				if kind != "g" && !native {
					want = 0
				}
				if got := series[fmt.Sprint("proxy_", kind, i)]; got != want {
					t.Errorf("native %t: proxy_%s%d has %d points, want %d", native, kind, i, got, want)
				}
			}
		}
		w.sink.queue.Release(true)
		w.stop()
	}
}

// TestFallBack: a receiver refuses version 2.0, or reads it as 1.0. Requests that were
// queued while it was down are converted.
func TestFallBack(t *testing.T) {
	for _, silent := range []bool{false, true} {
		r := receive(t, Version1)
		down := true
		r.fault = func(w http.ResponseWriter, _ int) bool {
			if down {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return down
		}
		srv := silently(r)
		defer srv.Close()
		url := r.url
		if silent {
			url = srv.URL
		}
		w := write(t, Config{HTTP: to(url), Shards: 1}, store.Options{})
		w.st.Root().Counter("c").Add(3)
		w.st.Root().Histogram("h", store.Bytes).Record(5)
		w.tick()
		w.st.Root().Counter("c").Add(4)
		w.tick()
		r.mu.Lock()
		down = false
		r.mu.Unlock()
		w.sent()
		if w.sink.Version() != Version1 {
			t.Errorf("version %d", w.sink.Version())
		}
		w.tick()
		w.sent()
		w.stop()
		if got, want := r.list("proxy_c"), "0@1000000 3@1010000 7@1020000 7@1030000"; got != want {
			t.Errorf("silent %t: %s, want %s", silent, got, want)
		}
		if got := r.last("proxy_h_count"); got != 1 {
			t.Errorf("silent %t: the histogram has %v values", silent, got)
		}
	}
	r := receive(t, Version1)
	w := write(t, Config{HTTP: to(r.url), Version: Version2}, store.Options{})
	w.st.Root().Counter("c").Inc()
	w.tick()
	w.sent()
	w.stop()
	if w.own("rejected_metrics") != 1 || w.own("lost_packets") != 1 {
		t.Error("a fixed version fell back")
	}
}

// TestFaults: whatever happens to requests, the receiver has the exact totals in the end,
// and each sample is accounted for.
func TestFaults(t *testing.T) {
	status := func(code int, header ...string) func(http.ResponseWriter, int) bool {
		return func(w http.ResponseWriter, n int) bool {
			if n%4 != 1 {
				return false
			}
			if len(header) > 0 {
				w.Header().Set(header[0], header[1])
			}
			w.WriteHeader(code)
			return true
		}
	}
	for _, tt := range []struct {
		name      string
		fault     func(http.ResponseWriter, int) bool
		after     bool
		ambiguous bool
	}{
		{"500", status(500), false, true},
		{"503", status(503), false, false},
		{"429", status(429), false, false},
		{"429 with Retry-After", status(429, "Retry-After", "0"), false, false},
		{"duplicate acknowledgement", status(500), true, true},
		{"hang up", func(w http.ResponseWriter, n int) bool {
			if n%4 == 1 {
				panic(http.ErrAbortHandler)
			}
			return false
		}, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := receive(t, Version2)
			r.fault, r.after = tt.fault, tt.after
			w := write(t, Config{HTTP: to(r.url), Shards: 2, Batch: 50}, store.Options{})
			for i := range 5 {
				for j := range 20 {
					w.st.Root().Counter(fmt.Sprint("c", j)).Add(uint64(i + j))
				}
				w.tick()
			}
			w.sent()
			w.stop()
			for j := range 20 {
				if got, want := r.last(fmt.Sprint("proxy_c", j)), float64(10+5*j); got != want {
					t.Errorf("c%d is %v, want %v", j, got, want)
				}
			}
			if sent := w.own("metrics"); sent != 99 { // c0 is not used at first
				t.Errorf("%d of 99 samples sent", sent)
			}
			if (w.own("ambiguous_packets") > 0) != tt.ambiguous || w.own("send_errors") == 0 || w.own("rejected_metrics")+w.own("dropped_metrics") != 0 {
				t.Errorf("%d ambiguous, %d errors, %d rejected, %d dropped",
					w.own("ambiguous_packets"), w.own("send_errors"), w.own("rejected_metrics"), w.own("dropped_metrics"))
			}
		})
	}
}

// TestNothingIsUncounted: samples sent, rejected and dropped add up while the receiver
// refuses some and accepts only a part of others.
func TestNothingIsUncounted(t *testing.T) {
	r := receive(t, Version2)
	partial := 0
	r.fault = func(w http.ResponseWriter, n int) bool {
		switch n % 4 {
		case 0:
			http.Error(w, "out of bounds", http.StatusBadRequest)
		case 1:
			w.Header().Set(samplesHeader, "2")
			w.WriteHeader(http.StatusNoContent)
			partial++
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			return false
		}
		return true
	}
	w := write(t, Config{Options: sinkqueue.Options{QueueBytes: 600}, HTTP: to(r.url), Shards: 1, Batch: 10}, store.Options{})
	added := 0
	for range 10 {
		for j := range 40 {
			w.st.Root().Counter(fmt.Sprint("c", j)).Inc()
			added++
		}
		w.tick()
	}
	w.sent()
	w.stop()
	accepted := 0
	for _, name := range r.names() {
		accepted += len(r.points[name])
	}
	accepted += 2 * partial
	if got := accepted + int(w.own("rejected_metrics")+w.own("dropped_metrics")); got != added {
		t.Errorf("%d samples accepted, %d rejected, %d dropped: %d, want %d", accepted, w.own("rejected_metrics"), w.own("dropped_metrics"), got, added)
	}
	if w.own("dropped_metrics") == 0 || w.own("rejected_metrics") == 0 {
		t.Error("the test drops and rejects nothing")
	}
}

// TestHistogramsFillBatches has two histograms: each has its own buckets, and is sent once
// it fills a batch.
func TestHistogramsFillBatches(t *testing.T) {
	r := receive(t, Version1)
	w := write(t, Config{HTTP: to(r.url), Version: Version1, Shards: 1, Batch: 1}, store.Options{
		Histograms: []store.HistogramSetting{{Match: func(string) bool { return true }, Buckets: []float64{50}}},
	})
	w.st.Root().Histogram("a", store.Unspecified).Record(1)
	w.st.Root().Histogram("b", store.Unspecified).RecordN(2, 70)
	w.tick()
	w.stop()
	if a, b := r.last("proxy_a_bucket le=50"), r.last("proxy_b_bucket le=50"); a != 1 || b != 70 || r.requests != 2 {
		t.Errorf("%v and %v values in %d requests, want 1 and 70 in 2", a, b, r.requests)
	}
}

// TestSharedNames: stats of one metric name and labels stay apart, by their kind if it differs.
func TestSharedNames(t *testing.T) {
	r := receive(t, Version2)
	w := write(t, Config{HTTP: to(r.url)}, store.Options{})
	w.st.Root().Counter("a-b").Add(1)
	w.st.Root().Counter("a+b").Add(2)
	w.st.Root().Gauge("a.b").Set(3)
	w.tick()
	w.stop()
	want := []string{"proxy_a_b stat_name=a+b", "proxy_a_b stat_name=a-b", "proxy_a_b_gauge"}
	if got := r.names(); !slices.Equal(got, want) || r.last(want[0]) != 2 || r.last(want[2]) != 3 {
		t.Errorf("series %q", got)
	}
}

// TestOrderOfLabels: labels are sorted also if the series before has as many, with names
// as long, in another order.
func TestOrderOfLabels(t *testing.T) {
	r := receive(t, Version2)
	w := write(t, Config{HTTP: to(r.url), Shards: 1}, store.Options{})
	for _, name := range []string{"Ab", "zb"} { // before and behind __name__
		w.st.Root().Counter("n", tags.Tag{Name: name, Value: "v"}).Inc()
	}
	w.tick()
	w.stop()
	if got, want := r.names(), []string{"proxy_n Ab=v", "proxy_n zb=v"}; !slices.Equal(got, want) {
		t.Errorf("series %q, want %q", got, want)
	}
}

// TestValuesOfLabels: a label without a value is "true" if it was received or is in the
// configuration, and otherwise none; other values are valid UTF-8.
func TestValuesOfLabels(t *testing.T) {
	r := receive(t, Version2)
	w := write(t, Config{HTTP: to(r.url), Options: sinkqueue.Options{Tags: []tags.Tag{{Name: "canary"}, {Name: "dc", Value: "x\xff"}}}}, store.Options{})
	network := w.st.ScopeWith("", store.ScopeOptions{Network: true})
	for _, sc := range []*store.Scope{w.st.Root(), network} {
		sc.Counter("kept", tags.Tag{Name: "bare"}, tags.Tag{Name: "k", Value: "é"}).Inc()
	}
	network.Counter("cut", tags.Tag{Name: "k", Value: "é\xc3"}).Inc()
	w.tick()
	w.stop()
	want := []string{
		"cut canary=true dc=x\ufffd k=é\ufffd stat_name=cut.k.é\ufffd",
		"kept bare=true canary=true dc=x\ufffd k=é",
		"proxy_kept canary=true dc=x\ufffd k=é",
	}
	if got := r.names(); !slices.Equal(got, want) {
		t.Errorf("series %q, want %q", got, want)
	}
}

// TestUnitsOfHistograms: with NetworkSeconds, received timers are in seconds, and nothing else is.
func TestUnitsOfHistograms(t *testing.T) {
	for _, seconds := range []bool{true, false} {
		r := receive(t, Version1)
		w := write(t, Config{HTTP: to(r.url), Version: Version1}, store.Options{Naming: naming.Rules{NetworkSeconds: seconds}})
		want := map[string]float64{"proxy_own_timer_sum": 4000, "proxy_own_sizes_sum": 4000, "timer_sum": 4000, "sizes_sum": 4000}
		if seconds {
			want["timer_sum"] = 4
		}
		for prefix, sc := range map[string]*store.Scope{"own_": w.st.Root(), "": w.st.ScopeWith("", store.ScopeOptions{Network: true})} {
			sc.Histogram(prefix+"timer", store.Milliseconds).Record(4000)
			sc.Histogram(prefix+"sizes", store.Unspecified).Record(4000)
		}
		w.tick()
		w.stop()
		for name, sum := range want {
			if got := r.last(name); math.Abs(got-sum) > sum/10 {
				t.Errorf("seconds %t: %s is %v, want %v", seconds, name, got, sum)
			}
		}
	}
}

func TestConfigErrors(t *testing.T) {
	st := store.New(store.Options{})
	for _, cfg := range []Config{
		{HTTP: to("http://a")},
		{Options: sinkqueue.Options{Store: st}},
		{Options: sinkqueue.Options{Store: st}, HTTP: to("http://a"), Shards: 65},
		{Options: sinkqueue.Options{Store: st}, HTTP: to("http://a"), Batch: -1},
	} {
		if _, err := New(cfg); err == nil || !strings.HasPrefix(err.Error(), "remotewrite: ") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

func TestSinkKeepsTheContract(t *testing.T) {
	sinktest.Run(t, func(t *testing.T) sinktest.Receiver {
		r := receive(t, Version2)
		s, err := New(Config{Options: sinkqueue.Options{Store: store.New(store.Options{})}, HTTP: to(r.url)})
		if err != nil {
			t.Fatal(err)
		}
		return sinktest.Receiver{Sink: s, Received: func(name string) uint64 {
			return uint64(r.last("proxy_" + strings.ReplaceAll(name, ".", "_")))
		}}
	})
}

// TestDefaults: zero settings mean the defaults, others stay within their limits.
func TestDefaults(t *testing.T) {
	base := Config{Options: sinkqueue.Options{Store: store.New(store.Options{})}, HTTP: sinkhttp.Config{URL: "http://127.0.0.1:1"}}
	for _, tt := range []struct {
		shards, batch int
		refresh       time.Duration
		want          Config // no shards: an error
	}{
		{0, 0, 0, Config{Shards: 4, Batch: 2000, Refresh: time.Minute}}, {1, 1, -1, Config{Shards: 1, Batch: 1, Refresh: -1}},
		{64, 1, 1, Config{Shards: 64, Batch: 1, Refresh: 1}}, {65, 1, 1, Config{}}, {-1, 1, 1, Config{}}, {1, -1, 1, Config{}},
	} {
		cfg := base
		cfg.Name = fmt.Sprint(tt.shards, tt.batch)
		cfg.Shards, cfg.Batch, cfg.Refresh = tt.shards, tt.batch, tt.refresh
		s, err := New(cfg)
		if (err == nil) != (tt.want.Shards > 0) {
			t.Errorf("%d shards, a batch of %d: %v", tt.shards, tt.batch, err)
		}
		if err == nil && (s.queue.Shards() != tt.want.Shards || s.cfg.Batch != tt.want.Batch || s.walk.Refresh != tt.want.Refresh) {
			t.Errorf("%d shards, a batch of %d, a refresh of %v, want %+v", s.queue.Shards(), s.cfg.Batch, s.walk.Refresh, tt.want)
		}
	}
}

// TestSeriesWithTheSamePattern: counters and gauges of a family differ in the values of
// tags only, and their labels are distributed over batches.
func TestSeriesWithTheSamePattern(t *testing.T) {
	for _, v := range []Version{Version1, Version2} {
		t.Run(fmt.Sprint(v), func(t *testing.T) {
			r := receive(t, Version2)
			w := write(t, Config{
				Options: sinkqueue.Options{Prefix: "edge", Tags: []tags.Tag{{Name: "instance", Value: "a"}, {Name: "zone", Value: "own"}}},
				HTTP:    to(r.url), Version: v, Shards: 3, Batch: 4,
			}, store.Options{})
			w.st.Describe("hits", store.Description{Help: "Hits so far."})
			root, want := w.st.Root(), map[string]float64{}
			for i := range 40 {
				x := fmt.Sprint("x", i)
				root.Counter("hits", tags.Tag{Name: "zone", Value: x}, tags.Tag{Name: "code", Value: "y" + x}).Add(uint64(i + 1))
				root.Gauge("size", tags.Tag{Name: "host", Value: x}, tags.Tag{Name: "host", Value: "second"}).Set(uint64(i + 100))
				want[fmt.Sprintf("edge_proxy_hits code=y%s instance=a zone=%s", x, x)] = float64(i + 1)
				want[fmt.Sprintf("edge_proxy_size exported_host=second host=%s instance=a zone=own", x)] = float64(i + 100)
			}
			w.tick()
			root.Counter("hits", tags.Tag{Name: "zone", Value: "x7"}, tags.Tag{Name: "code", Value: "yx7"}).Add(100)
			want["edge_proxy_hits code=yx7 instance=a zone=x7"] += 100
			w.tick()
			w.stop()
			if names := r.names(); len(names) != len(want) {
				t.Errorf("%d series, want %d:\n%s", len(names), len(want), strings.Join(names, "\n"))
			}
			for name, x := range want {
				if got := r.last(name); got != x {
					t.Errorf("%s: %v, want %v", name, got, x)
				}
				if v == Version2 && strings.Contains(name, "hits") && r.metas[name] != "1 Hits so far." {
					t.Errorf("%s: metadata %q", name, r.metas[name])
				}
			}
		})
	}
}

// TestSeriesKeepTheirShard: a series has the same hash whether its pattern is known or not.
func TestSeriesKeepTheirShard(t *testing.T) {
	st := store.New(store.Options{})
	for i := range 20 {
		st.Root().Counter("hits", tags.Tag{Name: "zone", Value: fmt.Sprint(i)}, tags.Tag{Name: "code", Value: "y"}).Inc()
	}
	snap := st.Flush(store.FlushOptions{})
	defer snap.Close()
	n, found := newNamer(st, "edge", []tags.Tag{{Name: "instance", Value: "a"}}), 0
	var m pattern
	snap.CounterChanges(func(c *store.Cursor, _ uint64) bool {
		p := c.Pattern()
		if p == nil {
			return true
		}
		if found++; found == 1 {
			n.learn(&m, c, len(p.Tags()), 1)
		}
		if !n.read(c, store.KindCounter) || n.fill(&m, c.Values(p)) != n.hash() {
			t.Errorf("%s: another hash", c.Name())
		}
		return true
	})
	if found < 15 {
		t.Errorf("%d stats have a pattern", found)
	}
}

// TestNativeHistogramsOfBothSigns: the receiver checks that the buckets hold all values.
func TestNativeHistogramsOfBothSigns(t *testing.T) {
	for _, version := range []Version{Version1, Version2} {
		r := receive(t, version)
		w := write(t, Config{HTTP: to(r.url), Version: version, Histograms: Native}, store.Options{})
		h := w.st.ScopeWith("", store.ScopeOptions{Network: true}).Histogram("signed", store.Unspecified)
		for _, x := range []float64{-300, -5, -5, 0, 7, 900} {
			h.RecordFloat(x, 1)
		}
		w.tick()
		w.stop()
		if got := r.last("signed"); got != 6 {
			t.Errorf("version %v: %v values, want 6", version, got)
		}
	}
}
