package remotewrite

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/sinkhttp"
	"github.com/statsd-admin/statsd-admin/flush/sinktest"
	"github.com/statsd-admin/statsd-admin/internal/protobuf"
	"github.com/statsd-admin/statsd-admin/store"
)

// point is a sample or a native histogram, whose count is the value.
type point struct {
	at, start int64
	value     float64
	native    bool
}

func (p point) stale() bool { return math.Float64bits(p.value) == 0x7ff0000000000002 }

// receiver is a remote write receiver that keeps all it gets.
type receiver struct {
	t      *testing.T
	url    string
	newest Version                                 // that it knows
	fault  func(w http.ResponseWriter, n int) bool // answers request n, from 1, if it returns true
	after  bool                                    // the fault is after the request was applied

	mu       sync.Mutex
	requests int
	points   map[string][]point
	metas    map[string]string
}

func receive(t *testing.T, newest Version) *receiver {
	r := &receiver{t: t, newest: newest, points: map[string][]point{}, metas: map[string]string{}}
	srv := httptest.NewServer(r)
	t.Cleanup(srv.Close)
	r.url = srv.URL + "/api/v1/write"
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	packed, err := io.ReadAll(req.Body)
	if err != nil {
		return // the test of a client that gives up
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	if r.fault != nil && !r.after && r.fault(w, r.requests) {
		return
	}
	v := Version1
	if strings.Contains(req.Header.Get("Content-Type"), "write.v2") {
		v = Version2
	}
	if want := map[Version]string{Version1: "0.1.0", Version2: "2.0.0"}[v]; req.Header.Get(versionHeader) != want || req.Header.Get("Content-Encoding") != "snappy" {
		r.t.Errorf("header %v", req.Header)
	}
	if v > r.newest {
		w.WriteHeader(http.StatusUnsupportedMediaType)
		return
	}
	body, err := s2.Decode(nil, packed)
	if err != nil {
		r.t.Error(err)
	}
	samples, histograms := r.request(v, body)
	if v == Version2 {
		w.Header().Set(samplesHeader, strconv.Itoa(samples))
		w.Header().Set(histogramsHeader, strconv.Itoa(histograms))
	}
	if r.fault != nil && r.after && r.fault(w, r.requests) {
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// fields calls f for each field of a message.
func (r *receiver) fields(msg []byte, f func(protobuf.Field)) {
	for len(msg) > 0 {
		field, rest, err := protobuf.Next(msg)
		if err != nil {
			r.t.Fatal(err)
		}
		f(field)
		msg = rest
	}
}

func (r *receiver) request(v Version, body []byte) (samples, histograms int) {
	var symbols []string
	r.fields(body, func(f protobuf.Field) {
		switch {
		case v == Version2 && f.Number == 4:
			symbols = append(symbols, string(f.Bytes))
		case v == Version2 && f.Number == 5, v == Version1 && f.Number == 1:
			s, h := r.series(v, f.Bytes, symbols)
			samples, histograms = samples+s, histograms+h
		default:
			r.t.Errorf("field %d in a request of version %d", f.Number, v)
		}
	})
	return samples, histograms
}

// buckets checks that spans and deltas of a native histogram fit, and hold its count.
func (r *receiver) buckets(msg []byte, count float64) {
	var sum uint64
	var positions [16]uint64 // by the field of the spans
	r.fields(msg, func(f protobuf.Field) {
		switch f.Number {
		case 6: // the zero bucket
			sum += f.Value
		case 8, 11:
			r.fields(f.Bytes, func(span protobuf.Field) {
				if span.Number == 2 {
					positions[f.Number] += span.Value
				}
			})
		case 9, 12:
			var bucket int64
			for deltas := f.Bytes; len(deltas) > 0; positions[f.Number-1]-- {
				delta, n := binary.Varint(deltas)
				deltas = deltas[n:]
				bucket += delta
				sum += uint64(bucket)
			}
		}
	})
	if stale := math.IsNaN(count); positions != [16]uint64{} || !stale && sum != uint64(count) {
		r.t.Errorf("buckets hold %d of %v values; spans without deltas by field: %v", sum, count, positions)
	}
}

func (r *receiver) series(v Version, msg []byte, symbols []string) (samples, histograms int) {
	var labels [][2]string
	var points []point
	meta := ""
	r.fields(msg, func(f protobuf.Field) {
		switch {
		case v == Version2 && f.Number == 1:
			for refs := f.Bytes; len(refs) > 0; {
				name, n := binary.Uvarint(refs)
				value, w := binary.Uvarint(refs[n:])
				refs = refs[n+w:]
				labels = append(labels, [2]string{symbols[name], symbols[value]})
			}
		case f.Number == 1:
			var l [2]string
			r.fields(f.Bytes, func(f protobuf.Field) { l[f.Number-1] = string(f.Bytes) })
			labels = append(labels, l)
		case f.Number == 2:
			samples++
			points = append(points, r.point(f.Bytes, 1, 2, 3))
		case v == Version2 && f.Number == 3, v == Version1 && f.Number == 4:
			histograms++
			p := r.point(f.Bytes, 1, 15, 17)
			p.native = true
			r.buckets(f.Bytes, p.value)
			points = append(points, p)
		case v == Version2 && f.Number == 5:
			r.fields(f.Bytes, func(f protobuf.Field) {
				if f.Number == 1 {
					meta += fmt.Sprint(f.Value)
				} else {
					meta += " " + symbols[f.Value]
				}
			})
		}
	})
	if !slices.IsSortedFunc(labels, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) }) {
		r.t.Errorf("labels %q are not in order", labels)
	}
	var name strings.Builder
	for i, l := range labels {
		if i > 0 && labels[i-1][0] == l[0] || l[1] == "" {
			r.t.Errorf("labels %q", labels)
		}
		if l[0] == "__name__" {
			name.WriteString(l[1])
		}
	}
	for _, l := range labels {
		if l[0] != "__name__" {
			fmt.Fprintf(&name, " %s=%s", l[0], l[1])
		}
	}
	key := name.String()
	r.metas[key] = meta
	have := r.points[key]
	for _, p := range points {
		same := func(q point) bool { return q.at == p.at && math.Float64bits(q.value) == math.Float64bits(p.value) }
		if len(have) > 0 && p.at <= have[len(have)-1].at && !slices.ContainsFunc(have, same) {
			r.t.Errorf("%s: %+v after %+v", key, p, have[len(have)-1])
		}
		if !slices.ContainsFunc(have, same) {
			have = append(have, p)
		}
	}
	r.points[key] = have
	return samples, histograms
}

// point reads a sample or a histogram with the given numbers of its fields.
func (r *receiver) point(msg []byte, value, at, start int) (p point) {
	r.fields(msg, func(f protobuf.Field) {
		switch {
		case f.Number == value && f.Type == protobuf.Varint:
			p.value = float64(f.Value)
		case f.Number == value:
			p.value = math.Float64frombits(f.Value)
		case f.Number == at:
			p.at = int64(f.Value)
		case f.Number == start:
			p.start = int64(f.Value)
		case at == 15 && f.Number == 3 && math.IsNaN(math.Float64frombits(f.Value)):
			p.value = math.Float64frombits(f.Value)
		}
	})
	return p
}

// last returns the last value of a series that is not a stale marker, 0 if there is
// none.
func (r *receiver) last(series string) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range slices.Backward(r.points[series]) {
		if !p.stale() {
			return p.value
		}
	}
	return 0
}

// list returns the points of a series as text: start>value@at, in milliseconds.
func (r *receiver) list(series string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, p := range r.points[series] {
		if p.start != 0 {
			fmt.Fprintf(&b, "%d>", p.start)
		}
		if p.stale() {
			fmt.Fprintf(&b, "stale@%d ", p.at)
		} else {
			fmt.Fprintf(&b, "%v@%d ", p.value, p.at)
		}
	}
	return strings.TrimSpace(b.String())
}

func (r *receiver) names() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.points {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// writing is a store with a sink, whose flushes the test controls.
type writing struct {
	t     *testing.T
	now   time.Time
	st    *store.Store
	sink  *Sink
	ended chan struct{}
}

func write(t *testing.T, cfg Config, o store.Options) *writing {
	t.Helper()
	w := &writing{t: t, now: time.Unix(1000, 0), ended: make(chan struct{})}
	o.Now = func() time.Time { return w.now }
	w.st = store.New(o)
	w.st.KeepEnded()
	w.st.KeepNames()
	cfg.Store = w.st
	if cfg.Filter.Exclude == nil {
		cfg.Filter = sinktest.NoOwn()
	}
	var err error
	if w.sink, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(w.ended); w.sink.Run(context.Background()) }()
	return w
}

func (w *writing) flush(last bool) {
	w.t.Helper()
	snap := w.st.Flush(store.FlushOptions{Totals: true, Last: last})
	defer snap.Close()
	if err := w.sink.Flush(snap); err != nil {
		w.t.Error(err)
	}
}

// tick flushes 10 s later.
func (w *writing) tick() { w.now = w.now.Add(10 * time.Second); w.flush(false) }

func (w *writing) stop() { w.sink.Close(); <-w.ended }

// sent waits until everything is sent.
func (w *writing) sent() {
	w.t.Helper()
	w.await("an empty queue", func(d flush.SinkDelivery) bool { return d.Bytes == 0 })
}

func (w *writing) await(what string, ok func(flush.SinkDelivery) bool) {
	w.t.Helper()
	sinktest.Await(w.t, what, func() bool { return ok(w.sink.Delivery()) })
}

// own returns a metric of the sink.
func (w *writing) own(name string) uint64 { return sinktest.Own(w.st, "remote_write", name) }

func to(url string) sinkhttp.Config { return sinkhttp.Config{URL: url} }

// silently returns a receiver of version 1.0 that takes requests of 2.0 for its own, and
// finds no series in them.
func silently(r *receiver) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.Contains(req.Header.Get("Content-Type"), "write.v2") {
			_, _ = io.Copy(io.Discard, req.Body)
			w.WriteHeader(http.StatusNoContent)
			return
		}
		r.ServeHTTP(w, req)
	}))
}
