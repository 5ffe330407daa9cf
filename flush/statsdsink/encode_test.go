package statsdsink

import (
	"context"
	"maps"
	"math"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/flush/sinktest"
	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// lines returns the lines that a sink with cfg makes of one flush of st.
func lines(t *testing.T, cfg Config, st *store.Store) []string {
	t.Helper()
	cfg.Store, cfg.Address = st, "127.0.0.1:1"
	cfg.Filter.Exclude = append(cfg.Filter.Exclude, ownMetrics)
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	snap := st.Flush(store.FlushOptions{})
	defer snap.Close()
	var packets []string
	s.counters(snap)
	s.gauges(snap)
	s.timers(snap)
	if len(s.packet) > 0 {
		packets = strings.Split(string(s.packet), "\n")
	}
	return packets
}

func TestLines(t *testing.T) {
	region := tags.Tag{Name: "region", Value: "eu"}
	fill := func(st *store.Store) {
		st.Root().Counter("edge.hits", region).Add(3)
		st.Root().Gauge("edge.active").Set(7)
		st.Root().Histogram("edge.rt", store.Milliseconds).Record(12)
		st.Root().Text("edge.text").Set("x")
	}
	several := func(st *store.Store) {
		for i, names := range [][]string{{"a", "b"}, {"a", "b"}, {"b"}, {}, {"a", "c"}} {
			var list []tags.Tag
			for _, n := range names {
				list = append(list, tags.Tag{Name: n, Value: strconv.Itoa(i)})
			}
			st.Root().Counter("c"+strconv.Itoa(i), list...).Inc()
		}
	}
	constant := sinkqueue.Options{Prefix: "p", Tags: []tags.Tag{{Name: "dc", Value: "x"}}}
	short := func(st *store.Store) {
		st.Root().Counter("c", tags.Tag{Name: "a", Value: ""}, tags.Tag{Name: "b", Value: "1"}).Inc()
	}
	for _, tt := range []struct {
		name string
		cfg  Config
		fill func(*store.Store)
		want string
	}{
		{"several", Config{Format: DogStatsD}, several, "c0:1|c|#a:0,b:0 c1:1|c|#a:1,b:1 c2:1|c|#b:2 c3:1|c c4:1|c|#a:4,c:4"},
		{"several of influx", Config{Format: Influx}, several, "c0,a=0,b=0:1|c c1,a=1,b=1:1|c c2,b=2:1|c c3:1|c c4,a=4,c=4:1|c"},
		{"several with constant tags", Config{Format: DogStatsD, Options: constant}, several, "p.c0:1|c|#dc:x,a:0,b:0 p.c1:1|c|#dc:x,a:1,b:1 p.c2:1|c|#dc:x,b:2 p.c3:1|c|#dc:x p.c4:1|c|#dc:x,a:4,c:4"},
		{"several with constant tags of signalfx", Config{Format: SignalFX, Options: constant}, several, "p.c0[dc=x,a=0,b=0]:1|c p.c1[dc=x,a=1,b=1]:1|c p.c2[dc=x,b=2]:1|c p.c3[dc=x]:1|c p.c4[dc=x,a=4,c=4]:1|c"},
		{"short values", Config{Format: DogStatsD}, short, "c:1|c|#a,b:1"},
		{"short values of graphite", Config{Format: Graphite}, short, "c;a=true;b=1:1|c"},
		{"plain", Config{Options: sinkqueue.Options{Prefix: "proxy"}}, fill, "proxy.edge.hits.region.eu:3|c proxy.edge.active:7|g proxy.edge.rt:12|ms"},
		{"dogstatsd", Config{Format: DogStatsD}, fill, "edge.hits:3|c|#region:eu edge.active:7|g edge.rt:12|ms"},
		{"graphite", Config{Format: Graphite}, fill, "edge.hits;region=eu:3|c edge.active:7|g edge.rt:12|ms"},
		{"influx", Config{Format: Influx}, fill, "edge.hits,region=eu:3|c edge.active:7|g edge.rt:12|ms"},
		{"librato", Config{Format: Librato}, fill, "edge.hits#region=eu:3|c edge.active:7|g edge.rt:12|ms"},
		{"signalfx", Config{Format: SignalFX}, fill, "edge.hits[region=eu]:3|c edge.active:7|g edge.rt:12|ms"},
		{"constant tags of signalfx", Config{Format: SignalFX, Timers: None, Options: sinkqueue.Options{Tags: []tags.Tag{{Name: "a=b"}, {Name: "dc", Value: "x],:|#y"}}}}, fill,
			"edge.hits[a_b=true,dc=x_____y,region=eu]:3|c edge.active[a_b=true,dc=x_____y]:7|g"},
		{"constant tags of librato", Config{Format: Librato, Timers: None, Options: sinkqueue.Options{Tags: []tags.Tag{{Name: "dc", Value: "x"}}}}, fill,
			"edge.hits#dc=x,region=eu:3|c edge.active#dc=x:7|g"},
		{"names in the form of tags", Config{Format: Influx}, func(st *store.Store) { st.Root().Counter("a,b=c[d]#e:f").Inc() }, "a_b_c_d__e_f:1|c"},
		{"summary", Config{Timers: Summary, Format: DogStatsD}, func(st *store.Store) {
			h := st.Root().Histogram("rt", store.Milliseconds, region)
			for v := range uint64(100) {
				h.Record(v + 1)
			}
		}, "rt.count:100|g|#region:eu rt.lower:1|g|#region:eu rt.upper:100|g|#region:eu rt.mean:50.5|g|#region:eu rt.p50:50|g|#region:eu rt.p90:90|g|#region:eu rt.p95:95|g|#region:eu rt.p99:99|g|#region:eu"},
		{"summary before tags in the name", Config{Timers: Summary, Format: Graphite}, func(st *store.Store) { st.Root().Histogram("rt", store.Milliseconds, region).Record(7) },
			"rt.count;region=eu:1|g rt.lower;region=eu:7|g rt.upper;region=eu:7|g rt.mean;region=eu:7|g rt.p50;region=eu:7|g rt.p90;region=eu:7|g rt.p95;region=eu:7|g rt.p99;region=eu:7|g"},
		{"constant tags", Config{Format: DogStatsD, Timers: None, Options: sinkqueue.Options{Tags: []tags.Tag{{Name: "dc", Value: "x,|y"}}}}, fill,
			"edge.hits:3|c|#dc:x__y,region:eu edge.active:7|g|#dc:x__y"},
		{"constant tags of graphite", Config{Format: Graphite, Timers: None, Options: sinkqueue.Options{Tags: []tags.Tag{{Name: "d c", Value: "x;/"}}}}, fill,
			"edge.hits;d_c=x_-;region=eu:3|c edge.active;d_c=x_-:7|g"},
		{"kinds", func() Config {
			var c Config
			c.Filter.Kinds = []store.Kind{store.KindGauge}
			return c
		}(), fill, "edge.active:7|g"},
		{"negative gauge", Config{}, func(st *store.Store) { st.Root().FloatGauge("t").Set(-1.5) }, "t:0|g t:-1.5|g"},
		{"absolute gauge", Config{AbsoluteGauges: true}, func(st *store.Store) { st.Root().FloatGauge("t").Set(-1.5) }, "t:-1.5|g"},
		{"seconds", Config{}, func(st *store.Store) { st.Root().Histogram("p", store.Seconds).RecordDuration(250 * time.Microsecond) }, "p:0.25|ms"},
		{"percent", Config{}, func(st *store.Store) { st.Root().Histogram("p", store.Percent).Record(500000) }, "p:0.5|h"},
		{"bytes not allowed", Config{}, func(st *store.Store) { st.Root().Counter("a:b|c@d#e,f\ng").Inc() }, "a_b_c_d_e_f_g:1|c"},
		{"few digits", Config{}, func(st *store.Store) {
			h := st.ScopeWith("", store.ScopeOptions{Network: true}).Histogram("p", store.Milliseconds)
			h.RecordFloat(1.5, 1)
			h.RecordFloat(2.5, 1)
			h.RecordFloat(300, 1)
		}, "p:1.503232|ms p:2.49856|ms p:300|ms"},
		{"few digits of seconds", Config{}, func(st *store.Store) {
			h := st.Root().Histogram("p", store.Seconds)
			h.RecordDuration(1001 * time.Millisecond)
			h.RecordDuration(time.Hour)
		}, "p:1001.472|ms p:3598712.832|ms"},
		{"two values", Config{}, func(st *store.Store) { st.Root().Histogram("h", store.Milliseconds).RecordN(12, 2) }, "h:12|ms|@0.5"},
		{"bin", Config{}, func(st *store.Store) { st.Root().Histogram("h", store.Milliseconds).RecordN(12, 100) }, "h:12|ms|@0.01"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := store.New(store.Options{})
			tt.fill(st)
			if got := strings.Join(lines(t, tt.cfg, st), " "); got != tt.want {
				t.Errorf("%s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestZeroDeltas(t *testing.T) {
	st := store.New(store.Options{})
	st.Root().Counter("a").Inc()
	st.Root().Counter("unused")
	st.Flush(store.FlushOptions{}).Close()
	st.Root().Counter("b").Inc()
	if got := strings.Join(lines(t, Config{ZeroDeltas: true}, st), " "); got != "b:1|c a:0|c" {
		t.Errorf("%s, want b:1|c a:0|c", got)
	}
}

// TestRates: receivers get the count both if they round 1 / rate down and if they
// add it up.
func TestRates(t *testing.T) {
	check := func(n uint64) {
		text := string(appendRate(nil, n))
		r, err := strconv.ParseFloat(text, 64)
		if err != nil || strings.ContainsAny(text, "eE") || uint64(1/r) != n || math.Abs(1/r-float64(n)) > max(1e-9, float64(n)*1e-14) {
			t.Errorf("rate %s of %d gives %v", text, n, 1/r)
		}
	}
	for n := uint64(2); n < 20000; n++ {
		check(n)
	}
	for n := uint64(1 << 20); n < 1<<50; n = n*7/3 + 1 {
		check(n)
	}
	for _, tt := range []struct {
		n    uint64
		want string
	}{{2, "0.5"}, {100, "0.01"}, {1000, "0.001"}} {
		if got := string(appendRate(nil, tt.n)); got != tt.want {
			t.Errorf("rate of %d is %s, want %s", tt.n, got, tt.want)
		}
	}
}

func TestPacking(t *testing.T) {
	for _, tt := range []struct {
		name    string
		network Network
		newline bool
		size    int
		want    []string
	}{
		{"exact fit", UDP, false, 11, []string{"a:1|c\nb:1|c", "c:1|c"}},
		{"one byte short", UDP, false, 10, []string{"a:1|c", "b:1|c", "c:1|c"}},
		{"one line each", UDP, false, 1, []string{"a:1|c", "b:1|c", "c:1|c"}},
		{"final newline", UDP, true, 12, []string{"a:1|c\nb:1|c\n", "c:1|c\n"}},
		{"final newline does not fit", UDP, true, 11, []string{"a:1|c\n", "b:1|c\n", "c:1|c\n"}},
		{"stream", TCP, false, 18, []string{"a:1|c\nb:1|c\nc:1|c\n"}},
	} {
		s, err := New(Config{
			Options: sinkqueue.Options{Store: store.New(store.Options{})}, Address: "127.0.0.1:1", Network: tt.network, PacketBytes: tt.size, FinalNewline: tt.newline,
		})
		if err != nil {
			t.Fatal(err)
		}
		var packets []string
		for _, name := range []string{"a", "b", "c"} {
			before := s.Delivery().Packets + len(s.packets)
			packet := string(s.packet)
			s.packet = append(s.begin(), name+":1|c"...)
			s.put()
			if s.Delivery().Packets+len(s.packets) > before {
				if tt.newline || tt.network.Stream() {
					packet += "\n"
				}
				packets = append(packets, packet)
			}
		}
		last := string(s.packet)
		if tt.newline || tt.network.Stream() {
			last += "\n"
		}
		if got := strings.Join(append(packets, last), "|"); got != strings.Join(tt.want, "|") {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestConfigErrors(t *testing.T) {
	st := store.New(store.Options{})
	with := sinkqueue.Options{Store: st}
	for _, cfg := range []Config{
		{Address: "a:1"},
		{Options: with, Address: "nowhere"},
		{Options: with, Network: Unixgram, Address: "relative"},
		{Options: with, Network: "sctp", Address: "a:1"},
		{Options: with, Address: "a:1", Events: true},
		{Options: with, Network: UDP, Dial: func(context.Context) (net.Conn, error) { return nil, nil }},
		{Options: sinkqueue.Options{Store: st, Tags: []tags.Tag{{Name: "a"}}}, Address: "a:1"},
		{Options: sinkqueue.Options{Store: st, Interval: -1}, Address: "a:1"},
	} {
		if _, err := New(cfg); err == nil || !strings.HasPrefix(err.Error(), "statsdsink: ") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// ownMetrics keeps the metrics of sinks out of the lines.
var ownMetrics = match.Prefix("sink.")

// TestNumbersInPackets has lines of other kinds, and lines that are cut, first.
func TestNumbersInPackets(t *testing.T) {
	packet := "cut\ng:3|g\n|c\nt:5|ms\nzero:0|c\na:2|c\nr:7|h|@0.1\nbad:x|c\nc:4|c|#t:v\nw:1|d\nt:6|ms|#t:v\nr:7|h|@0\n"
	got := map[string]uint64{}
	increments([]byte(packet), func(key []byte, n uint64) { got[string(key)] += n })
	if want := map[string]uint64{"a\n": 2, "c\n|#t:v": 4}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if n := observations([]byte(packet)); n != 12 {
		t.Errorf("%d observations, want 12", n)
	}
}

// TestEvents: lines stay as they are, in packets after stats, and count neither as
// increments nor as values.
func TestEvents(t *testing.T) {
	st := store.New(store.Options{})
	st.Root().Counter("a").Inc()
	s, err := New(Config{Options: sinkqueue.Options{Store: st, Prefix: "p", Filter: sinkqueue.Filter{Exclude: match.List{ownMetrics}}}, Address: "127.0.0.1:1", Format: DogStatsD, Events: true})
	if err != nil {
		t.Fatal(err)
	}
	all := []string{"_e{1,1}:2|c", "_e{2,2}:ab|ms|#x:y", "_sc|disk|1|m:1|c"}
	for _, line := range all {
		s.Event([]byte(line))
	}
	for range 2 { // the second flush has none
		snap := st.Flush(store.FlushOptions{})
		if err := s.Flush(snap); err != nil {
			t.Fatal(err)
		}
		snap.Close()
	}
	var got []string
	s.queue.Take(func(data []byte, _ int) { got = append(got, string(data)) })
	if want := "p.a:1|c\n" + strings.Join(all, "\n"); len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
	n := uint64(0)
	increments([]byte(got[0]), func(_ []byte, by uint64) { n += by })
	if n != 1 || observations([]byte(got[0])) != 0 {
		t.Errorf("%d increments, %d values", n, observations([]byte(got[0])))
	}
}

// TestEventsAreBounded: of the events between two flushes, the ones over the limit are
// dropped and counted.
func TestEventsAreBounded(t *testing.T) {
	st := store.New(store.Options{})
	line := []byte("_sc|" + strings.Repeat("x", 1<<10-7) + "|0") // 1 KiB with the line feed
	for _, cfg := range []Config{{Events: true}, {}, {Events: true, Options: sinkqueue.Options{Filter: sinkqueue.Filter{Origin: sinkqueue.Own}}}} {
		cfg.Store, cfg.Address, cfg.Format = st, "127.0.0.1:1", DogStatsD
		s, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		before := sinktest.Own(st, "statsd", "dropped_metrics")
		for range maxEventBytes>>10 + 5 {
			s.Event(line)
		}
		kept, dropped := maxEventBytes, uint64(5)
		if !cfg.Events || cfg.Filter.Origin == sinkqueue.Own {
			kept, dropped = 0, 0
		}
		if n := sinktest.Own(st, "statsd", "dropped_metrics") - before; len(s.events) != kept || n != dropped {
			t.Errorf("%+v: %d bytes wait, %d dropped", cfg, len(s.events), n)
		}
	}
}

func TestUndeliveredIncrementsReturn(t *testing.T) {
	for _, zeros := range []bool{false, true} {
		for _, format := range []Format{DogStatsD, Graphite, Influx, Librato, SignalFX} {
			st := store.New(store.Options{})
			s, err := New(Config{Options: sinkqueue.Options{Store: st, Tags: []tags.Tag{{Name: "dc", Value: "x"}}}, Address: "127.0.0.1:1", Format: format, ZeroDeltas: zeros})
			if err != nil {
				t.Fatal(err)
			}
			sinktest.Owed(t, st, s, increments)
		}
	}
}

// TestStatsWithoutName: a stat without a name is counted and leaves the lines around it alone.
func TestStatsWithoutName(t *testing.T) {
	counters := func(sc *store.Scope, name string) { sc.Counter(name).Inc() }
	gauges := func(sc *store.Scope, name string) { sc.Gauge(name).Set(1) }
	timers := func(sc *store.Scope, name string) { sc.Histogram(name, store.Milliseconds).Record(1) }
	constant := sinkqueue.Options{Prefix: "p", Tags: []tags.Tag{{Name: "dc", Value: "x"}}}
	for _, tt := range []struct {
		cfg     Config
		add     func(sc *store.Scope, name string)
		want    string
		skipped uint64
	}{
		{Config{}, counters, "a:1|c z:1|c", 1},
		{Config{ZeroDeltas: true}, counters, "a:1|c z:1|c", 2}, // as a change and as a used counter
		{Config{Format: DogStatsD, Options: constant}, counters, "p.a:1|c|#dc:x p.z:1|c|#dc:x", 1},
		{Config{}, gauges, "a:1|g z:1|g", 1},
		{Config{}, timers, "a:1|ms z:1|ms", 1},
	} {
		st := store.New(store.Options{})
		for _, name := range []string{"a", "", "z"} {
			tt.add(st.Root(), name)
		}
		if got := strings.Join(lines(t, tt.cfg, st), " "); got != tt.want {
			t.Errorf("%s\nwant %s", got, tt.want)
		}
		if n := sinktest.Own(st, "statsd", "skipped_names"); n != tt.skipped {
			t.Errorf("%v names are skipped, want %d", n, tt.skipped)
		}
	}
}
