package top

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestWideCharacters has the ends of the ranges whose characters take two columns, and
// their neighbors.
func TestWideCharacters(t *testing.T) {
	for _, tt := range []struct{ from, to rune }{
		{0x1100, 0x115f}, {0x2e80, 0x303e}, {0x3040, 0xa4cf}, {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe30, 0xfe6f}, {0xff00, 0xff60},
		{0xffe0, 0xffe6}, {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd},
	} {
		if wide(tt.from-1) || !wide(tt.from) || !wide(tt.to) || wide(tt.to+1) {
			t.Errorf("%x to %x: %t, %t to %t, %t", tt.from, tt.to, wide(tt.from-1), wide(tt.from), wide(tt.to), wide(tt.to+1))
		}
	}
}

func TestTexts(t *testing.T) {
	st := Style{}
	for _, tt := range []struct{ got, want string }{
		{st.right("ab", 2), "ab"}, {st.right("ab", 3), " ab"}, {st.right("abcd", 3), "a…d"},
		{st.levels([]float64{0, -1, 1, 4, 8}), "  ▁▄█"}, {st.levels([]float64{0, 0}), "  "}, {st.levels([]float64{0.001, 8}), "▁█"},
		{st.bar(0, 4), "░░░░"}, {st.bar(0.01, 4), "█░░░"}, {st.bar(2, 4), "████"},
		{st.rate(0, 9), ""}, {st.rate(3, 9), "3.0"}, {st.rate(12345.6, 9), "12,346"}, {st.rate(1e8, 9), "100.00M"},
		{st.change("0", 9), ""}, {st.change("", 9), ""}, {st.change("6.5", 9), "+6.5"}, {st.change("-1234", 9), "\u22121,234"}, {Style{ASCII: true}.change("-1234", 9), "-1,234"},
		{st.change("18014398509481985", 30), "+18,014,398,509,481,985"},
		{st.change("12345678", 9), "+12.35M"}, {st.change("-12345678", 9), "\u221212.35M"}, {Style{ASCII: true}.change("-12345678", 9), "-12.35M"},
		{st.measured(85.3, "milliseconds", 8), "85.3 ms"}, {st.measured(1023*1024, "bytes", 8), "1,023KiB"}, {Style{ASCII: true}.measured(0.25, "milliseconds", 8), "250 us"},
		{st.measured(123456789, "unspecified", 8), "123.46M"}, {st.measured(1e12, "milliseconds", 8), "1.00Gs"}, {st.measured(0.5, "percent", 8), "50 %"}, {st.number(1<<52, 21), "4,503,599,627,370,496"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

// TestSmallestScreen: the smallest screen has rows, a smaller one says that it is.
func TestSmallestScreen(t *testing.T) {
	s := newScreen(Style{}, "h", "", "name")
	feed(t, s, start)
	for _, tt := range []struct {
		columns, lines int
		small          bool
	}{
		{leastColumns, frame + 1, false}, {leastColumns - 1, frame + 1, true}, {leastColumns, frame, true}, {0, 0, true},
	} {
		got := s.draw(tt.columns, tt.lines)
		if small := len(got) == 1; small != tt.small || !small && len(got) != tt.lines {
			t.Errorf("%d columns, %d lines: %q", tt.columns, tt.lines, got)
		}
	}
}

// TestFilterIsBounded types a long filter.
func TestFilterIsBounded(t *testing.T) {
	s := newScreen(Style{}, "", "", "name")
	s.key("/", 10)
	for range 1001 {
		s.key("x", 10)
	}
	s.key("enter", 10)
	if len(s.filter) != 1000 {
		t.Errorf("a filter of %d bytes", len(s.filter))
	}
}

// TestOnlyHistogramsOpen: Enter on another stat says why nothing opens.
func TestOnlyHistogramsOpen(t *testing.T) {
	s := newScreen(Style{}, "", "", "name")
	feed(t, s, start)
	for i := range s.rows() {
		s.view, s.selected, s.message = viewStats, i, ""
		r := s.current()
		s.key("enter", 10)
		if opened := s.view == viewHistogram; opened != (r.kind == "histogram") || opened == (s.message != "") {
			t.Errorf("%s: opened %t, message %q", r.kind, opened, s.message)
		}
	}
}

// TestHeadWithoutEvents has no time before the first event.
func TestHeadWithoutEvents(t *testing.T) {
	if head := newScreen(Style{}, "h", "", "name").head(80); strings.Contains(head, "1970") || strings.Contains(head, "Z") {
		t.Error(head)
	}
}

// TestGroupedBins: when bins share a line, its count is their sum and the shares of all
// lines make the whole.
func TestGroupedBins(t *testing.T) {
	var bins []string
	for i := range 20 {
		bins = append(bins, fmt.Sprintf("[%d,1,%d]", 10+i, 1+i%2))
	}
	d, err := readDistribution([]byte(`{"v":1,"histograms":1,"unit":"ms","count":30,"sum":60,"min":10,"max":30,"quantiles":[],"bins":[` + strings.Join(bins, ",") + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	lines := d.lines(Style{}, 80, 8)
	if want := "30 values from 10 to 30, buckets in ms"; lines[0] != want {
		t.Errorf("got %q, want %q", lines[0], want)
	}
	lines = lines[3:]
	if len(lines) != 5 {
		t.Errorf("%d lines", len(lines))
	}
	for i, l := range lines {
		want := fmt.Sprintf("%9d - %-9d  %9d   20.0%%", 10+4*i, 14+4*i, 6)
		if !strings.HasPrefix(l, want) {
			t.Errorf("got %q, want %q", l, want)
		}
	}
}

// TestEmptyDistributions: without values there is nothing to draw.
func TestEmptyDistributions(t *testing.T) {
	for _, body := range []string{`{"min":1,"max":2,"bins":[]}`, `{"min":null,"max":null,"quantiles":[[50,null]],"bins":[]}`, `{}`} {
		d, err := readDistribution([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if lines := d.lines(Style{}, 80, 8); !slices.Equal(lines, []string{"No recorded values"}) {
			t.Errorf("%s: %q", body, lines)
		}
	}
}

// TestWidths: columns appear from a width on, and the name keeps some of it.
func TestWidths(t *testing.T) {
	for width, want := range map[int]string{
		leastColumns: "", 59: "", 60: " change", 71: " change", 72: " change trend", 95: " change trend", 96: " change trend ago",
		119: " change trend ago", 120: " change trend ago wide",
	} {
		name, value, trend, change, ago := heads(width)
		got := ""
		for i, there := range []bool{change, trend, ago, value == wideValue} {
			if there {
				got += []string{" change", " trend", " ago", " wide"}[i]
			}
		}
		if got != want || name < 1 {
			t.Errorf("%d columns:%s and %d for the name, want%s", width, got, name, want)
		}
	}
}

// TestMalformedClusters keeps the reason of a bad answer.
func TestMalformedClusters(t *testing.T) {
	if b, err := readBoard([]byte("{"), 0, nil); err == nil || b != nil || !strings.Contains(err.Error(), "malformed answer") {
		t.Errorf("%v, %v", b, err)
	}
}

// TestBoards: a host counts as unhealthy for any reason, and rates need time between
// two reads.
func TestBoards(t *testing.T) {
	host := func(health string) string {
		return fmt.Sprintf(`{"stats":[{"name":"rq_total","value":"60"}],"health_status":{%s}}`, health)
	}
	answer := `{"cluster_statuses":[{"name":"c","host_statuses":[` + strings.Join([]string{
		host(`"eds_health_status":"UNHEALTHY"`), host(`"eds_health_status":"HEALTHY"`), host(`"eds_health_status":"DEGRADED"`), host(`"eds_health_status":"UNKNOWN"`),
		host(`"failed_active_health_check":true,"eds_health_status":"HEALTHY"`), host(`"failed_outlier_check":true`), host(`"excluded_via_immediate_hc_fail":true`),
		host(`"failed_outlier_check":false`),
	}, ",") + "]}]}"
	for elapsed, rate := range map[int64]float64{-1: 0, 0: 0, 1: 480_000, 4000: 120} {
		b, err := readBoard([]byte(answer), 1000+elapsed, &board{totals: map[string]float64{"c": 0}, millis: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if c := b.rows[0]; c.hosts != 8 || c.healthy != 4 || c.rate != rate {
			t.Errorf("after %d ms: %d of %d hosts are healthy, want 4 of 8; %v requests per second, want %v", elapsed, c.healthy, c.hosts, c.rate, rate)
		}
	}
}

// TestLongestEvent has a line of the limit and a longer line.
func TestLongestEvent(t *testing.T) {
	for _, more := range []int{0, 1} {
		r := newReader(strings.NewReader(strings.Repeat("x", maxEvent-1+more) + "\n"))
		if line, err := r.readLine(); (err == nil) != (more == 0) || err == nil && len(line) != maxEvent-1 {
			t.Errorf("%d bytes more: %d bytes, %v", more, len(line), err)
		}
	}
}

// TestDelays: attempts to reach the server come at growing distances, and soon again
// after a success.
func TestDelays(t *testing.T) {
	var got []time.Duration
	l := newLoop(Config{After: func(d time.Duration) <-chan time.Time { got = append(got, d); return nil }})
	s := newScreen(Style{}, "", "", "name")
	for range 6 {
		l.take(s, news{err: errors.New("lost")})
	}
	l.take(s, news{event: &event{}})
	l.take(s, news{err: errors.New("lost")})
	l.take(s, news{err: &Refused{"no"}}) // is not tried again
	want := "[1s 2s 4s 8s 10s 10s 1s]"
	if fmt.Sprint(got) != want {
		t.Errorf("delays %v, want %s", got, want)
	}
	if l = newLoop(Config{}); l.After == nil {
		t.Error("without a clock nothing is tried again")
	}
}

// TestNewStreamEndsTheOld: the request of a stream ends when another filter replaces it.
func TestNewStreamEndsTheOld(t *testing.T) {
	requests := make(chan context.Context, 2)
	l := newLoop(Config{Get: func(ctx context.Context, _ string) (io.ReadCloser, error) {
		requests <- ctx
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	ctx, cancel := context.WithCancel(t.Context())
	l.open(ctx, "a")
	first := <-requests
	l.open(ctx, "b")
	<-first.Done()
	second := <-requests
	if second.Err() != nil {
		t.Error("the new stream has ended too")
	}
	cancel()
	<-second.Done()
}

// TestColumns: what stats can be sorted by is a copy.
func TestColumns(t *testing.T) {
	all := Columns()
	if len(all) != len(columns) {
		t.Fatalf("%v", all)
	}
	all[0] = ""
	if Columns()[0] == "" {
		t.Error("a caller can change the columns")
	}
}

// TestEntries: elements of an event are read as they were sent, and missing ones are
// empty.
func TestEntries(t *testing.T) {
	for text, want := range map[json.Number]uint64{"0": 0, "120": 120, "9007199254740993": 9007199254740993, "18446744073709551615": math.MaxUint64, "-1": 0} {
		if got := (entry{text}).id(); got != want {
			t.Errorf("id %s: %d", text, got)
		}
	}
	e := entry{json.Number("1"), "name", nil, []any{json.Number("0.5"), "NaN", json.Number("1e3")}}
	for i, want := range []string{"1", "name", "", "", ""} {
		if got := e.text(i); got != want {
			t.Errorf("element %d: %q, want %q", i, got, want)
		}
	}
	if q, ok := e.quantiles(); !ok || q[0] != 0.5 || !math.IsNaN(q[1]) || q[2] != 1000 {
		t.Errorf("quantiles %v, %t", q, ok)
	}
	for _, short := range []entry{nil, e[:3], {json.Number("1"), "", "", []any{json.Number("1"), json.Number("2")}}} {
		if _, ok := short.quantiles(); ok {
			t.Errorf("%v has quantiles", short)
		}
	}
}

// TestKeysWithoutAStat: keys for the selected stat do nothing where there is none.
func TestKeysWithoutAStat(t *testing.T) {
	for name, prepare := range map[string]func(s *screen){
		"no stats": func(*screen) {}, "other view": func(s *screen) { feed(t, s, start); s.show(viewClusters) },
	} {
		s := newScreen(Style{}, "", "", "name")
		prepare(s)
		view := s.view
		press(s, "space c enter")
		if s.current() != nil || len(s.pinned) != 0 || s.copied != "" || s.message != "" || s.view != view {
			t.Errorf("%s: pinned %v, copied %q, message %q, view %v", name, s.pinned, s.copied, s.message, s.view)
		}
	}
}

func TestBars(t *testing.T) {
	for share, want := range map[float64]string{0: "....", 0.01: "#...", 0.5: "##..", 2: "####", -1: "...."} {
		if got := (Style{ASCII: true}).bar(share, 4); got != want {
			t.Errorf("%v: %q, want %q", share, got, want)
		}
	}
	if got := (Style{}).bar(0.5, 4); got != "██░░" {
		t.Errorf("not ASCII: %q", got)
	}
}
