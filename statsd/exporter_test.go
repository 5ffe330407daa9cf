package statsd

import (
	"fmt"
	"slices"
	"strings"
	"testing"

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
	r := newRig(t, Config{ExporterMetrics: true})
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
	golden(t, "exporter", exporterStats(r))

	r.flush()
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
