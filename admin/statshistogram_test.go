package admin

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/jsonschema"
	"github.com/statsd-admin/statsd-admin/store"
)

func TestStatsHistogram(t *testing.T) {
	m := newRemembering(t) // t.h has 0 to 9, 0 to 19 and 0 to 29, ten seconds apart
	root := m.st.Root()
	other := root.Histogram("t.h2", store.Milliseconds)
	other.Record(1000)
	root.Histogram("bytes", store.Bytes).Record(1)
	m.now = m.now.Add(10 * time.Second)
	m.flush()
	for query, want := range map[string]string{
		"name=t.h&q=50,99.95":                   `{"v":1,"histograms":1,"unit":"milliseconds","error_bound":0.01,"count":60,"sum":670,"min":0,"max":29,"quantiles":[[50,9],[99.95,29]]}`,
		"name=t.h&q=50&cdf=9,-1,100":            `"quantiles":[[50,9]],"cdf":[[-1,0,0],[9,30,30],[100,60,60]]}`,
		"name=t.h&scope=interval&q=0":           `"count":0,"sum":0,"min":null,"max":null,"quantiles":[[0,null]]}`,
		"name=t.h&q=100&at=-10s&scope=interval": `"count":30,"sum":435,"min":0,"max":29,"quantiles":[[100,29]]}`,
		"name=t.h&q=100&at=-20s":                `"count":30,"sum":235,"min":0,"max":19,"quantiles":[[100,19]]}`,
		"name=t.h&q=100&since=-30s&at=-20s":     `"count":20,"sum":190,"min":0,"max":19,"quantiles":[[100,19]]}`,
		"name=t.h&q=100&since=-20s":             `"count":30,"sum":435,"min":0,"max":29,"quantiles":[[100,29]]}`,
		"filter=^t%5C.h&q=50,100":               `{"v":1,"histograms":2,"unit":"milliseconds","error_bound":0.01,"count":61,"sum":1670,"min":0,"max":1000,"quantiles":[[50,10],[100,1000]]}`,
		"name=t.h2&at=-20s":                     `{"v":1,"histograms":0}`,
		"filter=^t%5C.h&q=100&at=-20s":          `{"v":1,"histograms":1,"unit":"milliseconds","error_bound":0.01,"count":30,"sum":235,"min":0,"max":19,"quantiles":[[100,19]]}`,
		"filter=none":                           `{"v":1,"histograms":0}`,
		"name=t.h2&q=0&cdf=1001&bins":           `"quantiles":[[0,1000]],"cdf":[[1001,1,1]],"bins":[[1000,4,1]]}`,
	} {
		r := m.Request("GET", "/stats/histogram?"+query, nil)
		if got := strings.TrimSpace(string(r.Body)); r.Status != 200 || !strings.HasSuffix(got, want) {
			t.Errorf("%s: %d %s, want %s", query, r.Status, got, want)
		}
		jsonschema.Check(t, "../docs/schema/stats-histogram.schema.json", r.Body)
	}
	for query, want := range map[string]string{
		"":                   "400 exactly one of name and filter is required\n",
		"name=a&filter=b":    "400 exactly one of name and filter is required\n",
		"name=no":            "404 there is no such stat\n",
		"name=t.c":           "400 \"t.c\" is a counter, not a histogram\n",
		"filter=t.h%7Cbytes": "400 \"bytes\" and \"t.h\" have different units, bounds or precision and cannot be merged\n",
		"filter=(":           "400 Invalid re2 regex",
		"name=t.h&scope=all": "400 scope: \"all\" is neither cumulative nor interval\n",
		"name=t.h&q=50,101":  "400 q: \"101\" is not a number from 0 to 100, or there are more than 100\n",
		"name=t.h&q=NaN":     "400 q: \"NaN\" is not a number from 0 to 100, or there are more than 100\n",
		"name=t.h&cdf=x":     "400 cdf: \"x\" is not a number from -9.223372036854776e+18 to 9.223372036854776e+18, or there are more than 100\n",
		"name=t.h&at=-9h":    "400 at: the history does not reach back",
	} {
		r := m.Request("GET", "/stats/histogram?"+query, nil)
		if got := strings.TrimSpace(string(r.Body)); r.Status != 400 && r.Status != 404 || !strings.HasPrefix(want[:3]+" "+got, strings.TrimSpace(want)) {
			t.Errorf("%s: %d %q, want %q", query, r.Status, got, want)
		}
	}
}

// TestMergeHasABudget: merging ends with an error when it takes too long.
func TestMergeHasABudget(t *testing.T) {
	st := store.New(store.Options{})
	for i := range 4 * lookEvery {
		st.Root().Histogram(fmt.Sprint("h", i), store.Bytes).Record(1)
	}
	now := time.Unix(0, 0)
	s := newServer(t, Config{Store: st, Now: func() time.Time { now = now.Add(time.Second); return now }})
	if r := s.Request("GET", "/stats/histogram?filter=h", nil); r.Status != 400 || string(r.Body) != "too many histograms to merge; use a narrower filter\n" {
		t.Errorf("%d %s", r.Status, r.Body)
	}
}

// BenchmarkStatsHistogram merges 10,000 histograms.
func BenchmarkStatsHistogram(b *testing.B) {
	st := store.New(store.Options{})
	for i := range 10_000 {
		h := st.Root().Histogram(fmt.Sprintf("cluster.c%d.upstream_rq_time", i), store.Milliseconds)
		for v := range uint64(100) {
			h.Record(v * uint64(i%50))
		}
	}
	st.Flush(store.FlushOptions{}).Close()
	s := newServer(b, Config{Store: st})
	for b.Loop() {
		if r := s.Request("GET", "/stats/histogram?filter=upstream_rq_time&q=99", nil); r.Status != 200 {
			b.Fatal(r.Status)
		}
	}
}
