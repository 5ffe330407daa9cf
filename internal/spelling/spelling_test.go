package spelling

import (
	"slices"
	"testing"
)

func TestNearest(t *testing.T) {
	names := slices.Values([]string{"format", "filter", "file"})
	for _, tt := range []struct {
		word  string
		limit int
		want  string
	}{
		{"format", 0, "format"}, {"formt", 1, "format"}, {"fromat", 1, "format"}, {"fromat", 0, ""}, {"rfomat", 1, ""}, {"lfie", 1, ""}, {"lfie", 2, "file"},
		{"fiter", 2, "filter"}, {"", 3, ""}, {"", 4, "file"}, {"fil", 1, "file"},
	} {
		if got := Nearest(tt.word, names, tt.limit); got != tt.want {
			t.Errorf("Nearest(%q, limit %d) = %q, want %q", tt.word, tt.limit, got, tt.want)
		}
	}
	if got := Nearest("x", slices.Values([]string(nil)), 9); got != "" {
		t.Errorf("nearest of no names: %q", got)
	}
}
