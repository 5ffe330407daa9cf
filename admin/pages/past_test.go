package pages

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/history"
	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
)

// timeline is a server with a histogram "took", and the values that each flush found
// in it.
type timeline struct {
	srv    *admin.Server
	now    time.Time
	layout *histogram.Layout
	values [][]uint64
	ends   []time.Time
}

// newTimeline returns a timeline with a flush every 5 s. A counter has the number of
// flushes.
func newTimeline(t testing.TB, flushes int) *timeline {
	t.Helper()
	l := &timeline{now: testNow}
	st := store.New(store.Options{Now: func() time.Time { return l.now }})
	hist := st.Root().Histogram("took", store.Milliseconds)
	l.layout = hist.Layout()
	hits := st.Root().Counter("hits")
	st.Flush(store.FlushOptions{}).Close()
	past := history.New(history.Config{Store: st})
	random := rand.New(rand.NewPCG(1, 2))
	for range flushes {
		l.now = l.now.Add(5 * time.Second)
		var list []uint64
		for range random.IntN(20) {
			list = append(list, 1+uint64(random.ExpFloat64()*100))
		}
		for _, x := range list {
			hist.Record(x)
		}
		hits.Inc()
		l.values, l.ends = append(l.values, list), append(l.ends, l.now)
		snap := st.Flush(store.FlushOptions{})
		past.Add(snap)
		snap.Close()
	}
	l.srv = withHistory(t, st, past, &l.now)
	return l
}

// withHistory returns a server with the pages of a store and its past at *now.
func withHistory(t testing.TB, st *store.Store, past *history.History, now *time.Time) *admin.Server {
	t.Helper()
	srv, err := admin.New(admin.Config{Store: st, Now: func() time.Time { return *now }, Sources: admin.Sources{History: past}})
	if err != nil {
		t.Fatal(err)
	}
	if err := Add(srv); err != nil {
		t.Fatal(err)
	}
	return srv
}

// between returns a summary of the values of the flushes after from and not after to.
func (l *timeline) between(from, to time.Time) *histogram.Stats {
	h := histogram.New(l.layout)
	for i, end := range l.ends {
		if end.After(from) && !end.After(to) {
			for _, x := range l.values[i] {
				h.Record(x)
			}
		}
	}
	return h.Merge().Cumulative
}

// table returns a table of a page.
func (l *timeline) table(t testing.TB, target, id string) string {
	t.Helper()
	r := l.srv.Request("GET", Prefix+target+"&tsv="+id, nil)
	if r.Status != 200 {
		t.Fatalf("%s: %d %s", target, r.Status, r.Body)
	}
	return string(r.Body)
}

// TestSparksEndAtCoarseSteps expects the points of the steps since the length of the
// steps last changed: the line has one scale.
func TestSparksEndAtCoarseSteps(t *testing.T) {
	for _, tt := range []struct {
		steps []time.Duration
		want  int
	}{
		{[]time.Duration{time.Minute, time.Minute, time.Minute, time.Minute, 5 * time.Second, 5 * time.Second}, 2},
		{[]time.Duration{10 * time.Second, 5 * time.Second, 5 * time.Second}, 3},
		{[]time.Duration{10*time.Second + 1, 5 * time.Second, 5 * time.Second}, 2},
	} {
		now := testNow
		st := store.New(store.Options{Now: func() time.Time { return now }})
		st.Root().Counter("hits").Inc()
		past := history.New(history.Config{Store: st})
		st.Flush(store.FlushOptions{}).Close()
		for _, d := range tt.steps {
			now = now.Add(d)
			snap := st.Flush(store.FlushOptions{})
			past.Add(snap)
			snap.Close()
		}
		list := st.View()
		c, _ := list.Find("hits")
		v := &view{src: admin.Sources{History: past}, now: now}
		if s := v.spark(&c); len(s.points) != tt.want || s.step != 5*time.Second {
			t.Errorf("steps %v: %d points, one every %v, want %d", tt.steps, len(s.points), s.step, tt.want)
		}
		list.Close()
	}
}

// TestCompareWindows computes the quantiles of two windows again from the values, and
// the differences between them.
func TestCompareWindows(t *testing.T) {
	l := newTimeline(t, 50)
	ago := func(d time.Duration) time.Time { return l.now.Add(-d) }
	for query, wanted := range map[string][2]*histogram.Stats{ // B and A
		"a=1m":                {l.between(ago(time.Minute), l.now), l.between(ago(2*time.Minute), ago(time.Minute))},
		"a=30s&span=10s":      {l.between(ago(10*time.Second), l.now), l.between(ago(40*time.Second), ago(30*time.Second))},
		"":                    {l.between(ago(time.Minute), l.now), l.between(ago(2*time.Minute), ago(time.Minute))},
		"a=now&b=1m&span=10s": {l.between(ago(70*time.Second), ago(time.Minute)), l.between(ago(10*time.Second), l.now)},
		"a=30s&b=1m&span=5m":  {l.between(ago(6*time.Minute), ago(time.Minute)), l.between(ago(330*time.Second), ago(30*time.Second))},
	} {
		var b strings.Builder
		for _, q := range append(quantiles[:], 0.9995) {
			x, y := wanted[0].Quantile(q), wanted[1].Quantile(q)
			fmt.Fprintf(&b, "%s\t%v\t%v\t%v\t%v\n", quantileName(q), y, x, exactValue(x-y), exactValue(100*(x-y)/y))
		}
		target := "histograms?name=took&q=99.95&compare=1&" + query
		_, got, _ := strings.Cut(l.table(t, target, "quantiles"), "\n")
		if got != b.String() {
			t.Errorf("%s:\n%s\nwant\n%s", query, got, b.String())
		}
		var counts [2]uint64
		for _, line := range strings.Split(strings.TrimSpace(l.table(t, target, "bins")), "\n")[1:] {
			var low, high float64
			var n [2]uint64
			var share [2]float64
			if _, err := fmt.Sscan(line, &low, &high, &n[1], &share[1], &n[0], &share[0]); err != nil {
				t.Fatal(err)
			}
			for i, s := range share {
				if want := 100 * float64(n[i]) / float64(max(wanted[i].Count(), 1)); math.Abs(s-want) > 1e-4*want {
					t.Errorf("%s: %s: %v %%, want %v", query, line, s, want)
				}
			}
			counts[0], counts[1] = counts[0]+n[0], counts[1]+n[1]
		}
		if counts != [2]uint64{wanted[0].Count(), wanted[1].Count()} {
			t.Errorf("%s: the buckets hold %d, want %d and %d", query, counts, wanted[0].Count(), wanted[1].Count())
		}
	}
}

// TestWindowsInWords expects whole minutes without seconds.
func TestWindowsInWords(t *testing.T) {
	l := newTimeline(t, 50)
	head, _, _ := strings.Cut(l.table(t, "histograms?name=took&compare=1", "quantiles"), "\n")
	if want := "Quantile\tA: 1 min until 1 min ago\tB: 1 min until now\tB − A\t%"; head != want {
		t.Errorf("%q, want %q", head, want)
	}
	body := string(l.srv.Request("GET", Prefix+"histograms?name=took&compare=1", nil).Body)
	if want := "<th scope='col' class='num' title='A: 1 min until 1 min ago'>A</th><th scope='col' class='num' title='B: 1 min until now'>B</th>"; !strings.Contains(body, want) {
		t.Errorf("the heads are not short: %s", body)
	}
}

// TestCompareWithNamedMoments compares with the moment when the page was opened, which
// the address keeps, and with the last reset of the counters.
func TestCompareWithNamedMoments(t *testing.T) {
	l := newTimeline(t, 50)
	body := func() string { return string(l.srv.Request("GET", Prefix+"histograms?name=took", nil).Body) }
	if b := body(); !strings.Contains(b, fmt.Sprintf("name='opened' value='%d'", l.now.UnixMilli())) || !strings.Contains(b, ">page open</option>") || strings.Contains(b, "reset of counters") {
		t.Error(b)
	}
	if r := l.srv.Request("POST", "/reset_counters?dry_run=1", nil); r.Status != 200 || strings.Contains(body(), "reset of counters") {
		t.Errorf("a trial counts as reset: %d", r.Status)
	}
	l.srv.Request("POST", "/reset_counters", nil)
	if b := body(); !strings.Contains(b, "<option value='reset'>reset of counters</option>") {
		t.Error(b)
	}
	end := l.now
	l.now = l.now.Add(30 * time.Second)
	for query, to := range map[string]time.Time{"a=open": end.Add(-time.Minute), "a=reset": end} {
		want := l.between(to.Add(-time.Minute), to)
		target := fmt.Sprintf("histograms?name=took&compare=1&%s&opened=%d", query, end.Add(-time.Minute).UnixMilli())
		if got := strings.Split(l.table(t, target, "quantiles"), "\n")[3]; strings.Split(got, "\t")[1] != fmt.Sprint(want.Quantile(.5)) {
			t.Errorf("%s: %q, want the median %v", query, got, want.Quantile(.5))
		}
	}
}

// TestStripUnderBars expects the values over time under the bars, on the page of the
// stat too, each row where the bars have it, and the lines of two quantiles.
func TestStripUnderBars(t *testing.T) {
	l := newTimeline(t, 50)
	for _, target := range []string{"histograms?name=took", "stat?name=took", "histograms?name=took&x=linear&y=count&over=1h"} {
		body := l.srv.Request("GET", Prefix+target, nil).Body
		checkPage(t, l.srv, body)
		_, strip, _ := strings.Cut(string(body), "class='plot strip'")
		strip, _, _ = strings.Cut(strip, "</svg>")
		if strings.Count(strip, "class='through'") != 2 || strings.Count(strip, "<path class='f l") < 3 || !strings.Contains(strip, "483 values in 50 steps") {
			t.Errorf("%s: the strip is %.300s", target, strip)
		}
	}
	for _, target := range []string{"histograms?name=took&view=cdf", "histograms?merge=1"} {
		if strings.Contains(string(l.srv.Request("GET", Prefix+target, nil).Body), "class='plot strip'") {
			t.Errorf("%s has a strip", target)
		}
	}
}

// TestCompareOutsideOfHistory says from when on the history is complete.
func TestCompareOutsideOfHistory(t *testing.T) {
	l := newTimeline(t, 50)
	if body := string(l.srv.Request("GET", Prefix+"histograms?name=took&compare=1&a=1h", nil).Body); !strings.Contains(body, "The history begins 4 min 10 s ago; values before are missing.") {
		t.Error(body)
	}
	if body := string(l.srv.Request("GET", Prefix+"histograms?name=took&compare=1&a=1m", nil).Body); strings.Contains(body, "are missing") {
		t.Error(body)
	}
	if body := string(l.srv.Request("GET", Prefix+"histograms?name=took&compare=1&a=1h&b=6h", nil).Body); !strings.Contains(body, "No values in these times.") {
		t.Error(body)
	}
}

// TestOverTime expects each value once in the steps of the strip.
func TestOverTime(t *testing.T) {
	for _, flushes := range []int{1, 7, 59, 60, 61, 200} {
		l := newTimeline(t, flushes)
		for query, length := range map[string]time.Duration{"": 5 * time.Minute, "&over=1h": time.Hour, "&over=1d": 24 * time.Hour} {
			lines := strings.Split(strings.TrimSpace(l.table(t, "histograms?name=took&view=time"+query, "steps")), "\n")[1:]
			from, err := time.Parse(time.RFC3339, strings.Split(lines[len(lines)-1], "\t")[1])
			if step := time.Minute; err != nil || from.After(l.now.Add(-length)) && from.After(testNow) || from.Before(l.now.Add(-length-step)) {
				t.Fatalf("%d flushes%s: begins at %v, %v", flushes, query, from, err)
			}
			want := l.between(from, l.now)
			var sum uint64
			greatest := 0.0
			for _, line := range lines {
				f := strings.Split(line, "\t")
				var n uint64
				var most float64
				_, _ = fmt.Sscan(f[2], &n)
				_, _ = fmt.Sscan(f[6], &most)
				sum, greatest = sum+n, max(greatest, most)
			}
			if sum != want.Count() || greatest != want.Max() || len(lines) > heatColumns+11 || flushes >= heatColumns && len(lines) < heatColumns/2 {
				t.Errorf("%d flushes%s: %d values up to %v in %d steps, want %d up to %v", flushes, query, sum, greatest, len(lines), want.Count(), want.Max())
			}
		}
	}
}

// TestFarPeriods: addresses with moments far away get pages of ordinary size.
func TestFarPeriods(t *testing.T) {
	l := newTimeline(t, 3)
	get := func(query string) string {
		r := l.srv.Request("GET", Prefix+"stat?name=hits"+query, nil)
		if r.Status != 200 {
			t.Fatalf("%s: %d %s", query, r.Status, r.Body)
		}
		return string(r.Body)
	}
	near := get("")
	for _, query := range []string{"&from=1&to=140737488355327", "&from=1", "&to=140737488355327", "&from=140737488355327&to=140737488355327"} {
		far := get(query)
		if len(far) > len(near)+4<<10 {
			t.Errorf("%s: %d bytes, without it %d", query, len(far), len(near))
		}
		if strings.Contains(far, "since=--") {
			t.Errorf("%s: a link with a negative age", query)
		}
	}
}

func TestHeatLevels(t *testing.T) {
	for _, tt := range []struct {
		n, most uint64
		want    int
	}{{0, 9, 0}, {1, 1, 5}, {1, 1 << 60, 1}, {1, 25, 1}, {2, 25, 2}, {24, 25, 5}, {25, 25, 5}} {
		if got := heatLevel(tt.n, tt.most); got != tt.want {
			t.Errorf("%d of %d: %d, want %d", tt.n, tt.most, got, tt.want)
		}
	}
}

// TestSparks expects the lines of counters and gauges to hold the last steps of the
// history, in the form that the script reads.
func TestSparks(t *testing.T) {
	now := testNow
	st := store.New(store.Options{Now: func() time.Time { return now }})
	a, b, idle, gauge := st.Root().Counter("a.x"), st.Root().Counter("a.y"), st.Root().Counter("idle"), st.Root().Gauge("g")
	past := history.New(history.Config{Store: st})
	for i := range 70 {
		now = now.Add(5 * time.Second)
		a.Add(10)
		if i >= 67 {
			b.Add(5)
		}
		gauge.Set(uint64(i / 66))
		snap := st.Flush(store.FlushOptions{})
		past.Add(snap)
		snap.Close()
	}
	idle.Add(0)
	srv := withHistory(t, st, past, &now)
	body := string(srv.Request("GET", Prefix+"stats", nil).Body)
	row := func(body, name string) string {
		_, rest, _ := strings.Cut(body, "data-stat='"+name+"'")
		in, _, _ := strings.Cut(rest, "</tr>")
		return in
	}
	for name, want := range map[string]string{
		"a.x":  "<td class='trend graph' data-spark data-step='5000' data-points='2*60'><svg class='s' viewBox='0 0 96 20' preserveAspectRatio='none' aria-hidden='true'><polyline class='ln' points='0.0,1.5 96.0,1.5 '/></svg>peak 2.0</td>",
		"a.y":  "<td class='trend graph' data-spark data-step='5000' data-points='0*57 1*3'><svg class='s' viewBox='0 0 96 20' preserveAspectRatio='none' aria-hidden='true'><polyline class='ln' points='0.0,18.5 91.1,18.5 92.7,1.5 96.0,1.5 '/></svg>peak 1.0</td>",
		"idle": "<td class='trend graph' data-spark data-step='5000' data-points='0*60'></td>",
		"g":    "<td class='trend graph' data-spark data-step='5000' data-points='0*56 1*4'><svg",
	} {
		if got := row(body, name); !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if got, want := string(srv.Request("GET", Prefix+"stats?filter=^(a[.]|g$|idle)&sort=rate&hide=changed&tsv=stats", nil).Body), "Name\tType\tValue\tPer second\tTrend\n"+
		"a.x\tcounter\t700\t2\t\na.y\tcounter\t15\t1\t\ng\tgauge\t1\t\t\nidle\tcounter\t0\t0\t\n"; got != want {
		t.Errorf("by rate:\n%s\nwant\n%s", got, want)
	}
	body = string(srv.Request("GET", Prefix+"stat?name=a.y", nil).Body)
	for _, want := range []string{"<path class='ln' d='M", "V18.0H100.00'/>", "<dt>Last change</dt><dd class='num'><time datetime='2026-11-22T10:05:50Z'", "<dt>Created</dt><dd class='num'><time datetime='2026-11-22T10:00:00Z'"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
	var sum spark
	sum.add(spark{points: []float64{1, 2}})
	sum.add(spark{points: []float64{1, 2, 3}})
	if fmt.Sprint(sum.points) != "[1 3 5]" {
		t.Errorf("the sum is %v", sum.points)
	}
	// What never changed has no age, until it is older than the longest age that is shown.
	const idleAge = "<td class='num quiet' data-value='' data-changed>%s</td>"
	if body, want := row(string(srv.Request("GET", Prefix+"stats", nil).Body), "idle"), fmt.Sprintf(idleAge, none); !strings.Contains(body, want) {
		t.Errorf("no %s in\n%s", want, body)
	}
	for range 130 {
		now = now.Add(30 * time.Second)
		snap := st.Flush(store.FlushOptions{})
		past.Add(snap)
		snap.Close()
	}
	if body, want := row(string(srv.Request("GET", Prefix+"stats", nil).Body), "idle"), fmt.Sprintf(idleAge, "&gt; 1 h"); !strings.Contains(body, want) {
		t.Errorf("no %s in\n%s", want, body)
	}
}

// TestTopRates expects the ten stats that grew most in the last flush, whoever made
// them, the fastest first.
func TestTopRates(t *testing.T) {
	now := testNow
	st := store.New(store.Options{Now: func() time.Time { return now }})
	for i := range 20 {
		st.Root().Counter(fmt.Sprintf("c.%02d", (i*7)%20)).Add(uint64(100 + (i*7)%20))
	}
	st.Root().Counter("idle")
	past := history.New(history.Config{Store: st})
	now = now.Add(time.Second)
	snap := st.Flush(store.FlushOptions{})
	past.Add(snap)
	snap.Close()
	srv := withHistory(t, st, past, &now)
	want := "Name\tPer second\n"
	for i := 19; i > 9; i-- {
		want += fmt.Sprintf("c.%02d\t%d\n", i, 100+i)
	}
	if got := string(request(srv, "?tsv=top-rates", "").Body); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := string(request(srv, "", "").Body); !strings.Contains(got, "<span data-rate='c.19'>119.0</span>") {
		t.Error("the rates do not move")
	}
}

// lossy is an input with a fixed report.
type lossy struct {
	fakeIngest
	report report.Report
}

func (l lossy) Report() report.Report { return l.report }

// TestFindingsSettle expects losses to be warnings for an hour, and then notes. The state of a
// sink shows them only in the flush that had them.
func TestFindingsSettle(t *testing.T) {
	now := testNow
	st := store.New(store.Options{Now: func() time.Time { return now }})
	own := st.Own()
	past := history.New(history.Config{Store: st})
	flushed := func() {
		now = now.Add(time.Minute)
		snap := st.Flush(store.FlushOptions{})
		past.Add(snap)
		snap.Close()
	}
	var losses []*store.Counter
	for _, name := range []string{"sink.dropped_packets.sink.a", "sink.lost_packets.sink.a", "sink.joined.sink.a", "sink.dropped.sink.a", "server.dropped_stat_flushes", "ingest.kernel_drops.listener.udp",
		"relay.dropped_lines.target.b", "relay.ambiguous_lines.target.b", "relay.rejected_lines.target.b", "relay.long_lines.target.b", "ingest.limited.limit.series"} {
		losses = append(losses, own.Counter(name))
	}
	flushed()
	for _, c := range losses {
		c.Inc()
	}
	srv, err := admin.New(admin.Config{Store: st, Now: func() time.Time { return now }, Sources: admin.Sources{
		History: past,
		Sinks: func() []flush.SinkStatus {
			return []flush.SinkStatus{{Name: "a", Joined: 1, Dropped: 1, Delivery: &flush.SinkDelivery{Dropped: 1, Lost: 1}}}
		},
		Ingest: lossy{report: report.Report{
			Listeners: []report.Listener{{ListenerInfo: report.ListenerInfo{Name: "udp"}, KernelDrops: 1}},
			Relay:     []report.RelayTarget{{Name: "b", Up: true, Dropped: 1, Ambiguous: 1, Rejected: 1, Long: 1}},
			Limits:    []report.Limit{{Name: "series", Limited: 1}},
		}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := Add(srv); err != nil {
		t.Fatal(err)
	}
	expect := func(when string, warnings int) {
		t.Helper()
		_, list, _ := strings.Cut(string(srv.Request("GET", Prefix, nil).Body), "<ul class='list'>")
		list, _, _ = strings.Cut(list, "</ul>")
		rows := strings.Split(list, "<li class=")[1:]
		got := 0
		for _, row := range rows {
			if strings.HasPrefix(row, "'warn'") {
				got++
			}
			if strings.HasPrefix(row, "'info'") != strings.Contains(row, "none in the last hour") {
				t.Errorf("%s: %s", when, row)
			}
		}
		if got != warnings || len(rows) != 7 {
			t.Errorf("%s: %d findings, %d of them warnings, want 7 and %d: %s", when, len(rows), got, warnings, list)
		}
	}
	expect("before the flush", 7)
	for range 60 {
		flushed()
	}
	expect("59 minutes after the flush", 7)
	for range 3 {
		flushed()
	}
	expect("after more than an hour", 0)
	for i, c := range losses {
		c.Inc()
		flushed()
		expect(fmt.Sprint("after loss ", i), 1)
		state := "nothing sent yet"
		if i < 2 { // packets of the sink
			state = "losing packets"
		}
		if got := string(srv.Request("GET", Prefix+"server?tsv=sinks", nil).Body); !strings.Contains(got, "\na\t"+state+"\t") {
			t.Errorf("after loss %d: %q, want %s", i, got, state)
		}
		for range 62 {
			flushed()
		}
	}
}

// TestOneValueIsTheMost: where no step and bucket has more than one value, one is the most.
func TestOneValueIsTheMost(t *testing.T) {
	now := testNow
	st := store.New(store.Options{Now: func() time.Time { return now }})
	past := history.New(history.Config{Store: st})
	took := st.Root().Histogram("took", store.Milliseconds)
	for i := range 3 {
		now = now.Add(5 * time.Second)
		if i == 1 {
			took.Record(7)
		}
		snap := st.Flush(store.FlushOptions{})
		past.Add(snap)
		snap.Close()
	}
	srv := withHistory(t, st, past, &now)
	body := string(srv.Request("GET", Prefix+"histograms?name=took&view=time", nil).Body)
	if _, rest, _ := strings.Cut(body, "<svg class='key heat'"); !strings.Contains(body, "<rect class='f l5' x='") || !strings.Contains(rest, "</svg> 1</span>") {
		t.Errorf("%.600s", rest)
	}
}
