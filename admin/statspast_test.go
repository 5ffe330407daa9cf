package admin

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/history"
	"github.com/statsd-admin/statsd-admin/internal/jsonschema"
	"github.com/statsd-admin/statsd-admin/store"
)

// remembering is a server with a history.
type remembering struct {
	*Server
	st  *store.Store
	now time.Time
	h   *history.History
}

// newRemembering returns a server with three flushes, ten seconds apart.
func newRemembering(t *testing.T) *remembering {
	t.Helper()
	m := &remembering{now: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)}
	clock := func() time.Time { return m.now }
	m.st = store.New(store.Options{Now: clock})
	m.h = history.New(history.Config{Store: m.st})
	m.Server = newServer(t, Config{Store: m.st, Now: clock, Sources: Sources{History: m.h}})
	root := m.st.Root()
	c, g, f, h := root.Counter("t.c"), root.Gauge("t.g"), root.FloatGauge("t.f"), root.Histogram("t.h", store.Milliseconds)
	root.Text("t.text").Set("x")
	for i := range uint64(3) {
		m.now = m.now.Add(10 * time.Second)
		c.Add(10 * (i + 1))
		g.Set(100 - 7*i)
		_ = f.Set(0.5 * float64(i))
		for v := range 10 * (i + 1) {
			h.Record(v)
		}
		if i == 2 {
			root.Counter("t.young").Add(4)
		}
		m.flush()
	}
	return m
}

func (m *remembering) flush() {
	snap := m.st.Flush(store.FlushOptions{})
	m.h.Add(snap)
	snap.Close()
}

func TestStatsOfThePast(t *testing.T) {
	m := newRemembering(t)
	m.now = m.now.Add(2 * time.Second)
	for _, tt := range []struct{ query, want string }{
		{"at=-2s", "t.c: 60 t.f: 1 t.g: 86 t.young: 4"},
		{"at=-3s", "t.c: 30 t.f: 0.5 t.g: 93"},
		{"at=-12s", "t.c: 30 t.f: 0.5 t.g: 93"},
		{"at=2026-01-02T03:04:10Z", "t.c: 10 t.f: 0 t.g: 100"},
		{"at=2026-01-02T04:04:15%2B01:00", "t.c: 10 t.f: 0 t.g: 100"},
		{"since=-12s", "t.c: 30 t.f: 0.5 t.g: -7 t.young: 4"},
		{"since=-22s", "t.c: 50 t.f: 1 t.g: -14 t.young: 4"},
		{"since=-22s&at=-12s", "t.c: 20 t.f: 0.5 t.g: -7"},
		{"rate", "t.c: 3 t.f: 0.05 t.g: -0.7 t.young: 0.4"},
		{"rate&at=-12s", "t.c: 2 t.f: 0.05 t.g: -0.7"},
		{"rate&since=-12s&at=-12s", "t.c: 0 t.f: 0 t.g: 0"},
		{"rate&since=-22s", "t.c: 2.273 t.f: 0.045 t.g: -0.636 t.young: 0.182"},
	} {
		for _, kind := range []string{"Counters", "Gauges"} {
			r := m.Request("GET", "/stats?filter=^t%5C.&type="+kind+"&"+tt.query, nil)
			for line := range strings.SplitSeq(strings.TrimSpace(string(r.Body)), "\n") {
				if r.Status != 200 || line != "" && !strings.Contains(tt.want, line) {
					t.Errorf("%s: %d, line %q, want %s", tt.query, r.Status, line, tt.want)
				}
			}
		}
		r := m.Request("GET", "/stats?filter=^t%5C.[^h]&"+tt.query, nil)
		if got := strings.Join(strings.Split(strings.TrimSpace(string(r.Body)), "\n"), " "); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.query, got, tt.want)
		}
	}
	r := m.Request("GET", "/stats?format=json&filter=t.c&rate", nil)
	if got := string(r.Body); got != `{"stats":[{"name":"t.c","value":3}]}` {
		t.Errorf("JSON: %s", got)
	}
	for name, want := range map[string]string{"x-stats-time": "2026-01-02T03:04:30Z", "x-stats-since": "2026-01-02T03:04:20Z", "x-history-since": "2026-01-02T03:04:00Z"} {
		if got := r.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	r = m.Request("GET", "/stats?filter=t.h&at=-12s", nil)
	if got := string(r.Body); !strings.HasPrefix(got, "t.h: P0(0,0) P25(4,3) P50(9,7)") {
		t.Errorf("histogram of the past: %s", got)
	}
}

// TestGreatRates expects rates rounded to three digits behind the point, and great ones
// as they are: rounding would make infinity of the greatest.
func TestGreatRates(t *testing.T) {
	m := newRemembering(t)
	f := m.st.Root().FloatGauge("t.f")
	for _, tt := range []struct{ value, rate string }{{"1.6e308", "1.6e+307"}, {"1.6e308", "0"}, {"0.00049", "-1.6e+307"}, {"123456789012.6", "12345678901.26"}} {
		value, err := strconv.ParseFloat(tt.value, 64)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Set(value); err != nil {
			t.Fatal(err)
		}
		m.now = m.now.Add(10 * time.Second)
		m.flush()
		if got := string(m.Request("GET", "/stats?filter=t.f&rate", nil).Body); got != "t.f: "+tt.rate+"\n" {
			t.Errorf("%s: %q, want %s", tt.value, got, tt.rate)
		}
	}
}

func TestStatsOfThePastRefuses(t *testing.T) {
	m := newRemembering(t)
	for query, want := range map[string]string{
		"at=30s":                 "at: \"30s\" is neither a time ago, such as -30s, nor a time such as 2026-01-02T03:04:05Z\n",
		"since=yesterday":        "since: \"yesterday\" is neither a time ago, such as -30s, nor a time such as 2026-01-02T03:04:05Z\n",
		"at=-1h":                 "at: the history does not reach back that far: 2026-01-02T02:04:30Z is before 2026-01-02T03:04:00Z\n",
		"at=-1h&since=-10s":      "at: the history does not reach back that far: 2026-01-02T02:04:30Z is before 2026-01-02T03:04:00Z\n",
		"at=-20s&since=-10s":     "since: the moment is after that of at\n",
		"at=-30s&rate":           "rate: the history has no step before this moment\n",
		"at=-10s&format=html":    "at, since and rate need format=text or format=json\n",
		"rate&format=prometheus": "at, since and rate need format=text or format=json\n",
	} {
		if r := m.Request("GET", "/stats?"+query, nil); r.Status != 400 || string(r.Body) != want {
			t.Errorf("%s: %d %q, want %q", query, r.Status, r.Body, want)
		}
	}
	m.now = m.now.Add(-time.Minute) // the clock was set
	if r, want := m.Request("GET", "/stats?rate", nil), "rate: the history does not reach back that far: 2026-01-02T03:03:30Z is before 2026-01-02T03:04:00Z\n"; r.Status != 400 || string(r.Body) != want {
		t.Errorf("before the history: %d %q, want %q", r.Status, r.Body, want)
	}
	s := newServer(t, Config{})
	if r := s.Request("GET", "/stats?at=-1s", nil); r.Status != 400 || string(r.Body) != "at, since and rate need the history, which is off\n" {
		t.Errorf("without a history: %d %q", r.Status, r.Body)
	}
	if r := s.Request("GET", "/stats/history?name=a", nil); r.Status != 404 {
		t.Errorf("without a history: %d", r.Status)
	}
}

func TestStatsHistory(t *testing.T) {
	m := newRemembering(t)
	for query, want := range map[string]string{
		"name=t.c":            `"kind":"counter","id":18,"complete_since":1767323040000,"points":[[1767323050000,10000,10,1],[1767323060000,10000,30,2],[1767323070000,10000,60,3]]}`,
		"name=t.c&since=-10s": `"points":[[1767323070000,10000,60,3]]}`,
		"name=t.g":            `"points":[[1767323050000,10000,100,10],[1767323060000,10000,93,-0.7],[1767323070000,10000,86,-0.7]]}`,
		"name=t.f":            `"points":[[1767323050000,10000,0,0],[1767323060000,10000,0.5,0.05],[1767323070000,10000,1,0.05]]}`,
		"name=t.h":            `"points":[[1767323050000,10000,10,1,[4,8,9]],[1767323060000,10000,20,2,[9,17,19]],[1767323070000,10000,30,3,[14,26,29]]]}`,
		"name=t.text":         `"points":[]}`,
		"name=t.young":        `"points":[[1767323070000,10000,4,0.4]]}`,
	} {
		r := m.Request("GET", "/stats/history?"+query, nil)
		if !strings.HasSuffix(strings.TrimSpace(string(r.Body)), want) {
			t.Errorf("%s: %d %s, want %s", query, r.Status, r.Body, want)
		}
		jsonschema.Check(t, "../docs/schema/stats-history.schema.json", r.Body)
	}
	a, b := m.Request("GET", "/stats/history?name=t.c", nil), m.Request("GET", "/stats/history?id=18", nil)
	if string(a.Body) != string(b.Body) {
		t.Errorf("by id: %s, want %s", b.Body, a.Body)
	}
	for query, want := range map[string]string{
		"":         "400 name or id is required\n",
		"name=no":  "404 there is no such stat\n",
		"id=99999": "404 there is no such stat\n",
		"id=x":     "400 id: \"x\" is not an integer below 2^53\n",
	} {
		r := m.Request("GET", "/stats/history?"+query, nil)
		if got := fmt.Sprint(r.Status, " ", string(r.Body)); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

// TestHistoryWhenTheClockIsSet sets the clock back by an hour: the history of stats that
// were created before goes on.
func TestHistoryWhenTheClockIsSet(t *testing.T) {
	m := newRemembering(t)
	m.now = m.now.Add(-time.Hour)
	m.st.Root().Counter("t.c").Add(5)
	m.flush()
	m.now = m.now.Add(10 * time.Second)
	m.st.Root().Counter("t.c").Add(20)
	m.flush()
	for path, want := range map[string]string{
		"/stats/history?name=t.c":                 "[1767323070000,10000,60,3],[1767319470000,0,65,0],[1767319480000,10000,85,2]]",
		"/stats/history?name=t.h":                 ",[1767319470000,0,0,0,null],[1767319480000,10000,0,0,null]]",
		"/stats/history?name=t.young":             ",[1767319480000,10000,4,0]]",
		"/stats/explain?name=t.c":                 "last_change: 2026-01-02T02:04:40.000Z\n",
		"/stats?at=-0s&filter=^t.c$":              "t.c: 85\n",
		"/stats?at=2026-01-02T02:04:35Z&filter=c": "t.c: 65\n",
	} {
		if r := m.Request("GET", path, nil); !strings.Contains(string(r.Body), want) {
			t.Errorf("%s: %d %s, want %s", path, r.Status, r.Body, want)
		}
	}
}
