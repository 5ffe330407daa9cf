//go:build linux && seeded

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fault is a change of the sources that a cell of the matrix must find.
type fault struct {
	name, file, old, new string // file below the top of the module
	cell                 string // of the matrix, finds it
}

// faults returns faults of the protocol and of the server's part in it.
func faults() []fault {
	const hot, parent, child, link = "server/hotrestart.go", "server/hotrestart/parent.go", "server/hotrestart/child.go", "server/hotrestart/link.go"
	return []fault{
		{"flush-not-resumed", hot, "	if committed {\n		f.s.flusher.Resume()\n	}\n", "", "old.commit.answered/kill-new"},
		{"statsd-not-resumed", hot, "			f.s.statsd.Resume()\n", "", "old.drain.answered/kill-new"},
		{"admin-not-resumed", hot, "			f.s.admin.Resume()\n", "", "old.drain.answered/kill-new"},
		{"export-kept", hot, "	f.export, f.committed = nil, false\n", "	f.committed = false\n", "new.stats.answered/kill-new"},
		{"export-not-cut", hot, "	f.export.Cut()\n", "", "none/none"},
		{"both-flush", hot, "	f.s.flusher.Suspend()\n", "", "none/none"},
		{"never-acknowledged", hot, "		f.export.Ack()\n", "", "old.terminate.asked/kill-new"},
		{"connections-not-handed-over", hot, "return handoff.Connection(hotrestart.Connection(c))", "return false", "none/none"},
		{"sets-exported", hot, "f.s.statsd.IsSet(h) || yield(h)", "yield(h)", "none/none"},
		{"gauges-not-exported", hot, "f.s.statsd.IsSet(h) || yield(h)", "f.s.statsd.IsSet(h) || h.Kind == store.KindGauge || yield(h)", "none/none"},
		{"refusal-ignored", hot, "if err != nil && !parentEnded(err) {\n			return nil,", "if false {\n			return nil,", "old.commit.asked/hang"},
		{"stopped-before-it-serves", hot, "	if !h.stop() && !h.inherits() {\n		h.abandon()\n		return nothing\n	}\n", "	h.stop()\n", "new.stats.sending/term-new"},
		{"old-not-ended", hot, "		case <-expired.C:\n			h.endParent()\n", "		case <-expired.C:\n", "none/none"},
		{"dead-successor-serves", parent, "p.committed && (p.cfg.alive(next, lost(err)) || p.cfg.alive(next+1, true))", "p.committed && next > 0", "old.commit.answered/kill-new"},
		{"live-successor-is-dead", parent, "p.committed && (p.cfg.alive(next, lost(err)) || p.cfg.alive(next+1, true))", "next == 0", "old.commit.answered/hang"},
		{"grandchild-ignored", parent, " || p.cfg.alive(next+1, true)", "", "third/hang-first"},
		{"drained-too-early", parent, "		if err := sendSockets(l, process); err != nil {", "		process.Drain()\n		if err := sendSockets(l, process); err != nil {", "new.stats.sending/hang"},
		{"last-socket-not-sent", parent, "	for _, s := range all {\n		for rest := s.Files; err == nil; {", "	for i, s := range all {\n		for rest := s.Files; err == nil && i < len(all)-1; {", "none/none"},
		{"batches-go-on", parent, "p.link, p.with, p.committed, p.batch, p.acked, p.quiet = l, with, false, 0, 0, make(chan struct{})", "p.link, p.with, p.committed, p.quiet = l, with, false, make(chan struct{})", "old.drain.answered/kill-new"},
		{"commitment-kept", parent, "		process.Commit()\n	}\n	p.committed = true\n", "		process.Commit()\n	}\n", "old.commit.answered/hang"},
		{"no-acknowledgement", child, "			_ = c.link.send(tellAck, binary.AppendUvarint(nil, c.told)) // the next question repeats it\n", "", "new.ack.sending/kill-new"},
		{"repeated-message-read-twice", link, "case number == l.received+1:", "case number == l.received+1 || number == l.received:", "old.stat.sending/repeat"},
		{"path-removed", "statsd/handoff.go", "		l.path.Store(nil)\n", "", "none/none"},
		{"settled-part-lost", "store/import.go", "		im.s.settle(c, h.Settled)\n", "", "none/none"},
		{"parcels-not-returned", hot, "h.s.flusher.Release(err == nil)", "h.s.flusher.Release(true)", "old.parcel.sending/hang/dead-sink"},
		{"parcels-sent-twice", hot, "h.s.flusher.Release(err == nil)", "h.s.flusher.Release(false)", "old.bye.sending/pause/dead-sink"},
		{"parcels-not-sent", parent, "t.err = p.sendParcels(t.link, process.Parcels())", "t.err = p.sendParcels(t.link, process.Parcels()[:0])", "none/none/dead-sink"},
		{"samples-lost", "store/flush.go", "o.HistogramsOnly && b.variant != variantHistogram", "o.HistogramsOnly", "none/none"},
	}
}

// TestSeededFaults puts faults into the program, one by one, and checks that the
// take-over matrix finds each of them, and nothing without them. It builds the program for each.
func TestSeededFaults(t *testing.T) {
	top, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	cells := make(map[string]bool)
	t.Run("faults", func(t *testing.T) {
		for _, f := range faults() {
			cells[regexp.QuoteMeta(f.cell)] = true
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				if out, failed := runCell(t, f.build(t, top), regexp.QuoteMeta(f.cell), "10s"); !failed {
					t.Errorf("%s does not find it:\n%s", f.cell, out)
				}
			})
		}
	})
	var all []string
	for c := range cells {
		all = append(all, c)
	}
	bin := (&fault{}).build(t, top)
	if out, failed := runCell(t, bin, strings.Join(all, "|"), "30s"); failed {
		t.Errorf("the cells fail without a fault:\n%s", out)
	}
}

// runCell runs cells of the matrix in another process and reports whether they fail.
func runCell(t *testing.T, bin, cells, patience string) (out []byte, failed bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestTakeOverMatrix$", "-matrix", "-matrix-binary", bin, "-matrix-cells", "^("+cells+")$", "-matrix-patience", patience)
	out, err := cmd.CombinedOutput()
	failed = strings.Contains(string(out), "--- FAIL: TestTakeOverMatrix/cells/")
	if (err != nil) != failed {
		t.Fatalf("the cells %s cannot be run: %v\n%s", cells, err, out)
	}
	return out, failed
}

// build returns the program with failpoints and the fault, if it has one.
func (f *fault) build(t *testing.T, top string) (bin string) {
	t.Helper()
	dir := t.TempDir()
	bin = filepath.Join(dir, "statsd-admin")
	args := []string{"build", "-tags", "failpoint", "-o", bin}
	if f.file != "" {
		path := filepath.Join(top, f.file)
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(source), f.old); n != 1 {
			t.Fatalf("%s has %d times %q, want once", f.file, n, f.old)
		}
		changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
		replace, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
		if err != nil {
			t.Fatal(err)
		}
		for name, content := range map[string][]byte{changed: []byte(strings.Replace(string(source), f.old, f.new, 1)), overlay: replace} {
			if err := os.WriteFile(name, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		args = append(args, "-overlay", overlay)
	}
	if out, err := exec.Command("go", append(args, ".")...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}
