package admin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/server/profiler"
)

// busyProfiler is a profiler of a file that another one writes.
type busyProfiler struct{ worldProfiler }

func (busyProfiler) Start() (bool, error) { return false, fmt.Errorf("now: %w", profiler.ErrBusy) }

// TestRefusedReads expects the status and the text of answers to requests for
// too much, or for missing things.
func TestRefusedReads(t *testing.T) {
	m := newRemembering(t)
	s := newServer(t, Config{Sources: Sources{HeapProfiler: busyProfiler{}, History: nil}})
	for _, x := range []struct {
		s                    *Server
		method, target, want string
	}{
		{s, "POST", "/heapprofiler?enable=y", "400 Fail to start heap profiler: the CPU profiler is running"},
		{s, "GET", "/audit?limit=x", "400 limit"},
		{s, "GET", "/stats/explain", "400 "},
		{s, "GET", "/stats/explore?by=rate", "400 by=rate needs the history"},
		{s, "GET", "/stats/explore?by=samples", "400 by=samples needs a StatsD input"},
		{s, "GET", "/stats/histogram?name=x&at=-1s", "400 at, since and rate need the history"},
		{m.Server, "GET", "/stats/history?name=t.h&since=x", "400 since"},
		{m.Server, "GET", "/stats/history?name=t.h&since=-1s", "200 {"},
		{m.Server, "GET", "/stats/histogram?name=t.h&q=0&bins", "200 "},
		{s, "GET", "relative", "400 malformed request target"},
	} {
		r := x.s.Request(x.method, x.target, nil)
		if got := fmt.Sprint(r.Status, " ", string(r.Body)); !strings.HasPrefix(got, x.want) {
			t.Errorf("%s: %.200s, want %s", x.target, got, x.want)
		}
	}
	if body := string(m.Request("GET", "/stats/histogram?name=t.h&q=0&bins", nil).Body); !strings.Contains(body, `"bins":[[`) || !strings.Contains(body, "],[") || strings.Contains(body, "][") {
		t.Error(body)
	}
	limits := Limits{BodyBytes: 3}
	small := newServer(t, Config{Limits: limits})
	for body, want := range map[string]int{"abc": 200, "abcd": 413} {
		if r := small.Request("GET", "/help", []byte(body)); r.Status != want {
			t.Errorf("a body of %d bytes: %d", len(body), r.Status)
		}
	}
}
