package pages

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/admin/dump"
	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

func TestNumbers(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{sizeText(1536), "1.5" + thin + "KiB"}, {sizeText(0), "0" + thin + "B"},
		{measuredText(8.21, store.Milliseconds), "8.21" + thin + "ms"}, {measuredText(250, store.Microseconds), "250" + thin + "µs"}, {measuredText(90000, store.Milliseconds), "90" + thin + "s"},
		{measuredText(0.5, store.Percent), "50" + thin + "%"}, {measuredText(0.25, store.Seconds), "250" + thin + "ms"}, {measuredText(math.NaN(), store.Bytes), none}, {measuredText(7, store.Unspecified), "7"},
		{plural(1, "host"), "1 host"}, {plural(1200, "host"), "1,200 hosts"},
		{sizeText(1023), "1,023" + thin + "B"}, {sizeText(1024), "1" + thin + "KiB"}, {sizeText(-2048), "\u22122" + thin + "KiB"}, {sizeText(1 << 60), "1" + thin + "EiB"}, {sizeText(1 << 71), "2,048" + thin + "EiB"},
		{measuredText(0, store.Seconds), "0" + thin + "ms"}, {measuredText(0.001, store.Seconds), "1" + thin + "ms"}, {measuredText(0.00099, store.Seconds), "990" + thin + "µs"},
		{measuredText(9.99, store.Seconds), "9,990" + thin + "ms"}, {measuredText(10, store.Seconds), "10" + thin + "s"}, {measuredText(2048, store.Bytes), "2" + thin + "KiB"},
		{plural(0, "host"), "0 hosts"},
		{isoTime(time.Time{}), ""}, {isoTime(time.UnixMilli(1_700_000_000_123)), "2023-11-14T22:13:20.123Z"}, {drawn(func(v *view) { v.when(time.Time{}) }), none},
		{drawn(func(v *view) { v.dotted("a.b_c") }), "a.<wbr>b_<wbr>c"}, {drawn(func(v *view) { v.dotted("a.") }), "a."}, {drawn(func(v *view) { v.dotted(".a") }), ".<wbr>a"},
		{url("x", "a", "azAZ09-_.~/ "), "x?a=azAZ09-_.~%2F%20"}, {url("x", "a", "é{"), "x?a=%C3%A9%7B"},
		{percentChange(0.858), "+0.9"}, {percentChange(-1234.56), "−1,234.6"}, {percentChange(0), "0"}, {percentChange(math.NaN()), none}, {capital("a_b"), "A b"}, {capital(""), ""}, {visible("a\x00\x1f \x7f~"), "a␀␟ ␡~"}, {visible(""), "(empty)"}, {stateMeaning("LIVE"), "ok"}, {stateMeaning("DRAINING"), "warn"}, {stateMeaning("INITIALIZING"), "info"},
		{quantileName(0.999), "P99.9"}, {quantileName(0.9995), "P99.95"},
		{tileName("a.bc.d"), "d"}, {tileName("a.bc."), "bc."}, {tileName("a"), "a"}, {tileName("a."), "a."}, {tileName(".a"), "a"},
		{url("stats", "filter", "a&b c", "type", ""), "stats?filter=a%26b%20c"}, {url(""), "./"}, {url("stats", "filter", "", "type", "1", "sort", "", "dir", "2"), "stats?type=1&dir=2"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func TestExpiry(t *testing.T) {
	const day = 24 * time.Hour
	for _, tt := range []struct {
		left    time.Duration
		meaning string
		text    string
	}{
		{-day, "bad", "expired 1 day ago"}, {-time.Hour, "bad", "expired today"}, {time.Hour, "bad", "expires in less than a day"}, {6 * day, "bad", "6 days left"},
		{7 * day, "warn", "7 days left"}, {29 * day, "warn", "29 days left"}, {30 * day, "ok", "30 days left"},
	} {
		if meaning, text := expiry(testNow.Add(tt.left), testNow); meaning != tt.meaning || text != tt.text {
			t.Errorf("%v: %s, %s", tt.left, meaning, text)
		}
	}
}

// TestBinsKeepCounts expects the bins of a picture to have exactly the counts of the
// histogram, whatever its shape.
func TestBinsKeepCounts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		layout, err := histogram.NewLayout(histogram.Config{Scale: 1000, Signed: random.IntN(4) == 0})
		if err != nil {
			t.Fatal(err)
		}
		hist := histogram.New(layout)
		n := 1 + random.IntN(500)
		mean, spread := random.Float64()*8, random.Float64()*3
		for range n {
			x := math.Exp(mean + spread*random.NormFloat64())
			if random.IntN(3) == 0 {
				x = -x
			}
			hist.RecordFloat(x, 1)
		}
		s := hist.Merge()
		for _, log := range []bool{true, false} {
			a := newAxis(s.Cumulative, log)
			list := bins(s, a, binCount(s.Cumulative, a, 60))
			var interval, cumulative uint64
			for i, b := range list {
				interval += b.interval
				cumulative += b.cumulative
				if i > 0 && math.Abs(b.low-list[i-1].high) > 1e-6*math.Abs(b.low)+1e-9 || b.low >= b.high {
					t.Errorf("bin %d from %v to %v behind %v", i, b.low, b.high, list[max(i-1, 0)].high)
				}
			}
			if interval != s.Interval.Count() || cumulative != s.Cumulative.Count() || len(list) > 60 {
				t.Errorf("%d and %d in %d bins, want %d", interval, cumulative, len(list), n)
			}
			if ticks := a.ticks(); len(ticks) == 0 || len(ticks) > 20 {
				t.Errorf("%d ticks from %v to %v", len(ticks), a.low, a.high)
			}
		}
	}
}

// TestLabelsDoNotTouch places labels at random and expects them apart, and the major
// ones to have their places.
func TestLabelsDoNotTouch(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		list := make([]label, len(quantiles))
		for i := range list {
			list[i] = label{text: "P99.9 1,321 ms"[:4+random.IntN(10)], x: random.Float64() * 100 * float64(random.IntN(2)), major: major(quantiles[i])}
		}
		placeLabels(list)
		for i, a := range list {
			if a.major && a.level < 0 {
				t.Errorf("no place for the major label %+v", a)
			}
			for _, b := range list[:i] {
				for _, width := range []float64{letter, phone} {
					from, to := a.extent(width)
					if f, e := b.extent(width); a.level >= 0 && a.level == b.level && to > f && from < e && (width == letter || a.major && b.major) {
						t.Errorf("%+v touches %+v", a, b)
					}
				}
			}
		}
	}
}

// TestLabelsHaveRoom expects nearly all quantiles of usual distributions, with one hump
// or two, to have their labels.
func TestLabelsHaveRoom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	placed, all := 0, 0
	for range 300 {
		var values []float64
		narrow, second := .1+.8*random.Float64(), random.Float64()*.2
		for range 20 + random.IntN(2000) {
			middle := 10.0
			if random.Float64() < second {
				middle = 250
			}
			values = append(values, middle*math.Exp(narrow*random.NormFloat64()))
		}
		slices.Sort(values)
		a := axis{values[0], values[len(values)-1], true}
		var list []label
		for _, q := range quantiles {
			x := values[min(int(q*float64(len(values))), len(values)-1)]
			list = append(list, label{text: quantileName(q) + " " + measuredText(x, store.Milliseconds), x: a.at(x), major: major(q)})
		}
		placeLabels(list)
		for _, l := range list {
			all++
			if l.level >= 0 {
				placed++
			}
		}
	}
	if placed < all*98/100 {
		t.Errorf("%d of %d labels have a place", placed, all)
	}
}

// TestEqualQuantilesShareALabel expects one label for neighbors with one value, which is
// solid if any of them is.
func TestEqualQuantilesShareALabel(t *testing.T) {
	srv := world(t, "plain", func(c *admin.Config) {
		c.Store = store.New(store.Options{})
		for range 97 {
			c.Store.Root().Histogram("took", store.Milliseconds).Record(5)
		}
		for range 3 {
			c.Store.Root().Histogram("took", store.Milliseconds).Record(90)
		}
		c.Store.Flush(store.FlushOptions{}).Close()
	})
	for _, view := range []string{"bars", "cdf"} {
		body := string(request(srv, "histograms?view="+view, "").Body)
		labels := regexp.MustCompile(`<text class='(mark[^']*)' [^>]*>([^<]*)</text>`).FindAllStringSubmatch(body, -1)
		var got []string
		for _, m := range labels {
			got = append(got, m[1]+": "+m[2])
		}
		if want := []string{"mark start: P0–P95 5\u202fms", "mark end: P99–P100 90\u202fms"}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", view, got, want)
		}
	}
}

// TestSelectStats compares pages of a random store with what sorting all of it gives.
func TestSelectStats(t *testing.T) {
	st := store.New(store.Options{})
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		st.Scope("c").Counter(string(rune('a'+i%26)) + string(rune('a'+i/26))).Add(uint64(random.IntN(40)))
	}
	st.Scope("c").Text("text").Set("x")
	list := st.View()
	defer list.Close()
	for _, by := range []order{{"name", false}, {"name", true}, {"value", true}, {"value", false}} {
		c := choose{key: valueKey, desc: by.desc}
		if by.by == "name" {
			c.key = nil
		}
		for _, nonzero := range []bool{false, true} {
			if c.rows = 1000; nonzero {
				c.skip = func(c *store.Cursor) bool { return valueKey(c) == 0 }
			}
			all, err := selectStats(list, c)
			if err != nil || all.total != len(all.rows) {
				t.Fatalf("%d of %d, %v", len(all.rows), all.total, err)
			}
			for i, r := range all.rows {
				if nonzero && r.key == 0 {
					t.Errorf("a zero: %s", r.name)
				}
				if i > 0 && (by.by == "value" && r.key != all.rows[i-1].key && (r.key > all.rows[i-1].key) == by.desc || by.by == "name" && (r.name > all.rows[i-1].name) == by.desc) {
					t.Errorf("%s behind %s", r.name, all.rows[i-1].name)
				}
			}
			for offset := 0; offset < all.total+20; offset += 37 {
				c := c
				c.from, c.rows = offset, 20
				page, err := selectStats(list, c)
				want := all.rows[min(offset, all.total):min(offset+20, all.total)]
				if err != nil || page.total != all.total || len(page.rows) != len(want) {
					t.Fatalf("from %d: %d rows of %d, %v", offset, len(page.rows), page.total, err)
				}
				for i := range want {
					if page.rows[i].name != want[i].name {
						t.Errorf("%v from %d: row %d is %s, want %s", by, offset, i, page.rows[i].name, want[i].name)
					}
				}
			}
		}
	}
}

// TestListOfResources has names that do not contain the text before, between and behind
// others.
func TestListOfResources(t *testing.T) {
	l := dump.List{Field: "f", Resources: slices.Values([]dump.Resource{{Name: "a"}, {Name: "xb"}, {}, {Name: "c"}, {Name: "Xd"}, {Name: "e"}})}
	for wanted, want := range map[string][]string{"": {"a", "xb", "c", "Xd", "e"}, "(?i)^x": {"xb", "Xd"}, "e": {"e"}, "z": nil} {
		var f *render.Filter
		if wanted != "" {
			var err error
			if f, err = render.NewFilter(render.RE2, wanted, render.FilterLimits{}); err != nil {
				t.Fatal(err)
			}
		}
		got, err := list(&l, f)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, x := range got.shown {
			names = append(names, x.Name)
		}
		total := len(want)
		if wanted == "" {
			total++ // the one without a name
		}
		if !slices.Equal(names, want) || got.total != total {
			t.Errorf("%q: %q, %d in all, want %q and %d", wanted, names, got.total, want, total)
		}
	}
}

func TestWholeNumbers(t *testing.T) {
	for text, want := range map[string]int{"": 0, "0": 0, "7": 7, "0099": 99, "100": 100, "101": 100, "99999999999999999999": 100, "-1": 0, "1x": 0, "1 ": 0} {
		if got := atoi(text, 100); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestSharedBeginning(t *testing.T) {
	for _, tt := range []struct {
		above, name string
		want        int
	}{{"", "a.b", 0}, {"a.b.c", "a.b.d", 4}, {"a.b", "a.b", 2}, {"a.bc", "a.bd", 2}, {"ab", "ac", 0}, {"a.", "a.b", 2}, {"a.b", "a", 0}, {"a.x.c", "a.y.c", 2}} {
		if got := shared(tt.above, tt.name); got != tt.want {
			t.Errorf("%s under %s: %d, want %d", tt.name, tt.above, got, tt.want)
		}
	}
}

// TestEscapedQuery escapes all bytes but the unreserved characters of RFC 3986.
func TestEscapedQuery(t *testing.T) {
	unreserved := regexp.MustCompile("^[A-Za-z0-9._~-]$")
	for i := range 256 {
		c := string([]byte{byte(i)})
		want := fmt.Sprintf("%%%02X", i)
		if unreserved.MatchString(c) {
			want = c
		}
		if got := escapeQuery(c); got != want {
			t.Errorf("%q: %s, want %s", c, got, want)
		}
	}
}

// TestCommandsStayInTheirQuotes: a quote in the address of a request does not end the argument
// of the command that is to be copied.
func TestCommandsStayInTheirQuotes(t *testing.T) {
	body := string(request(world(t, "plain", nil), "certs", "it's").Body)
	if !strings.Contains(body, "curl -s &#39;http://it%27s/certs'</code>") || strings.Contains(body, "it&#39;s/certs") {
		t.Error("the command has another quote in its argument")
	}
}

// TestLinksKeepParameters: done and tsv are of one answer, all others stay.
func TestLinksKeepParameters(t *testing.T) {
	v := view{page: &row{path: "stats"}, query: admin.Query{{Name: "done", Value: "7"}, {Name: "filter", Value: "a"}, {Name: "tsv", Value: "x"}, {Name: "sort", Value: "name"}}}
	if got := v.here("sort", "rate", "rows", "250"); got != "stats?filter=a&sort=rate&rows=250" {
		t.Error(got)
	}
}

// TestProblemsOfTheInput expects a note for what the client can change, and other errors
// as they are.
func TestProblemsOfTheInput(t *testing.T) {
	other := errors.New("broken")
	for _, tt := range []struct {
		err    error
		status int
		shown  string
	}{
		{&admin.Error{Status: 400, Msg: "no <filter>\n"}, 400, "no &lt;filter&gt;"},
		{&admin.Error{Status: 503, Msg: "busy\n"}, 503, "busy"},
		{render.ErrTooExpensive, 400, "filter"},
		{&admin.Error{Status: 404, Msg: "no\n"}, 0, ""},
		{other, 0, ""},
	} {
		var v *view
		var err error
		got := drawn(func(x *view) { v = x; err = x.problem(tt.err) })
		if tt.status == 0 {
			if err != tt.err || got != "" || v.status != 0 {
				t.Errorf("%v: %v, %d %q", tt.err, err, v.status, got)
			}
		} else if err != nil || v.status != tt.status || !strings.Contains(got, tt.shown) {
			t.Errorf("%v: %v, %d %q", tt.err, err, v.status, got)
		}
		v = &view{}
		if err := v.statsError(tt.err); v.status != tt.status || (err == nil) != (tt.status != 0) {
			t.Errorf("%v of stats: %v, %d", tt.err, err, v.status)
		}
	}
}

// TestHealthIsKept expects a new count after five seconds, and when the clock is set back.
func TestHealthIsKept(t *testing.T) {
	src := &countedClusters{}
	v := &view{site: &site{}, src: admin.Sources{Clusters: src}, now: testNow}
	for _, tt := range []struct {
		at   time.Duration
		want int
	}{{0, 1}, {0, 1}, {healthAge - 1, 1}, {healthAge, 2}, {healthAge + 1, 2}, {0, 3}, {1, 3}} {
		v.now = testNow.Add(tt.at)
		if got := v.healthNow(); got.clusters != tt.want {
			t.Errorf("at %v: count number %d, want %d", tt.at, got.clusters, tt.want)
		}
	}
}

// countedClusters has as many clusters as it was read.
type countedClusters struct {
	admin.Clusters
	n int
}

func (c *countedClusters) Statuses(yield func(*status.Cluster) bool) {
	c.n++
	for range c.n {
		if !yield(&status.Cluster{}) {
			return
		}
	}
}

// ruled is an input with so many mapping rules, every tenth of them unused.
type ruled struct {
	fakeIngest
	n int
}

func (r ruled) Mapping() (m report.Mapping) {
	for i := range r.n {
		m.Rules = append(m.Rules, report.RuleUse{Rule: report.Rule{Number: i + 1, Match: fmt.Sprintf("m%d.*", i+1)}, Name: "x", Matches: uint64(i % 10)})
	}
	return m
}

// TestMappingRules expects the rules in pages, by their use, and no section where there
// are none and none can be loaded.
func TestMappingRules(t *testing.T) {
	for _, tt := range []struct {
		rules  int
		target string
		want   []string
	}{
		{0, "ingest", nil},
		{250, "ingest", []string{"1 to 100 of 250", "</i> m1.<wbr>*", "</i> m100.<wbr>*"}},
		{250, "ingest?offset=200", []string{"201 to 250 of 250", "</i> m201.<wbr>*"}},
		{250, "ingest?rules=unused", []string{"1 to 25 of 25", "</i> m241.<wbr>*"}},
		{250, "ingest?rules=shadowed", []string{"No rule is shadowed."}},
	} {
		srv := world(t, "plain", func(c *admin.Config) { c.Sources.Ingest = ruled{fakeIngest{"plain"}, tt.rules} })
		body := string(request(srv, tt.target, "plain").Body)
		checkPage(t, srv, []byte(body))
		if got := strings.Contains(body, "Mapping rules"); got != (tt.rules > 0) {
			t.Errorf("%d rules: section: %t", tt.rules, got)
		}
		for _, want := range tt.want {
			if !strings.Contains(body, want) {
				t.Errorf("%d rules, %s: no %q in\n%s", tt.rules, tt.target, want, body)
			}
		}
	}
	// Where some can be loaded the section has no choice of rules yet.
	srv := world(t, "plain", func(c *admin.Config) {
		c.Sources.Ingest, c.Sources.ReloadMapping = ruled{fakeIngest{"plain"}, 0}, func() error { return nil }
	})
	if body := string(request(srv, "ingest", "plain").Body); !strings.Contains(body, "Mapping rules") || strings.Contains(body, "rules=unused") {
		t.Errorf("without rules yet: %s", body)
	}
}

// TestDroppedSampleIsNotAccepted expects the explanation of a line to say that a rule
// drops it, and no link to a stat that it does not have.
func TestDroppedSampleIsNotAccepted(t *testing.T) {
	body := string(request(world(t, "plain", nil), "ingest?line=drop", "plain").Body)
	_, note, _ := strings.Cut(body, "id='explained'")
	note, _, _ = strings.Cut(note, "</div>")
	if !strings.Contains(note, "dropped by its mapping rule") || !strings.Contains(note, "rule 2") || strings.Contains(note, "<a ") || !strings.Contains(body, "note warn' role='alert' id='explained'") {
		t.Error(note)
	}
}

// TestLimitsWithoutMeasure expects a limit without a measure to show how many lines it
// refused, and to be left out if there are none.
func TestLimitsWithoutMeasure(t *testing.T) {
	for want, limit := range map[string]report.Limit{
		"": {Name: "values_per_tag_key", Max: -1},
		"<dt>Store</dt><dd class='num'><span data-value='0'>0</span> <span class='warn'>3 lines limited</span></dd>":                                                                               {Name: "store", Max: -1, Limited: 3},
		"<dt>Memory</dt><dd class='num'><span data-value='0'>0\u202fB</span> of <span data-value='1024'>1\u202fKiB</span></dd><dd class='wide'>" + drawn(func(v *view) { v.bar(0, "") }) + "</dd>": {Name: "memory_bytes", Max: 1024},
	} {
		if got := drawn(func(v *view) { v.limit(limit) }); got != want {
			t.Errorf("%v: %s, want %s", limit, got, want)
		}
	}
}
