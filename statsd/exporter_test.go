package statsd

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/store"
)

// exporterStats lists the stats in the namespace, sorted.
func exporterStats(r *rig) string {
	r.store.Flush(store.FlushOptions{}).Close()
	v := r.store.View()
	defer v.Close()
	var out []string
	for c := v.ByName(store.Scalars); c.Next(); {
		if strings.HasPrefix(string(c.Name()), ExporterNamespace+".") {
			out = append(out, fmt.Sprintf("%s %s", c.Name(), c.AppendValue(nil)))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n") + "\n"
}

func TestExporterMetrics(t *testing.T) {
	r := newRig(t, Config{ExporterMetrics: true, Version: "1.2.3", Revision: "abc"})
	tcp := &listener{name: "tcp", addr: address{scheme: "tcp", network: "tcp", framing: lines}}
	unix := &listener{name: "unix", addr: address{scheme: "unixgram", network: "unixgram", framing: datagrams}}
	for _, l := range []*listener{tcp, unix} {
		l.metrics = newListenerMetrics(r.store.Root(), l.name, l.addr)
		r.listeners = append(r.listeners, l)
	}
	// A line for every reason of statsd_exporter.
	r.send("hits:1|c|#a:b,c,:d\nhits:2|c|#a:b,c,:d\nrt:1:2|ms|#a:b\nsize:3|d\nuser:x|s\nlevel:4|g\n" +
		"hits:1|g\nhits:2|g\n" + // of another kind
		"a:x|c\na:1|c|@2\na,b=c:1|c|#d:e\nnothing\na:1|zz\na:-1|c\n:1|c\na::|c\n_e{1,1}:a|b|#x\n")
	tcp.metrics.connections.Add(3)
	tcp.metrics.end("closed", "error")
	tcp.metrics.end("closed", "eof")
	r.streamWorkers[0].chunk(tcp, []byte(strings.Repeat("x", 9000)+"\nhits:1|c\n"), source{})
	unix.metrics.packets.Add(5)
	r.l.metrics.drops.Add(7)
	if got := exporterStats(r); strings.Contains(got, "_total") {
		t.Errorf("before the first flush:\n%s", got)
	}
	r.flush()
	host := strings.NewReplacer(runtime.Version(), "GOVERSION", "goos."+runtime.GOOS, "goos.GOOS", "goarch."+runtime.GOARCH, "goarch.GOARCH")
	golden(t, "exporter", host.Replace(exporterStats(r)))

	r.flush()
	v := r.store.View()
	defer v.Close()
	for c := v.ByName(store.Scalars); c.Next(); {
		if name := string(c.Name()); strings.HasPrefix(name, ExporterNamespace+".") && r.store.DescriptionOf(&c).Help == "" {
			t.Errorf("%s has no help text", name)
		}
	}
	again := exporterStats(r)
	r.send("hits:1|c|#a:b")
	r.flush()
	for _, want := range []string{"events_total.type.counter 4", "lines_total 20", "tags_total 7", "udp_packets_total 2"} {
		want = ExporterNamespace + ".statsd_exporter_" + want + "\n"
		if strings.Contains(again, want) || !strings.Contains(exporterStats(r), want) {
			t.Errorf("one more line does not make %q of\n%s", want, again)
		}
	}
	r.Forget(func(string) bool { return true })
	r.flush()
	if got := exporterStats(r); !strings.Contains(got, "metrics_total.type.counter 0\n") || !strings.Contains(got, "lines_total 20\n") {
		t.Errorf("after all series are gone:\n%s", got)
	}
}

// TestExporterTotalsNeverFall: counts of a batch are published one after the other. A
// flush between them must not turn a counter back, as sinks would get a delta of nearly
// 2^64.
func TestExporterTotalsNeverFall(t *testing.T) {
	r := newRig(t, Config{ExporterMetrics: true})
	r.send("a:1|c\nb:1|c\nc:1|c")
	for _, step := range []struct{ events, mapped, want uint64 }{{0, 0, 3}, {0, 1, 3}, {1, 0, 3}, {1, 0, 4}} {
		r.metrics.byType[line.Counter].Add(step.events)
		r.metrics.actions[0].Add(step.mapped)
		r.flush()
		if want := fmt.Sprintf("events_unmapped_total %d\n", step.want); !strings.Contains(exporterStats(r), want) {
			t.Errorf("after %+v:\n%s", step, exporterStats(r))
		}
	}
}

// TestExporterConflictsAreBounded has more names in conflict than get a series.
func TestExporterConflictsAreBounded(t *testing.T) {
	r := newRig(t, Config{ExporterMetrics: true})
	for i := range maxConflicted + 10 {
		r.send(fmt.Sprintf("n%d:1|c\nn%d:1|ms", i, i))
	}
	r.flush()
	got := exporterStats(r)
	if n := strings.Count(got, "events_conflict_total"); n != maxConflicted+1 {
		t.Errorf("%d series of conflicts", n)
	}
	if want := "events_conflict_total.type.observer.metric_name.other 10\n"; !strings.Contains(got, want) {
		t.Errorf("no %q:\n%s", want, got)
	}
}

// TestExporterLines has the lines that statsd_exporter reads in another way.
func TestExporterLines(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"w.:1|c\na.b..:1|c\n.:1|c", "_ 1, a.b__ 1, w_ 1"},
		{"x:1|c|#bare,k:,#a:b,,:v", "x.a.b 1"},
		{"x:1|c|#a-b:1,a.b:2,ü:3,9:4", "x._.3._9.4.a_b.2 1"},
		{"x,a--b=1:1|c", "x.a_b.1 1"},
		{"x:1|c|#k:v|c:ci-7", "x.container_id.ci-7.k.v 1"},
		{"t:-1|ms", "t count=1 sum=-1"},
		{"x:1|c\nx:1|g", "x 1"},
	} {
		r := newRig(t, Config{Parse: ParseConfig{Exporter: true, TagContainer: true}, RejectConflicts: true})
		r.send(tt.in)
		if got := strings.Join(r.stats(), ", "); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.in, got, tt.want)
		}
	}
	r := newRig(t, Config{Parse: ParseConfig{Exporter: true}, RejectConflicts: true, ExporterMetrics: true})
	r.send("x:1|c|#bare,k:,,a:b\nx:1|g\nx:1|g")
	r.flush()
	got := exporterStats(r)
	for _, want := range []string{"tag_errors_total 3\n", "events_conflict_total.type.gauge.metric_name.x 2\n", "cache_gets_total 3\n", "cache_hits_total 1\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q:\n%s", want, got)
		}
	}
}

// TestUnitsOfOneHistogram: a histogram that gets timers and other observations shows
// all of them in seconds.
func TestUnitsOfOneHistogram(t *testing.T) {
	for in, want := range map[string]string{
		"a:1500|ms\na:2|h": "a count=2 sum=3500", // milliseconds, which the exposition divides
		"a:2|h\na:1500|ms": "a count=2 sum=3.5",
	} {
		r := newNamedRig(t, Config{}, naming.Rules{NetworkSeconds: true})
		r.send(in)
		r.want(want)
	}
}
