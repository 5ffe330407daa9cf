package pages

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/flush/history"
	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/internal/clocktest"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
)

// drawn returns what f appends to an empty page, for a request with a query.
func drawn(f func(v *view), query ...admin.Pair) string {
	v := &view{now: testNow, query: query, page: &row{path: "stats"}}
	f(v)
	return string(v.Bytes())
}

// boxes matches the class, place and width of each rectangle of a drawing.
var boxes = regexp.MustCompile(`<rect class='([a-z ]+)'(?: x='([0-9.]+)')?(?: y='[0-9.]+')? width='([0-9.]+)%?'`)

func TestCellsOfHosts(t *testing.T) {
	for _, tt := range []struct {
		healthy, degraded, unhealthy int
		want                         string
	}{
		{0, 0, 0, ""},
		{1, 1, 1, "[f ok 0 15] [f warn 17 15] [hollow bad 34.7 13.6]"}, // as wide as of eight
		{0, 0, 25, "[f bad 0 136]"},
		{20, 0, 5, "[f bad 0 27.2] [f ok 27.2 108.8]"},
		{50, 25, 25, "[f bad 0 34] [f warn 34 34] [f ok 68 68]"},
		{9998, 1, 1, "[f bad 0 2] [f warn 2 2] [f ok 4 132]"}, // few are seen beside many
	} {
		var got string
		for _, m := range boxes.FindAllStringSubmatch(drawn(func(v *view) { v.cells(tt.healthy, tt.degraded, tt.unhealthy) }), -1) {
			got += fmt.Sprintf("[%s %s %s] ", m[1], m[2], m[3])
		}
		if got != tt.want && got != tt.want+" " {
			t.Errorf("%d, %d and %d hosts: %s, want %s", tt.healthy, tt.degraded, tt.unhealthy, got, tt.want)
		}
	}
	for n, want := range map[int]int{24: 24, 25: 1} {
		if got := len(boxes.FindAllString(drawn(func(v *view) { v.cells(n, 0, 0) }), -1)); got != want {
			t.Errorf("%d hosts: %d cells, want %d", n, got, want)
		}
	}
}

// TestSquarify: a row grows as long as its worst shape does not get worse.
func TestSquarify(t *testing.T) {
	for _, tt := range []struct {
		sizes []float64
		in    rect
		want  string
	}{
		{nil, rect{0, 0, 4, 2}, "[]"},
		{[]float64{3}, rect{0, 0, 4, 2}, "[{0 0 4 2}]"},
		{[]float64{1, 1}, rect{0, 0, 4, 4}, "[{0 0 4 2} {0 2 4 2}]"}, // two rows are as good
		{[]float64{2, 1, 1}, rect{0, 0, 4, 2}, "[{0 0 2 2} {2 0 2 1} {2 1 2 1}]"},
		{[]float64{2, 1, 1}, rect{0, 0, 2, 4}, "[{0 0 2 2} {0 2 2 1} {0 3 2 1}]"},
	} {
		if got := fmt.Sprint(squarify(tt.sizes, tt.in)); got != tt.want {
			t.Errorf("%v in %v: %s, want %s", tt.sizes, tt.in, got, tt.want)
		}
	}
}

func TestBars(t *testing.T) {
	for share, want := range map[float64]string{-1: "", 0: "", 1e-9: "1", 0.01: "1", 0.5: "50", 1: "100", 7: "100"} {
		got := ""
		if list := boxes.FindAllStringSubmatch(drawn(func(v *view) { v.bar(share, "warn") }), -1); len(list) > 1 {
			got = list[1][3]
		}
		if got != want {
			t.Errorf("%v: %q, want %q", share, got, want)
		}
	}
	for share, want := range map[float64]string{0: "", 0.74: "", 0.75: "warn", 0.94: "warn", 0.95: "bad", 2: "bad"} {
		if got := nearLimit(share); got != want {
			t.Errorf("%v is %q, want %q", share, got, want)
		}
	}
}

func TestSparkLines(t *testing.T) {
	points := regexp.MustCompile(`points='([^']*) '`)
	for name, tt := range map[string]struct {
		spark spark
		want  string
	}{
		"one-point":     {spark{points: []float64{7}}, ""},
		"always-zero":   {spark{points: []float64{0, 0, 0}}, ""},
		"counter":       {spark{points: []float64{0, 4, 8}, fromZero: true}, "92.7,18.5 94.4,10.0 96.0,1.5"},
		"counter-flat":  {spark{points: []float64{8, 8, 8}, fromZero: true}, "92.7,1.5 96.0,1.5"},
		"gauge":         {spark{points: []float64{100, 200}}, "94.4,18.5 96.0,1.5"},
		"gauge-flat":    {spark{points: []float64{5, 5}}, "94.4,10.0 96.0,10.0"},
		"gauge-noise":   {spark{points: []float64{100, 101}}, "94.4,10.8 96.0,9.2"},
		"gauge-below":   {spark{points: []float64{-2, -1}}, "94.4,18.5 96.0,1.5"},
		"straight-part": {spark{points: []float64{1, 1, 1, 2, 2}, fromZero: true}, "89.5,10.0 92.7,10.0 94.4,1.5 96.0,1.5"},
	} {
		got := ""
		if m := points.FindStringSubmatch(drawn(func(v *view) { v.sparkLine(&tt.spark) })); m != nil {
			got = m[1]
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestSparksAdd expects sums from the last steps backward.
func TestSparksAdd(t *testing.T) {
	s := spark{points: []float64{1, 2}, step: time.Second, latest: 2}
	s.add(spark{points: []float64{10, 20, 30}, step: 5 * time.Second, latest: 30})
	s.add(spark{points: []float64{100}, step: time.Second, latest: 100})
	if want := []float64{10, 21, 132}; !slices.Equal(s.points, want) || s.step != 5*time.Second || s.latest != 132 || !s.fromZero {
		t.Errorf("%+v, want %v", s, want)
	}
}

func TestTicksOfTime(t *testing.T) {
	steps := []string{"1s", "2s", "5s", "10s", "30s", "1m0s", "2m0s", "5m0s", "10m0s", "20m0s", "1h0m0s", "2h0m0s", "4h0m0s", "12h0m0s"}
	length := time.Nanosecond // the shortest with the step
	for _, want := range steps {
		step := tickStep(length)
		if step.String() != want || tickStep(6*step) != step {
			t.Errorf("%v: %v, want %v; %v: %v", length, step, want, 6*step, tickStep(6*step))
		}
		length = 6*step + 1
	}
	for d, want := range map[time.Duration]string{time.Minute: "1 min", time.Hour: "1 h", 61 * time.Second: "1 min 1 s", 90 * time.Minute: "1 h 30 min", 10 * time.Second: "10 s"} {
		if got := shortSpan(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestSamplesOfAPeriod(t *testing.T) {
	at := func(s int) time.Time { return testNow.Add(time.Duration(s) * time.Second) }
	var l line
	for i := range 4 {
		l.samples = append(l.samples, sample{start: at(10 * i), end: at(10*i + 10), value: float64(i)})
	}
	for _, tt := range []struct{ from, to, first, last int }{
		{0, 40, 0, 3}, {10, 30, 1, 2}, {9, 31, 0, 3}, {11, 12, 1, 1}, {-50, 1, 0, 0}, {39, 90, 3, 3}, {40, 90, 0, -1}, {-5, 0, 0, -1},
	} {
		got := l.within(period{at(tt.from), at(tt.to)})
		if want := l.samples[tt.first : tt.last+1]; !slices.Equal(got, want) {
			t.Errorf("from %d to %d: %v, want %v", tt.from, tt.to, got, want)
		}
	}
}

// TestPeriods: the default is five minutes, not before the line begins; a period has a
// second at least.
func TestPeriods(t *testing.T) {
	ago := func(d time.Duration) line { return line{samples: []sample{{start: testNow.Add(-d)}}} }
	ms := func(d time.Duration) string { return fmt.Sprint(testNow.Add(d).UnixMilli()) }
	for _, tt := range []struct {
		line     line
		query    []admin.Pair
		from, to time.Duration
	}{
		{line{}, nil, -5 * time.Minute, 0},
		{ago(time.Hour), nil, -5 * time.Minute, 0},
		{ago(time.Minute), nil, -time.Minute, 0},
		{ago(0), nil, -5 * time.Minute, 0},
		{ago(2 * time.Hour), []admin.Pair{{Name: "over", Value: "1h"}}, -time.Hour, 0},
		{ago(time.Hour), []admin.Pair{{Name: "from", Value: ms(-40 * time.Second)}, {Name: "to", Value: ms(-30 * time.Second)}}, -40 * time.Second, -30 * time.Second},
		{ago(time.Hour), []admin.Pair{{Name: "from", Value: "-5"}, {Name: "to", Value: "x"}}, -5 * time.Minute, 0},
		{ago(time.Hour), []admin.Pair{{Name: "from", Value: ms(-time.Second)}}, -time.Second, 0},
		{ago(time.Hour), []admin.Pair{{Name: "from", Value: ms(-999 * time.Millisecond)}}, -time.Second, 0},
	} {
		v := &view{now: testNow, query: tt.query}
		got := v.period(&tt.line)
		if from, to := got.from.Sub(testNow), got.to.Sub(testNow); from != tt.from || to != tt.to {
			t.Errorf("%v: from %v to %v, want %v to %v", tt.query, from, to, tt.from, tt.to)
		}
	}
}

// TestPeriodWhenTheClockIsSet: a period has the samples of the time that has passed, not
// steps with the same times before the clock was set.
func TestPeriodWhenTheClockIsSet(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		end, l := time.Now(), line{}
		for i := range 6 {
			start := end
			end = start.Add(10 * time.Second)
			l.samples = append(l.samples, sample{start: start, end: end, value: float64(i)})
			if i == 2 {
				end = clocktest.Set(end, by)
			}
		}
		v := &view{now: end, query: []admin.Pair{
			{Name: "from", Value: fmt.Sprint(end.Add(-41 * time.Second).UnixMilli())}, {Name: "to", Value: fmt.Sprint(end.Add(-29 * time.Second).UnixMilli())},
		}}
		if got := l.within(v.period(&l)); !slices.Equal(got, l.samples[1:4]) {
			t.Errorf("clock set by %v: %v, want %v", by, got, l.samples[1:4])
		}
	}
}

func TestAxis(t *testing.T) {
	for name, tt := range map[string]struct {
		axis       axis
		at         map[float64]float64
		ticks      []float64
		in, middle float64
	}{
		"linear":  {axis{0, 10, false}, map[float64]float64{-1: 0, 0: 0, 2.5: 25, 10: 100, 11: 100}, []float64{0, 2, 4, 6, 8, 10}, 5, 50},
		"log":     {axis{1, 100, true}, map[float64]float64{0: 0, 1: 0, 10: 50, 100: 100, 1e9: 100}, []float64{1, 2, 5, 10, 20, 50, 100}, 10, 50},
		"thinned": {axis{1, 10_000, true}, nil, []float64{1, 10, 100, 1000, 10_000}, 100, 50},
		"narrow":  {axis{30, 40, true}, nil, []float64{30, 32, 34, 36, 38, 40}, 30, 0}, // too few for powers of ten
	} {
		for x, want := range tt.at {
			if got := tt.axis.at(x); math.Abs(got-want) > 1e-9 {
				t.Errorf("%s: %v is at %v, want %v", name, x, got, want)
			}
		}
		got := tt.axis.ticks()
		if !slices.EqualFunc(got, tt.ticks, func(a, b float64) bool { return math.Abs(a-b) < 1e-9*math.Max(1, b) }) {
			t.Errorf("%s: ticks %v, want %v", name, got, tt.ticks)
		}
		if got := tt.axis.value(tt.middle / 100); math.Abs(got-tt.in) > 1e-9 {
			t.Errorf("%s: at %v is %v, want %v", name, tt.middle, got, tt.in)
		}
	}
}

func TestColumnsOfThePast(t *testing.T) {
	layout, err := histogram.NewLayout(histogram.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var p past
	for i := range 10 {
		start := testNow.Add(time.Duration(i) * time.Second)
		p.steps = append(p.steps, history.Point{Start: start, End: start.Add(time.Second)})
	}
	for _, tt := range []struct {
		from, n int
		want    []int // lengths in seconds
	}{
		{0, 10, []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}, {0, 5, []int{2, 2, 2, 2, 2}}, {0, 3, []int{1, 3, 3, 3}}, {5, 1, []int{5}}, {9, 4, []int{1}}, {10, 4, nil},
	} {
		var got []int
		at := testNow.Add(time.Duration(tt.from) * time.Second)
		for _, c := range p.columns(layout, at, tt.n) {
			if !c.Start.Equal(at) {
				t.Errorf("from %d in %d: a column begins at %v, want %v", tt.from, tt.n, c.Start, at)
			}
			at = c.End
			got = append(got, int(c.End.Sub(c.Start)/time.Second))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("from %d in %d: %v, want %v", tt.from, tt.n, got, tt.want)
		}
	}
	for _, tt := range []struct{ from, to, length, end int }{{2, 4, 2, 4}, {-5, 1, 1, 1}, {9, 50, 1, 10}, {10, 50, 0, 0}, {-5, 0, 0, 0}} {
		_, length, end := p.between(layout, testNow.Add(time.Duration(tt.from)*time.Second), testNow.Add(time.Duration(tt.to)*time.Second))
		if length != time.Duration(tt.length)*time.Second || tt.end > 0 && !end.Equal(testNow.Add(time.Duration(tt.end)*time.Second)) || tt.end == 0 && !end.IsZero() {
			t.Errorf("between %d and %d: %v until %v, want %d until %d", tt.from, tt.to, length, end, tt.length, tt.end)
		}
	}
}

func TestPagers(t *testing.T) {
	const off = "<span class='btn off' aria-disabled='true'>"
	link := func(rel, label, query string) string {
		return "<a class='btn' rel='" + rel + "' href='stats" + query + "'>" + label + "</a>"
	}
	for _, tt := range []struct {
		offset, shown, total, limit int
		want                        string
	}{
		{0, 0, 0, 50, "0 of 0</span><span class='row end'>" + off + "Previous</span>" + off + "Next</span>"},
		{0, 50, 50, 50, "1 to 50 of 50</span><span class='row end'>" + off + "Previous</span>" + off + "Next</span>"},
		{0, 50, 51, 50, "Showing 1 to 50 of 51: fewer</span><span class='row end'>" + off + "Previous</span>" + link("next", "Next", "?offset=50")},
		{20, 31, 51, 50, "Showing 21 to 51 of 51: fewer</span><span class='row end'>" + link("prev", "Previous", "") + off + "Next</span>"},
		{2000, 1000, 4000, 1000, "Showing 2,001 to 3,000 of 4,000: fewer</span><span class='row end'>" + link("prev", "Previous", "?offset=1000") + link("next", "Next", "?offset=3000")},
	} {
		got := drawn(func(v *view) { v.pager(tt.offset, tt.shown, tt.total, tt.limit, ": fewer") })
		id := ""
		if tt.shown < tt.total {
			id = " id='truncated'"
		}
		if want := "<div class='pad row line pager'><span" + id + ">" + tt.want + "</span></div>\n"; got != want {
			t.Errorf("%+v: got\n%s\nwant\n%s", tt, got, want)
		}
	}
}

func TestOrders(t *testing.T) {
	for _, tt := range []struct {
		sort, dir string
		want      order
	}{
		{"", "", order{"size", true}}, {"", "asc", order{"size", false}}, {"name", "", order{"name", false}}, {"name", "desc", order{"name", true}},
		{"size", "asc", order{"size", false}}, {"size", "x", order{"size", true}}, {"other", "asc", order{"size", true}}, {"-size", "asc", order{"size", true}},
	} {
		v := &view{query: []admin.Pair{{Name: "sort", Value: tt.sort}, {Name: "dir", Value: tt.dir}}}
		if got := v.sorted("-size", "name"); got != tt.want {
			t.Errorf("%q %q: %+v, want %+v", tt.sort, tt.dir, got, tt.want)
		}
	}
}

// TestAxisOfValues expects an axis around a single value, and no logarithms of values
// that have none.
func TestAxisOfValues(t *testing.T) {
	for name, tt := range map[string]struct {
		values []float64
		log    bool
		want   axis
		bins   int // of at most 40
	}{
		"two":       {[]float64{1, 1000}, false, axis{1, 1000, false}, 40},
		"two-log":   {[]float64{1, 1000}, true, axis{1, 1000, true}, 40},
		"zero-log":  {[]float64{0, 1000}, true, axis{0, 1000, false}, 40},
		"one":       {[]float64{100}, false, axis{90, 110, false}, 0},
		"one-log":   {[]float64{100}, true, axis{90, 110, true}, 0},
		"small-log": {[]float64{0.25}, true, axis{-0.25, 0.75, false}, 0},
		"negative":  {[]float64{-100}, true, axis{-110, -90, false}, 0},
		"zero":      {[]float64{0}, true, axis{-0.5, 0.5, false}, 0},
		"none":      {nil, true, axis{-0.5, 0.5, false}, 40},
	} {
		layout, err := histogram.NewLayout(histogram.Config{Scale: 1000, Signed: true})
		if err != nil {
			t.Fatal(err)
		}
		hist := histogram.New(layout)
		for _, x := range tt.values {
			hist.RecordFloat(x, 1)
		}
		s := hist.Merge().Cumulative
		got := newAxis(s, tt.log)
		if math.Abs(got.low-tt.want.low) > 0.01 || math.Abs(got.high-tt.want.high) > 0.01 || got.log != tt.want.log {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
		if n := binCount(s, got, 40); tt.bins > 0 && n != tt.bins || n < 1 || n > 40 {
			t.Errorf("%s: %d bins, want %d", name, n, tt.bins)
		}
	}
}

// TestSmallHistograms draws a bar for each of the 18 parts that has a value, the least
// one unit tall.
func TestSmallHistograms(t *testing.T) {
	layout, err := histogram.NewLayout(histogram.Config{Scale: 1000, Signed: true})
	if err != nil {
		t.Fatal(err)
	}
	hist := histogram.New(layout)
	hist.RecordFloat(-900, 1)
	hist.RecordFloat(900, 40)
	hist.RecordFloat(0, 20)
	want := "<svg class='s' viewBox='0 0 96 20' aria-hidden='true'>" +
		"<rect class='f' x='0' y='19' width='4.3' height='1'/>" +
		"<rect class='f' x='48' y='10' width='4.3' height='10'/>" +
		"<rect class='f' x='90.7' y='0' width='4.3' height='20'/>" +
		"<path class='base' d='M0 19.75h96'/></svg>"
	if got := drawn(func(v *view) { v.miniHistogram(hist.Merge().Cumulative) }); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestTheWayToAPrefix expects a link for each part of a prefix but the last, which is
// where one is.
func TestTheWayToAPrefix(t *testing.T) {
	links := regexp.MustCompile(`<a href='explorer([^']*)'>([^<]*)</a>`)
	for _, tt := range []struct{ prefix, tag, want string }{
		{"", "", "[All stats ]"},
		{"a.", "", "[All stats ] / a."},
		{"a.bc.d.", "", "[All stats ] / [a. ?prefix=a.][bc. ?prefix=a.bc.]d."},
		{"a.bc.d", "", "[All stats ] / [a. ?prefix=a.][bc. ?prefix=a.bc.]d"},
		{"a.bc.", "site", "[All stats ] / [a. ?prefix=a.][bc. ?prefix=a.bc.] / tag site"},
		{"", "site", "[All stats ] / tag site"},
	} {
		got := drawn(func(v *view) {
			v.page = &row{path: "explorer"}
			v.crumbs(store.Explore{Prefix: tt.prefix, Tag: tt.tag})
		})
		if got = links.ReplaceAllString(got, "[$2 $1]"); got != "<p class='crumbs'>"+tt.want+"</p>\n" {
			t.Errorf("%q, tag %q: %s, want %s", tt.prefix, tt.tag, got, tt.want)
		}
	}
}

// TestOpenedIsAMomentOfThePast expects the present for other values.
func TestOpenedIsAMomentOfThePast(t *testing.T) {
	ms := testNow.UnixMilli()
	for value, want := range map[string]int64{"": ms, "x": ms, "-5": ms, "0": ms, "1": 1, fmt.Sprint(ms - 1): ms - 1, fmt.Sprint(ms + 1): ms, "99999999999999999999": ms} {
		v := &view{now: testNow, query: []admin.Pair{{Name: "opened", Value: value}}}
		if got := v.opened().UnixMilli(); got != want {
			t.Errorf("%q: %d, want %d", value, got, want)
		}
	}
}

// TestPlotOfAnEmptyInterval expects the summary of all values.
func TestPlotOfAnEmptyInterval(t *testing.T) {
	layout, err := histogram.NewLayout(histogram.Config{})
	if err != nil {
		t.Fatal(err)
	}
	hist := histogram.New(layout)
	for recorded := range 2 {
		hist.Merge()
		hist.RecordFloat(7, 1)
		s := &both{hist.Merge(), "Interval", "Since the start", false}
		want := "aria-label='Interval: 1 values, median 7"
		if recorded == 1 {
			s.Interval = layout.Empty()
			want = "aria-label='Since the start: 2 values, median 7"
		}
		a := newAxis(s.Cumulative, false)
		if got := drawn(func(v *view) { v.plot(s, a, bins(s.Snapshot, a, 4), false) }); !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestFaultsAreMarked expects a mark from the fault to the end of a line.
func TestFaultsAreMarked(t *testing.T) {
	for _, tt := range []struct {
		line string
		at   int
		want string
	}{
		{"bad:1", -1, "bad:1"}, {"bad:1", 0, "[bad:1]"}, {"bad:1\x00", 3, "bad[:1␀]"}, {"bad:1", 5, "bad:1[]"}, {"bad:1", 9, "bad:1[]"}, {"", 0, "(empty)"},
	} {
		got := drawn(func(v *view) { v.faulty(tt.line, tt.at) })
		if got = strings.NewReplacer("<mark class='bad'>", "[", "</mark>", "]").Replace(got); got != tt.want {
			t.Errorf("%q from %d: %s, want %s", tt.line, tt.at, got, tt.want)
		}
	}
}

// TestIngestShowsTen expects the first ten names and tags, and the ten newest series.
func TestIngestShowsTen(t *testing.T) {
	var rep report.Report
	for i := range 12 {
		name := fmt.Sprintf("n%02d", i)
		rep.TopSeries = append(rep.TopSeries, report.NameCount{Name: name, Count: 1})
		rep.Newest = append(rep.Newest, report.NewSeries{Name: name, Time: testNow})
	}
	rep.TopTags = rep.TopSeries
	got := drawn(func(v *view) { v.r = new(admin.Request); v.tops(&rep) })
	for name, want := range map[string]int{"n00": 2, "n01": 2, "n02": 3, "n09": 3, "n10": 1, "n11": 1} {
		if n := strings.Count(got, ">"+name+"<"); n != want {
			t.Errorf("%s is in %d tables, want %d", name, n, want)
		}
	}
}

// TestEstimatedTagValues expects a word before a number that is not exact.
func TestEstimatedTagValues(t *testing.T) {
	list := []store.TagCount{{Name: "a", Series: 3, Values: 2, Exact: true}, {Name: "b", Series: 5, Values: 4}}
	got := drawn(func(v *view) { v.r = new(admin.Request); v.tagTable("", list) })
	if strings.Count(got, "about ") != 1 || !strings.Contains(got, "about 4") {
		t.Error(got)
	}
}

// TestStripHasGaps expects no line through steps without values, and a short line for a
// step that stands alone.
func TestStripHasGaps(t *testing.T) {
	layout, err := histogram.NewLayout(histogram.Config{})
	if err != nil {
		t.Fatal(err)
	}
	hist := histogram.New(layout)
	hist.RecordFloat(7, 1)
	some, none := hist.Merge().Interval, layout.Empty()
	for lines, steps := range map[int][]*histogram.Stats{1: {none, some, some, none}, 2: {some, none, none, some}} {
		var rows []history.Point
		for i, s := range steps {
			start := testNow.Add(time.Duration(i-len(steps)) * time.Second)
			rows = append(rows, history.Point{Start: start, End: start.Add(time.Second), Stats: s})
		}
		_, got, _ := strings.Cut(drawn(func(v *view) { v.strip(rows, newAxis(some, false), 4) }), "<path class='through' d='")
		got, _, _ = strings.Cut(got, "'")
		if strings.Count(got, "M") != lines || strings.Count(got, "L") != 2 {
			t.Errorf("%d lines, want %d: %s", strings.Count(got, "M"), lines, got)
		}
	}
}
