package statsd

import (
	"strings"
	"testing"
)

// TestGaugeBackedCounters sends negative counters in all forms that a line
// allows.
func TestGaugeBackedCounters(t *testing.T) {
	gaugeBacked := func(name string) bool { return strings.HasPrefix(name, "jobs.") }
	for _, tt := range []struct {
		name     string
		in       []string
		want     []string
		rejected string
	}{
		{"adds", []string{"jobs.a:5|c", "jobs.a:-7|c", "jobs.a:+1|c"}, []string{"jobs.a -1"}, ""},
		{"first-is-negative", []string{"jobs.a:-7|c"}, []string{"jobs.a -7"}, ""},
		{"rate", []string{"jobs.a:-3|c|@0.1", "jobs.a:1|c|@0.5"}, []string{"jobs.a -28"}, ""},
		{"packed", []string{"jobs.a:5:-2:-0.5|c"}, []string{"jobs.a 2.5"}, ""},
		{"tags", []string{"jobs.a:-5|c|#x:y", "jobs.a:2|c"}, []string{"jobs.a 2", "jobs.a.x.y -5"}, ""},
		{"is-a-gauge", []string{"jobs.a:5|c", "jobs.a:2|g", "jobs.a:-3|c:+1|g", "jobs.a:-1|g"}, []string{"jobs.a -1"}, ""},
		{"one-line", []string{"jobs.a:9|g:-2|c:1|ms"}, []string{"jobs.a 7", "jobs.a_histogram count=1 sum=1"}, ""},
		{"others", []string{"jobs:1|c", "jobs:-1|c", "other:-1|c"}, []string{"jobs 1"}, "negative_counter"},
		{"others-known", []string{"jobs:1|c", "jobs:2|c", "jobs:-1|c"}, []string{"jobs 3"}, "negative_counter"},
		{"timers", []string{"jobs.a:-1|ms", "jobs.a:1|c:-1|ms"}, nil, "negative_timer"},
		{"range", []string{"jobs.a:-9007199254740993|c|@0.5", "jobs.a:1|c", "jobs.a:-1e300|c"}, []string{"jobs.a 1"}, "out_of_range"},
		{"finite", []string{"jobs.a:1.7e308|g", "jobs.a:1.7e308|g:9e15|c:+1e308|g"}, []string{"jobs.a 1.7e+308"}, "out_of_range"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, Config{GaugeBacked: gaugeBacked})
			for _, in := range tt.in {
				r.send(in)
			}
			r.want(tt.want...)
			r.conserved()
			for reason, n := range r.rejected() {
				if n > 0 && reason != tt.rejected {
					t.Errorf("%d lines rejected as %s", n, reason)
				}
			}
			if tt.rejected != "" && r.rejected()[tt.rejected] == 0 {
				t.Errorf("no line rejected as %s: %v", tt.rejected, r.rejected())
			}
		})
	}
}

// TestGaugeBackedCountersOverLimit checks that a limit applies to them as to
// gauges, and that invalid values are still rejected.
func TestGaugeBackedCountersOverLimit(t *testing.T) {
	r := newRig(t, Config{GaugeBacked: func(name string) bool { return name == "down" }, Limits: Limits{Series: 1}})
	r.send("first:1|c\ndown:-1|c\ndown:-1|c\nup:2|c\nup:-1|c\nup:-1|c")
	r.want("first 1", "overflow.counter 2")
	if rejected := r.rejected()["negative_counter"]; rejected != 2 {
		t.Errorf("%d lines rejected, want 2", rejected)
	}
	r.conserved()
}

// TestGaugeBackedCounterBehindATimer sends a line whose first sample is no counter, the
// second time from the cache.
func TestGaugeBackedCounterBehindATimer(t *testing.T) {
	r := newRig(t, Config{GaugeBacked: func(name string) bool { return name == "down" }})
	for range 2 {
		r.send("down:1|ms:-1|c")
	}
	r.want("down count=2 sum=2", "down_gauge -2")
	r.conserved()
}

func TestExplainGaugeBackedCounter(t *testing.T) {
	r := newRig(t, Config{GaugeBacked: func(name string) bool { return name == "down" }})
	if e := r.Explain([]byte("down:-1|c")); e.Reason != "" || e.Samples[0].Kind != "gauge" {
		t.Errorf("got %+v", e)
	}
	if e := r.Explain([]byte("up:-1|c")); e.Reason != "negative_counter" {
		t.Errorf("got %+v", e)
	}
}
