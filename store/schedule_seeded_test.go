//go:build schedule && seeded && gc && go1.26 && !go1.27 && amd64 && !race && !msan && !asan && !purego

package store

import (
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/schedule"
)

// TestSeededBugs puts bugs into the package, one by one, and checks that
// TestSchedules fails.
func TestSeededBugs(t *testing.T) {
	schedule.CheckBugs(t, []schedule.Bug{
		{"mark-first", "word_fast.go", "	w.shared.Add(n)\n	w.mark(p)\n	p.heat++", "	w.mark(p)\n	schedule.Point()\n	w.shared.Add(n)\n	p.heat++"},
		{"no-mark", "word_fast.go", "	w.shared.Add(n)\n	w.mark(p)\n	p.heat++", "	w.shared.Add(n)\n	p.heat++"},
		{"gauge-mark-first", "word_fast.go", "	w.shared.Store(v)\n	w.mark(w.page())", "	w.mark(w.page())\n	schedule.Point()\n	w.shared.Store(v)"},
		{"owned-mark-first", "word_fast.go", "			*word += n\n			if schedule.Enabled {\n				schedule.Point()\n			}\n			*touch = 1\n", "			*touch = 1\n			schedule.Point()\n			*word += n\n"},
		{"owned-no-mark", "word_fast.go", "			*touch = 1\n", "			_ = touch\n"},
		{"unpinned-early", "word_fast.go", "			*word += n\n", "			v := *word + n\n			percpu.Release()\n			*word = v\n			percpu.Hold()\n"},
		{"marks-taken-late", "word_fast.go", "gather(atomic.SwapUint64(at, 0))", "gather(func() uint64 { marks := atomic.LoadUint64(at); schedule.Point(); atomic.StoreUint64(at, 0); return marks }())"},
		{"slots-not-summed", "word_fast.go", "			t += atomic.LoadUint64(&sp.words[i])\n", "			_ = sp\n"},
		{"slot-replaced", "word_fast.go", "	if atomic.LoadPointer(at) == nil {\n", "	if true {\n"},
		{"slot-without-lock", "word_fast.go", "	p.blk.hotMu.Lock()\n	defer p.blk.hotMu.Unlock()\n", ""},
		{"base-read-late", "counter.go", "	return b.pg.total(i) - from\n", "	total := b.pg.total(i)\n	schedule.Point()\n	if base := b.base.Load(); base != nil {\n		from = base[i].total.Load()\n	}\n	return total - from\n"},
		{"gauge-value-first", "flush.go", "			b.takeGauges(&b.changed, &final, ns[i])\n			snap.addGauges(b, &b.changed)\n", "			b.pg.eachTouched(&b.changed, ns[i])\n			snap.addGauges(b, &b.changed)\n			b.takeGauges(&b.changed, &final, ns[i])\n"},
		{"latch-late", "flush.go", "			b.latch[i] = total\n", "			b.latch[i] = b.pg.total(i)\n"},
		{"ended-not-reported", "flush.go", "			b.changed.setAll(ended)\n			b.changed.clearAll(&final)\n", "			b.changed.clearAll(&final)\n			if ended != nil {\n				b.changed.clearAll(ended)\n			}\n"},
		{"asked-not-noted", "flush.go", "		b.asked.set(i)\n", ""},
		{"asked-noted-late", "flush.go", "		b.asked.set(i)\n		schedule.Point()\n	}\n	return !b.ending.has(i)\n", "		ending := b.ending.has(i)\n		schedule.Point()\n		b.asked.set(i)\n		return !ending\n	}\n	return !b.ending.has(i)\n"},
		{"asked-read-first", "flush.go", "	b.ending.set(i) // before asked is read; see block.lease\n	schedule.Point()\n	if b.asked.has(i) ||", "	asked := b.asked.has(i)\n	schedule.Point()\n	b.ending.set(i)\n	if asked ||"},
		{"asked-forgotten", "flush.go", "!b.fresh.has(i)) && !asked && b.endable(i) {", "!b.fresh.has(i)) && b.endable(i) {"},
		{"unsent-dropped", "removal.go", "			s.unsent = append(s.unsent, x)\n", "			b.final.set(i)\n			gone = append(gone, x)\n"},
		{"carried-late", "watch.go", "	c.setAll(&marked)\n	b.pg.dropTouched(&marked)\n", "	b.pg.dropTouched(&marked)\n	schedule.Point()\n	c.setAll(&marked)\n"},
		{"carried-read-first", "removal.go", "		written := b.pg.written(i) // first: Poll moves marks from there to carried\n		schedule.Point()\n		return written || b.carries(i)\n", "		carries := b.carries(i)\n		schedule.Point()\n		return carries || b.pg.written(i)\n"},
		{"released-under-view", "removal.go", "s.removed[n].epoch < oldest", "s.removed[n].epoch <= oldest"},
		{"final-too-early", "flush.go", "			b.changed.setAll(ended)\n			b.changed.clearAll(&final)\n", "			b.final.setAll(ended)\n			final = b.final.copy()\n			b.changed.setAll(ended)\n			b.changed.clearAll(&final)\n"},
	})
}
