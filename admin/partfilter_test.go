package admin

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// TestSlowFilters expects filters of other endpoints than the stats to have a budget and
// a slot.
func TestSlowFilters(t *testing.T) {
	w := newWorld()
	slow := newServer(t, Config{Sources: w.sources(), Limits: Limits{RegexBudget: time.Nanosecond}})
	for target, s := range map[string]*Server{"/clusters?filter=x": slow, "/stats?filter=x": slow} {
		if r := s.Request("GET", target, nil); r.Status != 400 || !strings.Contains(string(r.Body), "filter") {
			t.Errorf("%s: %d %s", target, r.Status, r.Body)
		}
	}
	for _, budget := range []time.Duration{-1, time.Hour} {
		s := newServer(t, Config{Sources: w.sources(), Limits: Limits{RegexBudget: budget}})
		if r := s.Request("GET", "/clusters?filter=x", nil); r.Status != 200 {
			t.Errorf("with the budget %v: %d %s", budget, r.Status, r.Body)
		}
	}
	busy := newServer(t, Config{Sources: w.sources(), Limits: Limits{RegexParallel: 1}})
	busy.regexes.wait = time.Millisecond
	if !busy.regexes.enter(busy.session()) {
		t.Fatal("no slot")
	}
	for _, target := range []string{"/clusters?filter=x", "/stats?filter=x", "/stats/histogram?filter=x"} {
		if r := busy.Request("GET", target, nil); r.Status != 503 || r.Get("retry-after") == "" {
			t.Errorf("%s: %d %s", target, r.Status, r.Body)
		}
	}
	busy.regexes.leave()
	if r := busy.Request("GET", "/clusters?filter=x", nil); r.Status != 200 {
		t.Errorf("with a free slot: %d", r.Status)
	}
}

// slowClusters are clusters between which the client takes its time to read.
type slowClusters struct{ *worldClusters }

func (c slowClusters) Statuses(yield func(*status.Cluster) bool) {
	c.worldClusters.Statuses(func(x *status.Cluster) bool {
		time.Sleep(time.Minute)
		return yield(x)
	})
}

// TestSlowClientsSpendNoBudget: only the time of matching counts.
func TestSlowClientsSpendNoBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newWorld().sources()
		src.Clusters = slowClusters{src.Clusters.(*worldClusters)}
		s := newServer(t, Config{Sources: src})
		if r := s.Request("GET", "/clusters?filter=.", nil); r.Status != 200 {
			t.Errorf("%d %s", r.Status, r.Body)
		}
	})
}
