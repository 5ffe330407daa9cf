package jsonlines

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/flush/sinktest"
	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// record is a line as a reader sees it.
type record struct {
	Time        time.Time
	Type, Name  string
	Tags        map[string]string
	Increment   uint64
	Value       *float64
	Count       uint64
	Percentiles map[string]float64
}

// parse returns the records of the lines in data. All lines must be complete.
func parse(t *testing.T, data []byte) (all []record) {
	t.Helper()
	for line := range bytes.Lines(data) {
		var r record
		d := json.NewDecoder(bytes.NewReader(line))
		if err := d.Decode(&r); err != nil || !bytes.HasSuffix(line, []byte("}\n")) {
			t.Errorf("%q: %v", line, err)
		}
		all = append(all, r)
	}
	return all
}

// sum returns the sum of the increments of a counter in all files of a directory.
func sum(t *testing.T, dir, name string) (n uint64) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range parse(t, data) {
			if r.Name == name {
				n += r.Increment
			}
		}
	}
	return n
}

// started returns a running sink that writes to a new directory, and a function that
// stops it.
func started(t *testing.T, cfg Config) (s *Sink, dir string, stop func()) {
	t.Helper()
	dir = t.TempDir()
	if cfg.Store == nil {
		cfg.Store = store.New(store.Options{})
	}
	if cfg.Path == "" {
		cfg.Path = filepath.Join(dir, "stats.jsonl")
	}
	cfg.Filter = sinktest.NoOwn()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() { s.Run(context.Background()) })
	return s, dir, sync.OnceFunc(func() { s.Close(); done.Wait() })
}

func tick(t *testing.T, s *Sink) {
	t.Helper()
	snap := s.cfg.Store.Flush(store.FlushOptions{})
	defer snap.Close()
	snap.Time = time.UnixMilli(1700000000999)
	if err := s.Flush(snap); err != nil {
		t.Error(err)
	}
}

func fill(st *store.Store) {
	root := st.Root()
	root.Counter("shop.orders", tags.Tag{Name: "region", Value: "eu\"\n\xff"}, tags.Tag{Name: "zone", Value: ""}).Add(30)
	root.Counter("huge").Add(math.MaxUint64)
	root.Counter("idle")
	root.Gauge("shop.carts").Set(7)
	root.FloatGauge("shop.balance").Set(-1.5e300)
	root.FloatGauge("shop.infinite").Set(math.Inf(1))
	h := root.Histogram("shop.rt", store.Milliseconds)
	for i := range uint64(10) {
		h.Record(i + 1)
	}
	root.Text("shop.text").Set("x")
}

// written returns what a sink writes in one flush of the stats of fill.
func written(t *testing.T, cfg Config) []byte {
	t.Helper()
	s, _, stop := started(t, cfg)
	fill(s.cfg.Store)
	tick(t, s)
	stop()
	data, err := os.ReadFile(s.cfg.Path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestSomePercentiles: histograms have the percentiles that are asked for, however many.
func TestSomePercentiles(t *testing.T) {
	for _, want := range []map[string]float64{nil, {"50": 5}, {"0": 1, "100": 10}, {"10": 1, "50": 5, "99.5": 10}} {
		asked := []float64{}
		for key := range want {
			p, err := strconv.ParseFloat(key, 64)
			if err != nil {
				t.Fatal(err)
			}
			asked = append(asked, p)
		}
		for _, r := range parse(t, written(t, Config{Percentiles: asked})) {
			if r.Name == "shop.rt" && !maps.Equal(r.Percentiles, want) {
				t.Errorf("%v: %v", asked, r.Percentiles)
			}
		}
	}
}

func TestLines(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  Config
	}{
		{"default", Config{}},
		{"options", Config{Percentiles: []float64{0, 99.9, 100}, Options: sinkqueue.Options{
			Prefix: "edge", Tags: []tags.Tag{{Name: "zone", Value: "b"}, {Name: "dc", Value: "x"}},
		}}},
		{"no-percentiles", Config{Percentiles: []float64{}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := written(t, tt.cfg)
			parse(t, data)
			golden.Check(t, tt.name, data)
		})
	}
}

// TestRotationLosesNothing renames the file and opens it again while counters grow.
func TestRotationLosesNothing(t *testing.T) {
	s, dir, stop := started(t, Config{})
	const flushes = 200
	for i := range flushes {
		s.cfg.Store.Root().Counter("a").Inc()
		s.cfg.Store.Root().Counter("b").Add(3)
		tick(t, s)
		if i%20 == 10 {
			sinktest.Await(t, "the file", func() bool { _, err := os.Stat(s.cfg.Path); return err == nil })
			if err := os.Rename(s.cfg.Path, fmt.Sprint(s.cfg.Path, i)); err != nil {
				t.Fatal(err)
			}
			if err := s.Reopen(); err != nil {
				t.Error(err)
			}
		}
	}
	stop()
	if a, b := sum(t, dir, "a"), sum(t, dir, "b"); a != flushes || b != 3*flushes {
		t.Errorf("a %d, b %d; want %d and %d", a, b, flushes, 3*flushes)
	}
	if files, _ := os.ReadDir(dir); len(files) != flushes/20+1 {
		t.Errorf("%d files", len(files))
	}
}

// disk fails from time to time, sometimes after a part of the lines.
type disk struct {
	mu     sync.Mutex
	broken bool
	failed int
	file   []byte
}

func (d *disk) write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.broken {
		d.file = append(d.file, p...)
		return len(p), nil
	}
	d.failed++
	n := 0
	if d.failed%2 == 0 {
		n = bytes.IndexByte(p, '\n') + 1
	}
	d.file = append(d.file, p[:n]...)
	return n, errors.New("no space left on device")
}

func (d *disk) turn(broken bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broken = broken
}

func (d *disk) failures() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed
}

// TestNothingIsLostWhileTheDiskIsFull: the queue holds one flush, so that
// increments are owed as well.
func TestNothingIsLostWhileTheDiskIsFull(t *testing.T) {
	var d disk
	s, _, stop := started(t, Config{Options: sinkqueue.Options{QueueBytes: 1000}, write: d.write})
	a, b := s.cfg.Store.Root().Counter("a"), s.cfg.Store.Root().Counter("b", tags.Tag{Name: "increment", Value: "9"}, tags.Tag{Name: "type", Value: "counter"})
	var want uint64
	grow := func(times int) {
		for range times {
			a.Inc()
			b.Add(3)
			s.cfg.Store.Root().Gauge("g", tags.Tag{Name: "type", Value: "counter"}, tags.Tag{Name: "increment", Value: "5"}).Set(want)
			s.cfg.Store.Root().Histogram("h", store.Milliseconds).Record(want)
			want++
			tick(t, s)
		}
	}
	arrived := func() bool {
		tick(t, s) // writes owed increments
		d.mu.Lock()
		defer d.mu.Unlock()
		got := map[string]uint64{}
		for _, r := range parse(t, d.file) {
			got[r.Name] += r.Increment
		}
		return got["a"] == want && got["b"] == 3*want && got["g"] == 0
	}
	for range 2 {
		grow(5)
		sinktest.Await(t, "the increments before the outage", arrived)
		failed := d.failures()
		d.turn(true)
		grow(20)
		sinktest.Await(t, "failed attempts", func() bool { return d.failures() > failed+1 })
		d.turn(false)
	}
	sinktest.Await(t, "the increments of the outages", arrived)
	stop()
	if !arrived() {
		t.Error("increments arrived twice")
	}
	if sinktest.Own(s.cfg.Store, s.Name(), "dropped_packets") == 0 || sinktest.Own(s.cfg.Store, s.Name(), "lost_increments") != 0 || sinktest.Own(s.cfg.Store, s.Name(), "ambiguous_packets") != 0 || sinktest.Own(s.cfg.Store, s.Name(), "send_errors") < 4 {
		t.Errorf("%+v", s.Delivery())
	}
	values := sinktest.Own(s.cfg.Store, s.Name(), "lost_values")
	for _, r := range parse(t, d.file) {
		values += r.Count
	}
	if values != want {
		t.Errorf("%d values of the histogram arrived or were counted as lost, want %d", values, want)
	}
}

func TestSinkKeepsTheContract(t *testing.T) {
	sinktest.Run(t, func(t *testing.T) sinktest.Receiver {
		dir := t.TempDir()
		s, err := New(Config{Options: sinkqueue.Options{Store: store.New(store.Options{})}, Path: filepath.Join(dir, "a")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			s.closeFile() // where a test does not run the sink
			if n := s.cfg.Store.OpenViews(); n != 0 {
				t.Errorf("%d views of the sink's own store are open", n)
			}
		})
		return sinktest.Receiver{Sink: s, Received: func(name string) uint64 { return sum(t, dir, name) }}
	})
}

func TestWrongSettings(t *testing.T) {
	o := sinkqueue.Options{Store: store.New(store.Options{})}
	for _, cfg := range []Config{
		{Path: "a"},
		{Options: o},
		{Options: o, Path: t.TempDir()},
		{Options: o, Path: filepath.Join(t.TempDir(), "missing", "a")},
		{Options: o, Path: "/dev/stdout", Percentiles: []float64{-1}},
		{Options: o, Path: "/dev/stdout", Percentiles: []float64{100.1}},
		{Options: o, Path: "/dev/stdout", Percentiles: []float64{math.NaN()}},
		{Options: o, Path: "/dev/stdout", Percentiles: make([]float64, MaxPercentiles+1)},
	} {
		if _, err := New(cfg); err == nil || !strings.HasPrefix(err.Error(), "jsonlines: ") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// TestSettingsAtTheirLimits: defaults, the most percentiles, the least and the
// greatest one.
func TestSettingsAtTheirLimits(t *testing.T) {
	for _, tt := range []struct {
		percentiles []float64
		want        []float64 // shares
	}{
		{nil, []float64{0.5, 0.9, 0.99}}, {[]float64{}, nil}, {[]float64{0, 100}, []float64{0, 1}}, {make([]float64, 32), make([]float64, 32)},
	} {
		s, err := New(Config{Options: sinkqueue.Options{Store: store.New(store.Options{})}, Path: "/dev/stdout", Percentiles: tt.percentiles})
		if err != nil {
			t.Fatal(err)
		}
		var shares []float64
		for _, p := range s.percentiles {
			shares = append(shares, p.share)
		}
		if !slices.Equal(shares, tt.want) {
			t.Errorf("percentiles %v: shares %v, want %v", tt.percentiles, shares, tt.want)
		}
	}
}

func TestNamelessStats(t *testing.T) {
	sinktest.Nameless(t, func(st *store.Store) (flush.Movable, error) {
		return New(Config{Options: sinkqueue.Options{Store: st}, Path: filepath.Join(t.TempDir(), "lines")})
	}, increments)
}

func TestUndeliveredIncrementsReturn(t *testing.T) {
	st := store.New(store.Options{})
	s, err := New(Config{Options: sinkqueue.Options{Store: st}, Path: filepath.Join(t.TempDir(), "lines")})
	if err != nil {
		t.Fatal(err)
	}
	sinktest.Owed(t, st, s, increments)
}

// TestMissingDirectory: lines wait until the file can be created.
func TestMissingDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dir, stop := started(t, Config{})
		defer stop()
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		s.cfg.Store.Root().Counter("c").Add(3)
		tick(t, s)
		synctest.Wait()
		if d := s.Delivery(); d.Packets != 1 || d.Failed != 1 || !errors.Is(d.LastError, fs.ErrNotExist) {
			t.Fatalf("%d packets, %d failed attempts, last error %v", d.Packets, d.Failed, d.LastError)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := sum(t, dir, "c"); n != 3 {
			t.Errorf("the file has %d increments, want 3", n)
		}
	})
}

// TestNewCreatesNothing: a sink that does not run, as in a check of a configuration, leaves
// no file behind.
func TestNewCreatesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stats")
	s, err := New(Config{Options: sinkqueue.Options{Store: store.New(store.Options{})}, Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reopen(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("after New: %v", err)
	}
}
