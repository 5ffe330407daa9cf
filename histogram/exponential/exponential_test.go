package exponential_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/histogram/exponential"
)

func fill(t testing.TB, c histogram.Config, values ...float64) (*histogram.Stats, *exponential.Histogram) {
	t.Helper()
	l, err := histogram.NewLayout(c)
	if err != nil {
		t.Fatal(err)
	}
	h := histogram.New(l)
	for _, v := range values {
		h.RecordFloat(v, 1)
	}
	var e exponential.Histogram
	e.Fill(h.Merge().Cumulative, 1)
	return h.Snapshot().Cumulative, &e
}

// TestErrorIsBounded compares exact quantiles with all that a reader can take a
// bucket for.
func TestErrorIsBounded(t *testing.T) {
	for digits, bound := range map[int]float64{2: 0.016, 3: 0.004} {
		r := rand.New(rand.NewPCG(7, 7))
		values := make([]float64, 5000)
		for i := range values {
			values[i] = math.Round(math.Exp(r.Float64()*15)*1000) / 1000
		}
		_, e := fill(t, histogram.Config{SignificantDigits: digits, Scale: 1000}, values...)
		slices.Sort(values)
		at := 0
		for _, b := range e.Positive {
			high := math.Exp2(float64(b.Index) / math.Exp2(float64(e.Schema)))
			low := math.Exp2(float64(b.Index-1) / math.Exp2(float64(e.Schema)))
			for range b.Count {
				v := values[at]
				at++
				if off := max(high/v-1, 1-low/v); off > bound {
					t.Fatalf("%d digits: %v is in (%v, %v], %.4f off", digits, v, low, high, off)
				}
			}
		}
		if at != len(values) || e.Zero != 0 {
			t.Errorf("%d digits: %d values in buckets, want %d", digits, at, len(values))
		}
	}
}

func TestSignsAndZero(t *testing.T) {
	_, e := fill(t, histogram.Config{Signed: true}, -4, -4, -1, 0, 0, 0, 1, 2, 8)
	if want := []exponential.Bucket{{Index: 0, Count: 1}, {Index: 256, Count: 2}}; !slices.Equal(e.Negative, want) || e.Zero != 3 || e.Schema != 7 {
		t.Errorf("%+v", e)
	}
	if want := []exponential.Bucket{{Index: 0, Count: 1}, {Index: 128, Count: 1}, {Index: 384, Count: 1}}; !slices.Equal(e.Positive, want) {
		t.Errorf("%+v", e.Positive)
	}
}

// TestMostBuckets: the schema is coarser only if there are more buckets than the layout
// allows, never coarser than the coarsest, and counts stay.
func TestMostBuckets(t *testing.T) {
	huge := []float64{1e-9, 1, 1e9}
	for _, tt := range []struct {
		name   string
		most   int
		values []float64
		schema int
	}{
		{"no-limit", 0, []float64{-2, 2, 4, 8}, 0},
		{"as-many", 4, []float64{-2, 2, 4, 8}, 0},
		{"one-too-many", 3, []float64{-2, 2, 4, 8}, -1},
		{"zero-does-not-count", 4, []float64{-2, 0, 2, 4, 8}, 0},
		{"one", 1, []float64{2, 3}, -1},
		{"coarsest", 1, huge, -4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, e := fill(t, histogram.Config{Signed: true, Scale: 1e9, NativeFactor: 2, NativeBuckets: tt.most}, tt.values...)
			n := e.Zero
			for _, b := range slices.Concat(e.Negative, e.Positive) {
				n += b.Count
			}
			if e.Schema != tt.schema || n != uint64(len(tt.values)) {
				t.Errorf("schema %d, %d values; want schema %d: %+v", e.Schema, n, tt.schema, e)
			}
		})
	}
}

// TestSpansListEveryBucket decodes random spans.
func TestSpansListEveryBucket(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var want []exponential.Bucket
		index := int32(r.IntN(2000) - 1000)
		for range r.IntN(20) {
			want = append(want, exponential.Bucket{Index: index, Count: uint64(r.IntN(1000) + 1)})
			index += int32(r.IntN(6)) + 1
		}
		var got []exponential.Bucket
		next, count := int32(0), int64(0)
		var indexes []int32
		exponential.Spans(want, func(offset int32, length uint32) {
			next += offset
			for range length {
				indexes = append(indexes, next)
				next++
			}
		}, func(delta int64) {
			count += delta
			if count > 0 {
				got = append(got, exponential.Bucket{Index: indexes[0], Count: uint64(count)})
			}
			indexes = indexes[1:]
		})
		if !slices.Equal(got, want) || len(indexes) != 0 {
			t.Fatalf("%v, want %v; %d indexes without count", got, want, len(indexes))
		}
	}
}

func ExampleHistogram() {
	layout, err := histogram.NewLayout(histogram.Config{Unit: histogram.Milliseconds})
	if err != nil {
		fmt.Println(err)
		return
	}
	h := histogram.New(layout)
	h.Record(10)
	h.RecordN(20, 3)
	h.Merge()
	var e exponential.Histogram
	e.Fill(h.Snapshot().Cumulative, 1)
	for _, b := range e.Positive {
		fmt.Printf("up to %.2f: %d\n", math.Exp2(float64(b.Index)/math.Exp2(float64(e.Schema))), b.Count)
	}
	// Output:
	// up to 10.04: 1
	// up to 20.09: 3
}
