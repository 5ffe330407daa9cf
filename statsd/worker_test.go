package statsd

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
)

// rig is a server without sockets, to which a test hands lines.
type rig struct {
	t     testing.TB
	now   time.Time
	store *store.Store
	*Server
	l *listener
}

// newRig returns a rig whose clock stands still.
func newRig(t testing.TB, cfg Config) *rig {
	t.Helper()
	return newNamedRig(t, cfg, naming.Rules{})
}

// newNamedRig is newRig with other names in expositions.
func newNamedRig(t testing.TB, cfg Config, names naming.Rules) *rig {
	t.Helper()
	r := &rig{t: t, now: time.Unix(1_700_000_000, 0)}
	r.store = store.New(store.Options{Now: func() time.Time { return r.now }, Naming: names})
	cfg.Store = r.store
	if cfg.Now == nil {
		cfg.Now = func() time.Time { return r.now }
	}
	var err error
	if r.Server, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	r.l = &listener{name: "test", addr: address{scheme: "udp", framing: datagrams}, cfg: ListenerConfig{PacketBytes: defaultPacketBytes}}
	r.l.metrics = newListenerMetrics(r.store.Root(), "test", r.l.addr)
	if cfg.RelayOnly {
		r.l.metrics.countRelayOnly()
	}
	r.listeners = append(r.listeners, r.l)
	return r
}

// send hands over one packet.
func (r *rig) send(packet string) {
	w := r.streamWorkers[0]
	w.enter()
	defer w.leave(r.l)
	w.tally.packets++
	w.packet(r.l, []byte(packet), false, source{name: "tester"})
}

// flush ends an interval.
func (r *rig) flush() {
	r.Flush(r.now)
	r.store.Flush(store.FlushOptions{}).Close()
}

// stats lists the received stats and their values, sorted by name.
func (r *rig) stats() []string {
	r.store.Flush(store.FlushOptions{}).Close()
	v := r.store.View()
	defer v.Close()
	var out []string
	c := v.ByName(store.Scalars)
	for c.Next() {
		if c.Network() {
			out = append(out, fmt.Sprintf("%s %s", c.Name(), c.AppendValue(nil)))
		}
	}
	c = v.ByName(store.Histograms)
	for c.Next() {
		if c.Network() {
			s := c.Histogram().Snapshot().Cumulative
			out = append(out, fmt.Sprintf("%s count=%d sum=%v", c.Name(), s.Count(), s.Sum()))
		}
	}
	slices.Sort(out)
	return out
}

// want checks the received stats.
func (r *rig) want(want ...string) {
	r.t.Helper()
	if got := r.stats(); !slices.Equal(got, want) {
		r.t.Errorf("stats\n got %q\nwant %q", got, want)
	}
}

// rejected returns how many lines were rejected, by reason.
func (r *rig) rejected() map[string]uint64 {
	return r.Report().Listeners[0].Rejected
}

// conserved checks that every line is accounted for, and returns the report.
func (r *rig) conserved() report.Report {
	r.t.Helper()
	rep := r.Report()
	for _, l := range rep.Listeners {
		sum := l.Applied + l.Dropped + l.Limited + l.RelayOnly
		for _, n := range l.Rejected {
			sum += n
		}
		if sum != l.Lines {
			r.t.Errorf("%s: %d lines, but %d applied + %d dropped + %d limited + rejected %v", l.Name, l.Lines, l.Applied, l.Dropped, l.Limited, l.Rejected)
		}
	}
	return rep
}

func TestSamplesReachStats(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"counter", "cart.items:1|c", []string{"cart.items 1"}},
		{"rate", "cart.items:3|c|@0.1", []string{"cart.items 30"}},
		{"packed-timers", "rt:12.5:13:900|ms|#route:/a,canary", []string{"rt.canary.route./a count=3 sum=925.5"}},
		{"gauge-deltas", "q:5|g\nq:-2|g\nq:+4|g", []string{"q 7"}},
		{"several-types", "rt:1|ms:2|ms|@0.5:7|c", []string{"rt count=3 sum=5", "rt_counter 7"}},
		{"one-tag-error", "hits,zone:1|c|#a:b", []string{"hits.a.b 1"}},
		{"unknown-options", "x:1|c|T1700000000|c:ci-abc", []string{"x 1"}},
		{"exponent", "x:1e3|c", []string{"x 1000"}},
		{"crlf", "x:1|c\r\n", []string{"x 1"}},
		{"packed-counter", "a:1:2|c", []string{"a 3"}},
		{"packed-gauge", "a:1:2|g", []string{"a 2"}},
		{"unknown-gauge-sign", "g:-3|g", []string{"g -3"}},
		{"gauge-sign", "g:10|g\ng:+5|g", []string{"g 15"}},
		{"fractions", "a:0.4|c\na:0.4|c\na:0.4|c", []string{"a 1"}},
		{"third-rate", "a:1|ms|@0.3\na:1|ms|@0.3\na:1|ms|@0.3", []string{"a count=10 sum=10"}},
		{"last-gauge-wins", "g:1|g\ng:2|g\ng:3|g", []string{"g 3"}},
		{"fractional-gauge", "g:0.25|g", []string{"g 0.25"}},
		{"tag-order", "a:1|c|#x:1,y:2\na:1|c|#y:2,x:1\na,y=2,x=1:1|c", []string{"a.x.1.y.2 3"}},
		{"bare-tag", "a:1|c|#x\na:1|c|#x:", []string{"a.x 2"}},
		{"trailing-dot", "a.:1|c\na:1|c", []string{"a 2"}},
		{"negative-histogram", "a:-5|h\na:2.5|d", []string{"a count=2 sum=-2.5"}},
		{"control-bytes", "a\x01b:1|c|#k\x02:v\x03", []string{"a_b.k_.v_ 1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, prefix := range []string{"", "in"} {
				r := newRig(t, Config{Prefix: prefix})
				r.send(tt.in)
				want := slices.Clone(tt.want)
				if prefix != "" {
					for i := range want {
						want[i] = prefix + "." + want[i]
					}
				}
				r.want(want...)
				r.conserved()
				if n := r.rejected(); len(n) != 0 {
					t.Errorf("rejected: %v", n)
				}
			}
		})
	}
}

// TestRejectedLineAppliesNothing sends lines whose first samples are fine.
func TestRejectedLineAppliesNothing(t *testing.T) {
	for in, reason := range map[string]line.Reason{
		"a:1|c:x|c":                          line.BadValue,
		"a:1|c:1|zz":                         line.BadType,
		"a:1|g:nan|g":                        line.NotFinite,
		"a:1:2:-3|c":                         line.NegativeCounter,
		"a:1|c:+1e308|g:+1e308|g":            line.OutOfRange,
		"a:1|c|#" + strings.Repeat("k", 129): line.TagTooLong,
		"a:1e308:+1e308|g":                   line.OutOfRange,
		"a:1|c:-1e308:-1e308:+1e308|g|#a:b":  line.OutOfRange,
	} {
		r := newRig(t, Config{})
		for range 3 { // new, then known
			r.send(in)
		}
		if got := r.stats(); len(got) != 0 {
			t.Errorf("%q made %v", in, got)
		}
		if got := r.rejected()[reason.String()]; got != 3 {
			t.Errorf("%q: rejected %v, want 3 of %v", in, r.rejected(), reason)
		}
		r.conserved()
	}
}

// TestSmallAndLargeObservations records fractions to the microsecond; larger
// values than a histogram holds are recorded as its largest value and counted.
func TestSmallAndLargeObservations(t *testing.T) {
	r := newRig(t, Config{})
	r.send("s:0.000345:0.000347:0.000001|d\nm:9.2e12:-9.2e12|h\nx:1e13:-1e300|h|@0.5\nx:1|ms")
	r.want("m count=2 sum=0", "s count=3 sum=0.000693", "x count=5 sum=1")
	if got := r.Report().Listeners[0].ValuesOutOfRange; got != 2 {
		t.Errorf("%d values out of range, want 2", got)
	}
	h := r.Scope().Histogram("s", store.Unspecified).Snapshot().Cumulative
	if p50 := h.Quantile(0.5); p50 < 0.000345 || p50 > 0.000345*1.01 {
		t.Errorf("the median is %v", p50)
	}
}

func TestAbsoluteGauges(t *testing.T) {
	r := newRig(t, Config{Parse: ParseConfig{AbsoluteGauges: true}})
	r.send("g:10|g\ng:+5|g\nh:10|g\nh:-3|g")
	r.want("g 5", "h -3")
}

// TestCachedKeyKeepsPrecedence sends a line whose tags are rejected until it is
// cached, then adds errors that come before the tags.
func TestCachedKeyKeepsPrecedence(t *testing.T) {
	r := newRig(t, Config{})
	for _, in := range []string{"a,b=c:1|c|#d:e", "a,b=c:1|c|#d:e", "a,b=c:x|c|#d:e"} {
		r.send(in)
	}
	r.send("a,b=c:1|c|@7|#d:e")
	r.send("a,b=c:1|zz|#d:e")
	r.send("a,b=c:1|c|#d:e|\xff")
	got := r.rejected()
	want := map[string]uint64{"mixed_tag_styles": 3, "bad_sample_rate": 1, "bad_type": 1, "invalid_utf8": 1}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("rejected %v, want %v", got, want)
	}
	if rep := r.Report(); rep.Cache.Hits != 0 || r.streamWorkers[0].cache.negative != 1 {
		t.Errorf("hits %d, negative entries %d", rep.Cache.Hits, r.streamWorkers[0].cache.negative)
	}
	r.conserved()
}

func TestCachedKeyChecksOtherBytes(t *testing.T) {
	r := newRig(t, Config{})
	r.send("s:x|s\ns:\xff|s\na:1|c\na:1|c|c:\xff\na:1|c|zz\xff")
	if got := r.rejected()["invalid_utf8"]; got != 3 {
		t.Errorf("%d lines with invalid UTF-8 rejected, want 3", got)
	}
}

// TestOlderTimestampsLoseAgainstNewerOnes sets gauges out of order.
func TestOlderTimestampsLoseAgainstNewerOnes(t *testing.T) {
	r := newRig(t, Config{})
	r.now = time.Unix(1_800_000_000, 0)
	r.send("g:10|g|T1800000000\ng:5|g|T1600000000")
	r.want("g 10")
	r.send("g:+1|g|T1600000000") // changes add up in any order
	r.want("g 11")
	r.send("g:7|g|T1800000000\nh:1:2|g|T5\nh:3|g|T4|#a\nh:4|g")
	r.want("g 7", "h 4", "h.a 3")
	r.send("g:8|g\ng:9|g|T1700000000")
	r.want("g 8", "h 4", "h.a 3")
	r.Forget(func(name string) bool { return name == "g" })
	r.send("g:1|g|T3")
	r.want("g 1", "h 4", "h.a 3")
	r.conserved()
}

// TestFutureTimestampsBlockNoGauge: one value with a timestamp far ahead, from a client
// that sends milliseconds for example, used to keep a gauge from all later ones.
func TestFutureTimestampsBlockNoGauge(t *testing.T) {
	r := newRig(t, Config{}) // at 1,700,000,000
	ahead := func(want uint64) {
		t.Helper()
		if got := r.Report().Listeners[0].FutureTimestamps; got != want {
			t.Errorf("%d future timestamps are reported, want %d", got, want)
		}
	}
	r.send("g:1|g|T1700000060\ng:2|g|T1700000059") // as far ahead as allowed
	r.want("g 1")
	ahead(0)
	r.send("g:3|g|T1700000061\nh:1:2|g|T1700000000000\nh:3|g|T1699999999\nh:4|g|T4611686018427387903")
	r.want("g 1", "h 4")
	ahead(3)
	r.now = r.now.Add(time.Second)
	r.send("h:5|g|T1700000000\nh:6|g|T1700000001\nc:1|c|T1700000000000")
	r.want("c 1", "g 1", "h 6")
	ahead(3)
	r.now = r.now.Add(-time.Hour) // the clock was wrong
	r.send("g:7|g|T1699996401\ng:8|g|T1699996400")
	r.want("c 1", "g 7", "h 6")
	r.conserved()
}

func TestTagErrorsCountPerLine(t *testing.T) {
	r := newRig(t, Config{})
	for range 3 {
		r.send("a,x:1|c|z:1|:b\na:1|c|#:x,:y")
	}
	l := r.Report().Listeners[0]
	if l.TagErrors != 9 || l.UnknownFields != 6 {
		t.Errorf("%d tag errors, %d unknown fields; want 9, 6", l.TagErrors, l.UnknownFields)
	}
}

func TestContainerOptionIsNotPartOfTheKey(t *testing.T) {
	r := newRig(t, Config{})
	for i := range 10 {
		r.send(fmt.Sprintf("a:1|c|c:ci-%d", i))
	}
	if n := r.streamWorkers[0].cache.used; n != 1 {
		t.Errorf("%d keys, want 1", n)
	}
	r = newRig(t, Config{Parse: ParseConfig{TagContainer: true}})
	for range 3 {
		r.send("a:1|c|c:ci-x\na:1|c|c:ci-y\na:1|c|#|x")
	}
	r.want("a 3", "a.container_id.x 3", "a.container_id.y 3")
}

// TestEvictedKeysAreCounted checks that evictions are counted and lose no sample.
func TestEvictedKeysAreCounted(t *testing.T) {
	r := newRig(t, Config{Limits: Limits{CacheEntries: 4}})
	for i := range 100 {
		r.send(fmt.Sprintf("a.%d:1|c", i%10))
	}
	rep := r.Report()
	entries := uint64(r.streamWorkers[0].cache.used)
	if rep.Cache.Misses-rep.Cache.Evicted != entries || entries == 0 || rep.Cache.Hits+rep.Cache.Misses != 100 {
		t.Errorf("%d hits, %d misses, %d evicted, %d entries", rep.Cache.Hits, rep.Cache.Misses, rep.Cache.Evicted, entries)
	}
	r.conserved()
}

func TestLinesPerPacketLimit(t *testing.T) {
	r := newRig(t, Config{Limits: Limits{LinesPerPacket: 3}})
	r.send("a:1|c\n\na:1|c\r\nbad\na:1|c\n \nx\n")
	r.want("a 2")
	got := fmt.Sprint(r.rejected())
	if want := fmt.Sprint(map[string]uint64{"missing_colon": 1, "too_many_lines": 2}); got != want {
		t.Errorf("rejected %v, want %v", got, want)
	}
	r.conserved()
}

func TestSelfMetrics(t *testing.T) {
	r := newRig(t, Config{})
	r.send("a:1|c\na:1:2|ms\na:x|g\n_e{1,1}:a|b|t:error\n_sc|db|2\nu:x|s")
	r.Flush(r.now)
	r.store.Flush(store.FlushOptions{}).Close()
	got := map[string]string{}
	v := r.store.View()
	defer v.Close()
	for c := v.ByName(store.Scalars); c.Next(); {
		if strings.HasPrefix(c.Name(), "ingest.") && !c.Network() && c.Used() {
			got[c.Name()] = string(c.AppendValue(nil))
		}
	}
	for name, want := range map[string]string{
		"ingest.packets.listener.test":                   "1",
		"ingest.lines.listener.test":                     "6",
		"ingest.samples.listener.test":                   "4",
		"ingest.rejected.listener.test.reason.bad_value": "1",
		"ingest.samples_by_type.type.c":                  "1",
		"ingest.samples_by_type.type.ms":                 "2",
		"ingest.samples_by_type.type.s":                  "1",
		"ingest.series.kind.counter":                     "1",
		"ingest.series.kind.histogram":                   "1",
		"ingest.series.kind.set":                         "1",
		"ingest.series_created.kind.counter":             "1",
		"ingest.type_conflicts":                          "1",
		"ingest.events.alert_type.error":                 "1",
		"ingest.service_checks.status.critical":          "1",
		"ingest.raw_table_entries":                       "3",
		"ingest.raw_table_misses":                        "4",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}
