package statsd

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/statsd/line"
)

// keyFor returns the key of a line.
func keyFor(t testing.TB, tab *seriesCache, text string) (lineKey, *line.Line) {
	t.Helper()
	var l line.Line
	if r := line.New(line.Config{TagContainer: true}).Split(&l, []byte(text)); r != line.OK {
		t.Fatal(text, r)
	}
	return tab.keyOf(&l), &l
}

// TestSeriesCacheAgainstMap does random things to a table and a map.
func TestSeriesCacheAgainstMap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	tab := newSeriesCache(1 << 20)
	model := map[string]uint32{}
	for i := range uint32(50_000) {
		text := fmt.Sprintf("name%d,k=%d:1|c|#a:%d", rnd.IntN(3000), rnd.IntN(2), rnd.IntN(3))
		k, _ := keyFor(t, tab, text)
		s := tab.find(&k, line.Counter)
		want, known := model[text]
		if (s != nil) != known || known && s.cell != want {
			t.Fatalf("%s: found %v, want %d, %v", text, s, want, known)
		}
		switch {
		case s == nil:
			if tab.put(&k, line.Counter, cacheEntry{cell: i}) {
				t.Fatal("evicted with room left")
			}
			model[text] = i
		case rnd.IntN(2) == 0:
			tab.forget(s)
			delete(model, text)
		}
		if tab.used != len(model) {
			t.Fatalf("%d in use, want %d", tab.used, len(model))
		}
	}
	for text, want := range model {
		k, _ := keyFor(t, tab, text)
		if s := tab.find(&k, line.Counter); s == nil || s.cell != want {
			t.Fatalf("%s is lost", text)
		}
		if s := tab.find(&k, line.Gauge); s != nil {
			t.Fatalf("%s is known as a gauge", text)
		}
	}
}

func TestSeriesCacheEviction(t *testing.T) {
	tab := newSeriesCache(1000)
	hot, _ := keyFor(t, tab, "hot:1|c")
	tab.put(&hot, line.Counter, cacheEntry{cell: 7})
	for i := range 100_000 {
		k, _ := keyFor(t, tab, fmt.Sprintf("cold.%d.%s:1|c", i, strings.Repeat("x", i%50)))
		tab.put(&k, line.Counter, cacheEntry{})
		if s := tab.find(&hot, line.Counter); s == nil || s.cell != 7 {
			t.Fatalf("the one that is used all the time went after %d others", i)
		}
		if tab.used > 1000 || tab.live > tab.maxBytes() {
			t.Fatalf("%d slots, %d bytes in use", tab.used, tab.live)
		}
	}
	bytes := 0
	for _, c := range tab.chunks {
		bytes += cap(c)
	}
	if bytes > 8*keyChunk || len(tab.slots) > 2048 {
		t.Errorf("%d bytes of keys, %d slots for 1000 spellings", bytes, len(tab.slots))
	}
}

func TestSeriesCacheKeepsFewRejected(t *testing.T) {
	tab := newSeriesCache(1000)
	for i := range 2000 {
		k, _ := keyFor(t, tab, fmt.Sprintf("n%d:1|c", i))
		tab.put(&k, line.Counter, cacheEntry{reason: line.NameTooLong})
	}
	if tab.negative != 250 || tab.used != 250 {
		t.Errorf("%d rejected of %d, want 250", tab.negative, tab.used)
	}
}

func TestSeriesCacheLongKeys(t *testing.T) {
	tab := newSeriesCache(100)
	for i := range 1000 {
		k, _ := keyFor(t, tab, fmt.Sprintf("n%d:1|c|#%s", i, strings.Repeat("x,", 2000)))
		tab.put(&k, line.Counter, cacheEntry{cell: uint32(i)})
		if s := tab.find(&k, line.Counter); s == nil || s.cell != uint32(i) {
			t.Fatalf("key %d is not found", i)
		}
		if tab.live > tab.maxBytes() {
			t.Fatalf("%d bytes of keys, at most %d", tab.live, tab.maxBytes())
		}
	}
}

// TestLineKeysDiffer has lines whose keys hold nearly the same bytes.
func TestLineKeysDiffer(t *testing.T) {
	tab := newSeriesCache(1000)
	texts := []string{"a:1|c", "a:1|c|#", "a:1|c|#|#", "a:1|c|#x", "a:1|c|##x", "a:1|c|#|#x", "a:1|c|#x|#", "a:1|c|c:x", "a:1|c|c:", "a:1|c|#x|c:x", "a,x=1:1|c", "ax:1|c"}
	for i, text := range texts {
		k, _ := keyFor(t, tab, text)
		if s := tab.find(&k, line.Counter); s != nil {
			t.Errorf("%s equals %s", text, texts[s.cell])
		}
		tab.put(&k, line.Counter, cacheEntry{cell: uint32(i)})
		if got := string(tab.key(tab.find(&k, line.Counter))); !k.equal([]byte(got)) {
			t.Errorf("%s: key %q", text, got)
		}
	}
	// Equal hashes are not enough.
	for i := range texts {
		for j := range texts {
			a, _ := keyFor(t, tab, texts[i])
			b, _ := keyFor(t, tab, texts[j])
			if a.equal(b.append(nil)) != (i == j) {
				t.Errorf("%s and %s", texts[i], texts[j])
			}
		}
	}
}
