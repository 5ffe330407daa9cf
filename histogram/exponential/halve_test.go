package exponential

import (
	"slices"
	"testing"
)

// TestHalve joins the buckets (2i-1, 2i) into bucket i of the coarser schema, on both sides
// of zero, with and without a neighbor.
func TestHalve(t *testing.T) {
	h := Histogram{
		Schema:   3,
		Positive: []Bucket{{-4, 1}, {-3, 2}, {-1, 3}, {0, 4}, {1, 5}, {2, 6}, {3, 7}, {8, 8}},
		Negative: []Bucket{{5, 1}, {6, 1}, {7, 2}},
	}
	h.Halve()
	positive := []Bucket{{-2, 1}, {-1, 2}, {0, 7}, {1, 11}, {2, 7}, {4, 8}}
	if h.Schema != 2 || !slices.Equal(h.Positive, positive) || !slices.Equal(h.Negative, []Bucket{{3, 2}, {4, 2}}) {
		t.Errorf("%+v, want %v", h, positive)
	}
}

// TestSpansOfAnEdge has gaps of the greatest width that is filled and of one more.
func TestSpansOfAnEdge(t *testing.T) {
	var spans []int64
	var counts []int64
	last := int64(0)
	Spans([]Bucket{{-2, 5}, {1, 7}, {5, 9}, {6, 1}}, func(offset int32, length uint32) { spans = append(spans, int64(offset), int64(length)) },
		func(d int64) { last += d; counts = append(counts, last) })
	if !slices.Equal(spans, []int64{-2, 4, 3, 2}) || !slices.Equal(counts, []int64{5, 0, 0, 7, 9, 1}) {
		t.Errorf("spans %v, counts %v", spans, counts)
	}
}
