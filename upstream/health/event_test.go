package health

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/internal/upstreamtest"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

func TestEventsAsJSON(t *testing.T) {
	var got []byte
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	placed := upstreamtest.Host(1, func(s *host.Spec) { s.Locality = config.Locality{Region: "r", Zone: "z"} })
	for k := Ejected; k <= NoLongerDegraded; k++ {
		e := Event{Kind: k, Time: at, Host: placed, Failure: Timeout, First: k == Added}
		got = e.AppendJSON(got, "c", config.HealthCheckKind(k)%4)
	}
	for _, failure := range []Kind{Active, Network, Passive} {
		e := Event{Kind: Ejected, Time: at, Host: host.New(host.Spec{Address: config.Address{Pipe: "/run/s"}}), Failure: failure}
		got = e.AppendJSON(got, "c", config.HTTPCheck)
	}
	golden.Check(t, "events", got)
}

// TestEvents writes down which events each outcome leads to.
func TestEvents(t *testing.T) {
	name := func(e Event) string {
		s := [...]string{"ejected", "added", "failed", "passed", "degraded", "recovered"}[e.Kind]
		if e.Kind == Ejected || e.Kind == CheckFailed {
			s += fmt.Sprint(":", e.Failure.failureType())
		}
		if e.First {
			s += ":first"
		}
		return s
	}
	quiet, all := settings(), settings()
	all.AlwaysLogFailures, all.AlwaysLogSuccess = true, true
	tests := []struct {
		name  string
		check config.HealthCheck
		flags status.Flags
		steps []*Outcome
		want  string
	}{
		{"healthy-at-first", quiet, status.FailedActiveHC, []*Outcome{ok, ok}, "added:first||"},
		{"failed-at-first", quiet, status.FailedActiveHC, []*Outcome{bad, bad, ok, ok}, "failed:ACTIVE:first|||added|"},
		{"threshold", quiet, 0, []*Outcome{ok, broken, broken, broken, broken}, "|||ejected:NETWORK||"},
		{"timeout", quiet, 0, []*Outcome{ok, nil, nil, nil}, "|||ejected:NETWORK_TIMEOUT|"},
		{"degraded", quiet, 0, []*Outcome{ok, shaky, shaky, ok}, "|degraded||recovered|"},
		{"lack-of-this-machine", quiet, status.FailedActiveHC, []*Outcome{lacking, lacking, ok}, "||added:first|"},
		{"lack-told", all, status.FailedActiveHC, []*Outcome{lacking, bad, lacking}, "failed:NETWORK:first|failed:ACTIVE:first|failed:NETWORK|"},
		{"all", all, 0, []*Outcome{ok, bad, bad, ok, ok}, "passed|ejected:ACTIVE failed:ACTIVE|failed:ACTIVE|passed|added passed|"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c counts
				var mu sync.Mutex // guards got and seen
				var got strings.Builder
				seen := 0
				s := &script{steps: tt.steps}
				k, err := New(Config{
					Check: tt.check, Stats: c.stats(), Custom: func(*host.Host) Prober { return s },
					Done: func(Report) {
						mu.Lock()
						defer mu.Unlock()
						if seen++; seen > 1 {
							got.WriteByte('|')
						}
					},
					Log: func(e Event) {
						mu.Lock()
						defer mu.Unlock()
						if b := got.String(); b != "" && !strings.HasSuffix(b, "|") {
							got.WriteByte(' ')
						}
						got.WriteString(name(e))
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				h := upstreamtest.Host(1)
				h.SetFlags(tt.flags)
				k.Add(h)
				for done := 0; done < len(tt.steps); {
					time.Sleep(time.Second)
					mu.Lock()
					done = seen
					mu.Unlock()
				}
				k.Close()
				if got := got.String() + "|"; got != tt.want {
					t.Errorf("events %s, want %s", got, tt.want)
				}
			})
		})
	}
}
