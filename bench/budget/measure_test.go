package budget

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/golden"
)

// recorded returns a Run that replays the outputs in a directory: 1.txt, 2.txt and so
// on, one per round.
func recorded(t *testing.T, folder string) Run {
	t.Helper()
	calls := 0
	return func(names []string) (Round, error) {
		calls++
		f, err := os.Open(filepath.Join("testdata", folder, fmt.Sprint(calls, ".txt")))
		if err != nil {
			return nil, err
		}
		defer f.Close()
		results, err := ParseResults(f)
		round := Round{}
		for _, r := range results {
			round[r.Name] = r.Figures
		}
		return round, err
	}
}

// TestRecorded judges recorded outputs. Each directory has a budget file and is named
// after its content.
func TestRecorded(t *testing.T) {
	for _, folder := range []string{"held", "broken", "noisy", "missing"} {
		t.Run(folder, func(t *testing.T) {
			b, err := ReadFile(filepath.Join("testdata", folder, "budget.txt"))
			if err != nil {
				t.Fatal(err)
			}
			rep, err := Measure(b, 3, recorded(t, folder))
			if err != nil {
				t.Fatal(err)
			}
			var s bytes.Buffer
			if err := rep.Write(&s); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, folder, s.Bytes())
		})
	}
}

func TestMeasureReportsErrors(t *testing.T) {
	b, err := Parse("x", strings.NewReader("BenchmarkA B/op<=1"))
	if err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	if _, err := Measure(b, 2, func([]string) (Round, error) { return nil, boom }); !errors.Is(err, boom) {
		t.Errorf("error %v, want %v", err, boom)
	}
}

func TestSpread(t *testing.T) {
	for _, tt := range []struct {
		xs                []float64
		median, low, high float64
	}{
		{[]float64{3}, 3, 3, 3},
		{[]float64{2, 2, 2, 2}, 2, 2, 2},
		{[]float64{4, 1}, 2.5, 1, 4},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 100}, 5.5, 2.5, 8.5},
	} {
		median, low, high := Spread(tt.xs)
		if median != tt.median || low < tt.low || high > tt.high {
			t.Errorf("Spread(%v) = %v [%v, %v], want %v within [%v, %v]", tt.xs, median, low, high, tt.median, tt.low, tt.high)
		}
	}
}

func TestOver(t *testing.T) {
	for _, tt := range []struct{ median, limit, want float64 }{{1, 2, 0}, {2, 2, 0}, {3, 2, 0.5}, {1, 0, 1}, {0, 0, 0}} {
		if got := (Verdict{Bound: Bound{Limit: tt.limit}, Median: tt.median}).Over(); got != tt.want {
			t.Errorf("%v of %v is %v over, want %v", tt.median, tt.limit, got, tt.want)
		}
	}
}
