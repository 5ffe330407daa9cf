package sinkqueue

import "testing"

func TestCutKeepsLinesAndPairsWhole(t *testing.T) {
	for _, tt := range []struct {
		data  string
		limit int
		want  int
	}{
		{"a:1|c\nb:1|c\nc:1|c", 11, 11},
		{"a:1|c\nb:1|c\nc:1|c", 5, 5},
		{"a:1|c\nb:1|c\nc:1|c", 3, 5},
		{"\na:1|c\nb:1|c", 6, 6},
		{"a:0|g\na:-3|g\nb:1|c", 6, 12},
		{"a:1|c", 3, 5},
	} {
		if got := cut([]byte(tt.data), tt.limit); got != tt.want {
			t.Errorf("%q cut at %d, want %d", tt.data, got, tt.want)
		}
	}
}
