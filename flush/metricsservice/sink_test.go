package metricsservice

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/statsd-admin/statsd-admin/flush/sinkhttp"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/flush/sinktest"
	"github.com/statsd-admin/statsd-admin/internal/protobuf"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rawCodec passes encoded messages through.
type rawCodec struct{}

func (rawCodec) Name() string                         { return "proto" }
func (rawCodec) Marshal(any) (mem.BufferSlice, error) { return nil, nil }
func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// receiver keeps the values that it gets. fail decides on each report by its number.
type receiver struct {
	url  string
	fail func(n int) (err error, applied bool)

	mu     sync.Mutex
	n      int
	last   []byte // the last report
	delta  bool
	values map[string]float64 // of counters and gauges, by name and labels
	counts map[string]uint64  // of histograms, by type and name
}

func serve(t *testing.T, r *receiver) *receiver {
	t.Helper()
	r.values, r.counts = map[string]float64{}, map[string]uint64{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.url = "http://" + l.Addr().String()
	server := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.UnknownServiceHandler(r.stream))
	var done sync.WaitGroup
	done.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() { server.Stop(); done.Wait() })
	return r
}

func (r *receiver) stream(_ any, s grpc.ServerStream) error {
	for {
		var message []byte
		err := s.RecvMsg(&message)
		if errors.Is(err, io.EOF) {
			return s.SendMsg(nil)
		}
		if err == nil {
			err = r.take(message)
		}
		if err != nil {
			return err
		}
	}
}

func (r *receiver) take(message []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	r.last = slices.Clone(message)
	var err error
	if r.fail != nil {
		var applied bool
		if err, applied = r.fail(r.n); err != nil && !applied {
			return err
		}
	}
	visit(message, func(name []byte, typ uint64, m metric) {
		key := string(name)
		if len(m.labels) > 0 {
			key += fmt.Sprintf(" %q", m.labels)
		}
		switch {
		case typ == typeSummary || typ == typeHistogram:
			r.counts[fmt.Sprint(typ, " ", key)] += m.count
		case typ == typeCounter && r.delta:
			r.values[key] += m.value
		default:
			r.values[key] = m.value
		}
	})
	return err
}

func (r *receiver) value(name string) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.values[name]
}

func started(t *testing.T, r *receiver, cfg Config) (*Sink, func()) {
	t.Helper()
	cfg.Store = store.New(store.Options{})
	cfg.Store.KeepNames()
	cfg.Filter, cfg.Receiver = sinktest.NoOwn(), sinkhttp.Config{URL: r.url, Timeout: time.Minute}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() { s.Run(context.Background()) })
	stop := sync.OnceFunc(func() { s.Close(); done.Wait() })
	t.Cleanup(stop)
	return s, stop
}

func tick(t *testing.T, s *Sink) {
	t.Helper()
	snap := s.cfg.Store.Flush(store.FlushOptions{Totals: s.NeedsTotals()})
	defer snap.Close()
	if err := s.Flush(snap); err != nil {
		t.Error(err)
	}
}

func TestReports(t *testing.T) {
	region := tags.Tag{Name: "region", Value: "eu"}
	label := ` "\n\f\n\x06region\x12\x02eu"`
	constant := ` "\n\a\n\x02dc\x12\x01x"`
	for _, tt := range []struct {
		name   string
		cfg    Config
		want   map[string]float64
		counts map[string]uint64
	}{
		{"totals", Config{}, map[string]float64{"orders" + label: 7, "carts": 5, "balance": -1.5}, map[string]uint64{"2 rt": 3, "4 rt": 3}},
		{"delta", Config{Delta: true, Histograms: Summaries}, map[string]float64{"orders" + label: 7, "carts": 5, "balance": -1.5}, map[string]uint64{"2 rt": 3}},
		{
			"full", Config{FullNames: true, Histograms: Buckets, Options: sinkqueue.Options{Prefix: "edge", Tags: []tags.Tag{{Name: "dc", Value: "x"}}}},
			map[string]float64{"edge.orders.region.eu" + constant: 7, "edge.carts" + constant: 5, "edge.balance" + constant: -1.5}, map[string]uint64{"4 edge.rt" + constant: 3},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := serve(t, &receiver{delta: tt.cfg.Delta})
			s, stop := started(t, r, tt.cfg)
			root := s.cfg.Store.Root()
			root.Counter("orders", region).Add(3)
			root.Counter("idle")
			root.Gauge("carts").Set(5)
			root.FloatGauge("balance").Set(-1.5)
			root.Histogram("rt", store.Milliseconds).RecordN(12, 2)
			tick(t, s)
			root.Counter("orders", region).Add(4)
			root.Histogram("rt", store.Milliseconds).Record(12)
			tick(t, s)
			stop()
			if fmt.Sprint(r.values) != fmt.Sprint(tt.want) || fmt.Sprint(r.counts) != fmt.Sprint(tt.counts) {
				t.Errorf("got  %v %v\nwant %v %v", r.values, r.counts, tt.want, tt.counts)
			}
		})
	}
}

// TestIdentifier: the first report of a stream names the node and the program.
func TestIdentifier(t *testing.T) {
	r := serve(t, &receiver{})
	s, stop := started(t, r, Config{NodeID: "n1", NodeCluster: "edge"})
	s.cfg.Store.Root().Counter("c").Inc()
	tick(t, s)
	stop()
	// Fields 1, 2 and 6 of the node: id, cluster and user_agent_name.
	if want := "\n\x13\n\x11\n\x02n1\x12\x04edge2\x05proxy"; !strings.HasPrefix(string(r.last), want) {
		t.Errorf("the report begins with %q, want %q", r.last[:min(len(want), len(r.last))], want)
	}
}

// TestBuckets: a bucket has its bound and the count of the values up to there.
func TestBuckets(t *testing.T) {
	r := serve(t, &receiver{})
	s, stop := started(t, r, Config{Histograms: Buckets})
	h := s.cfg.Store.Root().Histogram("rt", store.Milliseconds)
	h.Record(3)
	h.RecordN(12, 2)
	tick(t, s)
	stop()
	for bound, count := range map[float64]uint64{1: 0, 5: 1, 10: 1, 25: 3, 3_600_000: 3} {
		bucket := protobuf.AppendDouble(protobuf.AppendUint(nil, 1, count), 2, bound)
		if n := bytes.Count(r.last, protobuf.AppendBytes(nil, 3, bucket)); n != 1 {
			t.Errorf("%d buckets up to %v with a count of %d", n, bound, count)
		}
	}
}

// TestEveryIncrementOnceOrCounted fails reports in all ways. Delta: arrived + ambiguous
// = written. Totals: the last report is right.
func TestEveryIncrementOnceOrCounted(t *testing.T) {
	const failing = 20
	for _, delta := range []bool{false, true} {
		t.Run(fmt.Sprint(delta), func(t *testing.T) {
			r := serve(t, &receiver{delta: delta, fail: func(n int) (error, bool) {
				switch {
				case n > failing:
				case n%5 == 1:
					return status.Error(codes.Aborted, "lost before it was applied"), false
				case n%5 == 3:
					return status.Error(codes.Aborted, "lost after it was applied"), true
				case n%5 == 4:
					return status.Error(codes.InvalidArgument, "refused"), false
				}
				return nil, false
			}})
			s, stop := started(t, r, Config{Delta: delta})
			a, h := s.cfg.Store.Root().Counter("a"), s.cfg.Store.Root().Histogram("h", store.Milliseconds)
			var written uint64
			for i := range failing + 5 {
				a.Add(uint64(i))
				h.Record(1)
				written += uint64(i)
				tick(t, s)
				sinktest.Await(t, "an empty queue", func() bool { return s.Delivery().Bytes == 0 })
			}
			stop()
			got := uint64(r.value("a"))
			if !delta && got != written {
				t.Errorf("the total is %d, want %d", got, written)
			}
			if delta {
				// Half of the ambiguous reports were applied.
				before := got + sinktest.Own(s.cfg.Store, s.Name(), "ambiguous_increments") + sinktest.Own(s.cfg.Store, s.Name(), "lost_increments")
				applied := uint64(2 + 7 + 12 + 17)
				if before != written+applied {
					t.Errorf("arrived %d, ambiguous %d, lost %d; %d written", got, sinktest.Own(s.cfg.Store, s.Name(), "ambiguous_increments"), sinktest.Own(s.cfg.Store, s.Name(), "lost_increments"), written)
				}
			}
			if n := sinktest.Own(s.cfg.Store, s.Name(), "ambiguous_packets"); n != 8 {
				t.Errorf("%d packets are ambiguous, want 8", n)
			}
			if n := sinktest.Own(s.cfg.Store, s.Name(), "ambiguous_values"); n != 8 {
				t.Errorf("%d values are ambiguous, want 8", n)
			}
			if n := sinktest.Own(s.cfg.Store, s.Name(), "lost_packets"); n != 4 {
				t.Errorf("%d packets are lost, want 4", n)
			}
		})
	}
}

func TestSinkKeepsTheContract(t *testing.T) {
	for _, delta := range []bool{false, true} {
		t.Run(fmt.Sprint(delta), func(t *testing.T) {
			sinktest.Run(t, func(t *testing.T) sinktest.Receiver {
				r := serve(t, &receiver{delta: delta})
				s, err := New(Config{Options: sinkqueue.Options{Store: store.New(store.Options{})}, Receiver: sinkhttp.Config{URL: r.url, Timeout: time.Minute}, Delta: delta})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					s.client.Close()
					if n := s.cfg.Store.OpenViews(); n != 0 {
						t.Errorf("%d views of the sink's own store are open", n)
					}
				})
				return sinktest.Receiver{Sink: s, Received: func(name string) uint64 { return uint64(r.value(name)) }}
			})
		})
	}
}

// TestLongReportsAreSplit keeps messages below the limit of receivers.
func TestLongReportsAreSplit(t *testing.T) {
	r := serve(t, &receiver{delta: true})
	s, stop := started(t, r, Config{Delta: true})
	const series = 20_000
	long := strings.Repeat("x", 150)
	for i := range series {
		s.cfg.Store.Root().Counter(fmt.Sprint(long, i)).Inc()
	}
	tick(t, s)
	stop()
	if len(r.values) != series || r.n < 3 {
		t.Errorf("%d series in %d messages", len(r.values), r.n)
	}
}

func TestWrongSettings(t *testing.T) {
	for _, cfg := range []Config{{}, {Options: sinkqueue.Options{Store: store.New(store.Options{})}}} {
		if _, err := New(cfg); err == nil || !strings.HasPrefix(err.Error(), "metricsservice: ") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

func TestUndeliveredIncrementsReturn(t *testing.T) {
	for _, full := range []bool{false, true} {
		st := store.New(store.Options{})
		s, err := New(Config{Options: sinkqueue.Options{Store: st, Tags: []tags.Tag{{Name: "dc", Value: "x"}}}, Receiver: sinkhttp.Config{URL: "http://127.0.0.1:1"}, Delta: true, FullNames: full})
		if err != nil {
			t.Fatal(err)
		}
		sinktest.Owed(t, st, s, increments)
		s.client.Close()
	}
}

// TestNamelessStats: stats with nothing but tags are counted and not sent; the others are.
func TestNamelessStats(t *testing.T) {
	for _, delta := range []bool{true, false} {
		st := store.New(store.Options{})
		s, err := New(Config{Options: sinkqueue.Options{Store: st, Filter: sinktest.NoOwn()}, Receiver: sinkhttp.Config{URL: "http://127.0.0.1:1"}, Delta: delta})
		if err != nil {
			t.Fatal(err)
		}
		network := st.ScopeWith("", store.ScopeOptions{Network: true})
		for i := range 2 {
			network.Histogram("", store.Unspecified, tags.Tag{Name: "a", Value: fmt.Sprint(i)}).Record(1)
			network.Counter("", tags.Tag{Name: "b", Value: fmt.Sprint(i)}).Inc()
			if err := network.FloatGauge("", tags.Tag{Name: "c", Value: fmt.Sprint(i)}).Set(1); err != nil {
				t.Fatal(err)
			}
		}
		network.Counter("named", tags.Tag{Name: "b", Value: "v"}).Inc()
		network.FloatGauge("named_g", tags.Tag{Name: "c", Value: "v"}).Add(1)
		network.Histogram("named_h", store.Unspecified, tags.Tag{Name: "d", Value: "v"}).Record(1)
		snap := st.Flush(store.FlushOptions{Totals: s.NeedsTotals()})
		if err := s.Flush(snap); err != nil {
			t.Fatal(err)
		}
		snap.Close()
		var got []string
		for _, p := range s.Hold(t.Context()) {
			visit(p.Data, func(name []byte, _ uint64, _ metric) { got = append(got, string(name)) })
		}
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, []string{"named", "named_g", "named_h"}) {
			t.Errorf("delta %t: sent %q", delta, got)
		}
		if n := sinktest.Own(st, s.Name(), "skipped_names"); n != 6 {
			t.Errorf("delta %t: %d stats are counted, want 6", delta, n)
		}
		s.client.Close()
	}
}
