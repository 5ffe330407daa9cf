package statsd

import (
	"fmt"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"strings"
	"testing"
	"time"
)

func TestEventsAreKept(t *testing.T) {
	r := newRig(t, Config{Events: 3})
	for i := range 5 {
		r.send(fmt.Sprintf(`_e{2,4}:t%d|a\nb|t:warning|#k:v`, i))
	}
	r.send("_e{2,4}:bad")
	rep := r.Report()
	var got []string
	for _, e := range rep.Events {
		got = append(got, fmt.Sprint(e.Title, " ", e.Text, " ", e.Alert, " ", e.Tags, " ", e.Received.Equal(r.now)))
	}
	if want := "[t2 a\nb warning [k:v] true t3 a\nb warning [k:v] true t4 a\nb warning [k:v] true]"; fmt.Sprint(got) != want {
		t.Errorf("events\n got %v\nwant %v", got, want)
	}
	if l := rep.Listeners[0]; l.Events != 5 || l.Rejected["bad_event"] != 1 {
		t.Errorf("%+v", l)
	}
	if len(r.stats()) != 0 {
		t.Errorf("events made stats: %v", r.stats())
	}
	r.conserved()
}

// TestEventsAreCounted by alert type and status.
func TestEventsAreCounted(t *testing.T) {
	r := newRig(t, Config{})
	for i, alert := range []string{"info", "error", "warning", "success"} {
		for range i + 1 {
			r.send("_e{1,1}:a|b|t:" + alert + "\n_sc|a|" + fmt.Sprint(i))
		}
		if got := r.store.Root().Counter("ingest.events.alert_type." + alert).Total(); got != uint64(i+1) {
			t.Errorf("%d events of type %s, want %d", got, alert, i+1)
		}
	}
	r.send("_e{1,1}:a|b\n_e{1,1}:a|b|t:other")
	if got := r.store.Root().Counter("ingest.events.alert_type.info").Total(); got != 3 {
		t.Errorf("%d events of type info, want 3: those that say nothing, or nonsense, are", got)
	}
	for i, status := range []string{"ok", "warning", "critical", "unknown"} {
		if got := r.store.Root().Counter("ingest.service_checks.status." + status).Total(); got != uint64(i+1) {
			t.Errorf("%d checks with status %s, want %d", got, status, i+1)
		}
	}
	r.conserved()
}

func TestChecksKeepTheLastState(t *testing.T) {
	r := newRig(t, Config{Checks: 2})
	show := func() string {
		var s []string
		for _, c := range r.Report().Checks {
			s = append(s, fmt.Sprintf("%s@%s%v=%d", c.Name, c.Host, c.Tags, c.Status))
		}
		return strings.Join(s, " ")
	}
	r.send("_sc|db|0|h:a\n_sc|db|1|h:b\n_sc|db|2|h:a")
	if got, want := show(), "db@b[]=1 db@a[]=2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	r.send("_sc|db|0|h:a|#x:2,a\n_sc|db|3|h:a|#a,x:2") // tags in another order: the same check
	if got, want := show(), "db@a[]=2 db@a[a x:2]=3"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if len(r.stats()) != 0 {
		t.Errorf("checks made stats: %v", r.stats())
	}
	r.conserved()
}

func TestCheckGauges(t *testing.T) {
	r := newRig(t, Config{CheckGauges: true})
	r.send("_sc|db.up|2|#x:1\n_sc|db.up|1|#x:1\n_sc|...|1\n_sc|" + strings.Repeat("n", 1025) + "|1\n_sc|a|1|#" + strings.Repeat("k", 129))
	r.want("db.up.x.1 1")
	if n := len(r.Report().Checks); n != 4 {
		t.Errorf("%d checks, want 4", n)
	}
	r.conserved()
}

// TestCheckGaugesOverLimit: a gauge that a limit forbids is counted as that, and
// the check is kept.
func TestCheckGaugesOverLimit(t *testing.T) {
	r := newRig(t, Config{CheckGauges: true, Limits: Limits{Series: 1}})
	r.send("_sc|a|1\n_sc|b|2\n_sc|b|2\n_sc|a|3")
	r.want("a 3")
	if n := r.metrics.limited[limitSeries].Total(); n != 2 || len(r.Report().Checks) != 2 {
		t.Errorf("%d were kept out, %d checks", n, len(r.Report().Checks))
	}
	r.conserved()
}

func TestNothingKept(t *testing.T) {
	r := newRig(t, Config{Events: -1, Checks: -1, ForgetRejected: true})
	r.send("_e{1,1}:a|b\n_sc|db|0\nbad")
	rep := r.Report()
	if len(rep.Events)+len(rep.Checks)+len(rep.Rejected[0].Last) != 0 || rep.Rejected[0].Count != 1 {
		t.Errorf("%+v", rep)
	}
	r.conserved()
}

func TestRejectedLinesAreKept(t *testing.T) {
	r := newRig(t, Config{})
	for i := range 25 {
		r.now = r.now.Add(time.Second)
		r.send(fmt.Sprintf("a:x%d|c\nb", i))
	}
	r.send(strings.Repeat("z", 600))
	rep := r.Report()
	if len(rep.Rejected) != 2 {
		t.Fatalf("%d reasons", len(rep.Rejected))
	}
	colon, value := rep.Rejected[0], rep.Rejected[1]
	if colon.Reason != "missing_colon" || colon.Count != 26 || value.Reason != "bad_value" || value.Count != 25 {
		t.Errorf("%s %d, %s %d", colon.Reason, colon.Count, value.Reason, value.Count)
	}
	if len(value.Last) != 20 || value.Last[0].Line != "a:x5|c" || value.Last[19].Line != "a:x24|c" {
		t.Errorf("last lines %v", value.Last)
	}
	want := report.RejectedLine{Time: r.now, Listener: "test", Source: "tester", Line: "a:x24|c"}
	if value.Last[19] != want {
		t.Errorf("got %+v, want %+v", value.Last[19], want)
	}
	if n := len(colon.Last[19].Line); n != 512 {
		t.Errorf("%d bytes of a long line are kept, want 512", n)
	}
}

func TestRejectedLinesAreLoggedRarely(t *testing.T) {
	var log logBuffer
	r := newRig(t, Config{Logger: log.logger()})
	for range 10 {
		r.send("\x1b[31ma\x00:" + strings.Repeat("x", 300) + "|c\na:1|zz")
	}
	r.now = r.now.Add(999 * time.Millisecond)
	r.send("a:x|c")
	r.now = r.now.Add(time.Millisecond)
	r.send("b:x|c\nb:x|c")
	got := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(got) != 3 {
		t.Fatalf("%d lines logged:\n%s", len(got), &log)
	}
	for i, want := range []string{
		`msg="statsd: line rejected" reason=bad_value listener=test source=tester`,
		`reason=bad_type listener=test source=tester line=a:1|zz`,
		`reason=bad_value listener=test source=tester line=b:x|c suppressed=10`,
	} {
		if !strings.Contains(got[i], want) {
			t.Errorf("line %d is\n%s\nwant %s", i, got[i], want)
		}
	}
	if strings.Contains(got[1], "suppressed") {
		t.Errorf("nothing was suppressed: %s", got[1])
	}
	if strings.Contains(got[0], "\x1b") || strings.Contains(got[0], "\x00") || strings.Count(got[0], "x") != 200-8+2 {
		t.Errorf("not escaped or not cut: %q", got[0])
	}
}

func TestLimitsAreLoggedRarely(t *testing.T) {
	var log logBuffer
	r := newRig(t, Config{Logger: log.logger(), Limits: Limits{Series: 1}})
	r.send("a:1|c\nb\x1b:1|c\nc:1|c\nd:1|c")
	r.now = r.now.Add(time.Minute)
	r.send("e:1|c\nf:1|c")
	if got, want := strings.Count(log.String(), `level=WARN msg="statsd: a limit prevents new stats" limit=series name=`), 2; got != want {
		t.Errorf("%d messages, want %d:\n%s", got, want, &log)
	}
	for _, name := range []string{"name=b_\n", "name=e\n"} { // not quoted twice
		if !strings.Contains(log.String(), name) {
			t.Errorf("the log has no %q:\n%s", name, &log)
		}
	}
}

// TestLogMayAskTheServer has a log that calls back, which it may: no lock is
// held while it is written to.
func TestLogMayAskTheServer(t *testing.T) {
	var r *rig
	asked := 0
	log := &callback{call: func() {
		asked++
		r.Flush(r.now)
		r.Sweep(true)
		_ = r.Report()
	}}
	r = newRig(t, Config{Logger: log.logger(), Limits: Limits{Series: 1}})
	r.send("bad\na:1|c\nb:1|c")
	if asked != 2 {
		t.Errorf("the log was written to %d times, want 2", asked)
	}
}
