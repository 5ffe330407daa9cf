package browser

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/store"
)

// TestEveryColumnSorts sorts by each column in both directions, and expects the order
// of the values, in the page and in the server's table.
func TestEveryColumnSorts(t *testing.T) {
	t.Parallel()
	type stat struct {
		name, kind          string
		value, rate, change float64
		changed             int // flush
		add                 func(n uint64)
	}
	s := newShelf(t)
	random := random(t)
	var list []*stat
	for i := range 30 {
		x := &stat{name: fmt.Sprintf("sorted.%c%02d", 'a'+random.IntN(5), i), kind: []string{"counter", "gauge", "histogram"}[i%3], changed: -1}
		switch x.kind {
		case "counter":
			x.add = s.store.Root().Counter(x.name).Add
		case "gauge":
			g := s.store.Root().Gauge(x.name)
			x.add = func(n uint64) { g.Set(uint64(x.value) + n) }
		case "histogram":
			h := s.store.Root().Histogram(x.name, store.Milliseconds)
			x.add = func(n uint64) {
				for range n {
					h.Record(7)
				}
			}
		}
		list = append(list, x)
	}
	grow := func(flush int, most int) {
		for _, x := range list {
			n := random.IntN(most)
			if x.rate = 0; n > 0 {
				x.add(uint64(n))
				x.value, x.changed = x.value+float64(n), flush
			}
			if flush > 0 {
				x.change += float64(n)
			}
			if x.kind != "gauge" {
				x.rate = float64(n)
			}
		}
		s.flush()
	}
	grow(0, 50)
	zero := s.now.UnixMilli()
	grow(1, 4)
	grow(2, 3)
	grow(3, 2)
	p := open(t)
	p.ready(fmt.Sprintf("%s/ui/stats?filter=^sorted[.]&zero=%d", s.URL, zero))
	for column, by := range map[string]func(a, b *stat) int{
		"name":    func(a, b *stat) int { return 0 },
		"type":    func(a, b *stat) int { return strings.Compare(a.kind, b.kind) },
		"value":   func(a, b *stat) int { return cmp.Compare(a.value, b.value) },
		"rate":    func(a, b *stat) int { return cmp.Compare(a.rate, b.rate) },
		"delta":   func(a, b *stat) int { return cmp.Compare(a.change, b.change) },
		"changed": func(a, b *stat) int { return cmp.Compare(a.changed, b.changed) },
	} {
		for _, direction := range []string{"ascending", "descending"} {
			link := fmt.Sprintf(`#stats [data-k="sort-%s"]`, column)
			sorted := fmt.Sprintf("document.querySelector(%q).closest('th').ariaSort === %q && !document.querySelector('[aria-busy]')", link, direction)
			for range 2 {
				if !eval[bool](p, sorted) {
					was := eval[string](p, fmt.Sprintf("String(document.querySelector(%q).closest('th').ariaSort)", link))
					p.press(link)
					p.until(fmt.Sprintf("String(document.querySelector(%q).closest('th').ariaSort) !== %q && !document.querySelector('[aria-busy]')", link, was))
				}
			}
			slices.SortFunc(list, func(a, b *stat) int {
				c := by(a, b)
				if column == "name" {
					c = strings.Compare(a.name, b.name)
				}
				if direction == "descending" {
					c = -c
				}
				return cmp.Or(c, strings.Compare(a.name, b.name))
			})
			var want []string
			for _, x := range list {
				want = append(want, x.name)
			}
			shown := eval[string](p, names)
			if shown != strings.Join(want, " ") {
				t.Errorf("%s by %s: %s, want %q", direction, column, shown, want)
			}
			exported := strings.Split(strings.TrimSpace(eval[string](p, "fetch(location.href + '&tsv=stats').then((r) => r.text())")), "\n")[1:]
			for i := range exported {
				exported[i], _, _ = strings.Cut(exported[i], "\t")
			}
			if got := strings.Join(exported, " "); got != shown {
				t.Errorf("%s by %s the server has %s, the page %s", direction, column, got, shown)
			}
		}
	}
}
