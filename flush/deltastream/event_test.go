package deltastream

import (
	"strings"
	"testing"
	"time"
)

func TestRates(t *testing.T) {
	for _, tt := range []struct {
		delta    uint64
		interval time.Duration
		want     string
	}{
		{0, time.Second, "0"}, {5, 0, "0"}, {5, -1, "0"}, {1, 3 * time.Second, "0.333"}, {10, 4 * time.Second, "2.5"},
		{1, 10_000 * time.Second, "0"}, {999_999_999_999, time.Second, "999999999999"}, {1 << 60, time.Second, "1152921504606847000"},
	} {
		e := &event{interval: tt.interval}
		if got := string(e.rate(nil, tt.delta)); got != tt.want {
			t.Errorf("%d in %v: %s, want %s", tt.delta, tt.interval, got, tt.want)
		}
	}
}

// lines is a writer that keeps its input.
type lines struct{ strings.Builder }

func (*lines) Flush() error { return nil }

// TestListsOfEvents: elements are separated, and numbers are decimal.
func TestListsOfEvents(t *testing.T) {
	w := &lines{}
	e := &event{w: w}
	e.begin(eventID{1, 2}, time.UnixMilli(5), time.Second)
	for _, ref := range []uint64{11, 7, 12} {
		if err := e.gone(ref); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.finish(true); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(w.String(), "[11,7,12]") {
		t.Errorf("event %s", w)
	}
	// An event ends with a last part if a part was sent, an empty one is not sent.
	for parts := range 3 {
		w.Reset()
		e.begin(eventID{1, 3}, time.UnixMilli(5), time.Second)
		for range parts {
			if err := e.part(true); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.finish(false); err != nil {
			t.Fatal(err)
		}
		want := parts
		if parts > 0 {
			want++
		}
		if got := strings.Count(w.String(), "event: delta\n"); got != want {
			t.Errorf("%d parts, then the end: %d events, want %d", parts, got, want)
		}
	}
	w.Reset()
	if err := e.notice("reset", eventID{1, 3}, 3, time.UnixMilli(6), "slow", 12); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(w.String(), `,"reason":"slow","skipped":12}`) {
		t.Errorf("event %s", w)
	}
}
