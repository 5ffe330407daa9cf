package statsd

import (
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/statsd/mapping"
)

func prefix(p string) func(string) bool {
	return func(name string) bool { return strings.HasPrefix(name, p) }
}

// TestFilters: filters apply to names as received, before rules, and lines that they
// drop are counted, also when they are known.
func TestFilters(t *testing.T) {
	r := newRig(t, Config{
		Rules: rulesOf(t, mapping.Config{Rules: []mapping.Rule{{Match: "app.*", Name: "mapped_$1"}}}),
		Filters: Filters{
			Allow: prefix("app."), Deny: prefix("app.debug"),
			Tags: []TagFilter{
				{Names: prefix("app.a"), Drop: []string{"host", "pod"}},
				{Names: prefix("app.ab"), Keep: []string{"zone"}},
			},
			Values: []TagValues{{Key: "user", Max: 2, Other: "other"}},
		},
	})
	const lines = "app.a:1|c|#host:x,zone:y,pod:z,os:l\napp.a:1|c|#host:w,zone:y,os:l\n" +
		"app.ab:1|c|#zone:y,os:l,host:x\napp.b:1|c|#host:x\n" +
		"app.debug.x:1|c|#a:b\napp.debug.x:1:2:3|ms\ndb.a:1|g\nmapped_a:1|c\n" +
		"app.u:1|c|#user:1\napp.u:1|c|#user:2\napp.u:1|c|#user:3\napp.u:1|c|#user:4\napp.u:1|c|#user:other\napp.u:1|c"
	for e := range strings.Lines(lines) { // remembers nothing
		r.Explain([]byte(e))
	}
	r.send(lines)
	r.send(lines)
	r.want("mapped_a.os.l.zone.y 4", "mapped_ab.zone.y 2", "mapped_b.host.x 2",
		"mapped_u 2", "mapped_u.user.1 2", "mapped_u.user.2 2", "mapped_u.user.other 6")
	r.conserved()
	f := r.metrics
	if deny, allow, replaced := f.filtered["deny"].Total(), f.filtered["allow"].Total(), f.tagValuesReplaced.Total(); deny != 8 || allow != 4 || replaced != 2 {
		t.Errorf("%d samples denied, %d not allowed, %d values replaced", deny, allow, replaced)
	}
	if n := r.Report().Listeners[0].Dropped; n != 8 {
		t.Errorf("%d lines dropped", n)
	}
	for line, want := range map[string]string{"db.a:1|g": "allow", "app.debug:1|c": "deny", "app.a:1|c": ""} {
		if x := r.Explain([]byte(line)).Samples[0]; x.Filter != want || x.Dropped != (want != "") {
			t.Errorf("%s: dropped %t by %q", line, x.Dropped, x.Filter)
		}
	}
	if got, want := r.Explain([]byte("app.u:1|c|#user:9")).Samples[0].Series, `mapped_u{user="other"}`; got != want {
		t.Errorf("explained as %s, want %s", got, want)
	}
}

// TestTagValuesWithoutMemory: no value is remembered when the budget is used up.
func TestTagValuesWithoutMemory(t *testing.T) {
	m := newMemory(1, func() int64 { return 0 })
	f := newValueFilter([]TagValues{{Key: "k", Max: 5, Other: "other"}}, &m)
	if f.holds(0, "a", true) || m.used.Load() != 0 {
		t.Error("a value is remembered")
	}
}
