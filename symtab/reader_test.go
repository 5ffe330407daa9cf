package symtab

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/statsd-admin/statsd-admin/internal/prefetch"
)

func TestReaderReadsWhatAppendTextDoes(t *testing.T) {
	tab := New(Options{})
	rnd := rand.New(rand.NewPCG(1, 2))
	parts := []string{"a", "b", "", "cluster", "service_17", "x.y"}
	for i := range 600 { // more than the symbols that a reader remembers
		parts = append(parts, fmt.Sprintf("part%d", i))
	}
	var names [][]byte
	for range 3000 {
		var enc []byte
		for range rnd.IntN(6) {
			part := parts[rnd.IntN(len(parts))]
			next := tab.AppendEncode(nil, part)
			if rnd.IntN(5) == 0 {
				next = tab.AppendLiteral(nil, part)
			}
			enc = tab.AppendJoin(nil, enc, next)
		}
		if enc == nil {
			enc = tab.AppendEncode(nil, "")
		}
		names = append(names, enc)
		if len(enc) > 2 && rnd.IntN(3) > 0 { // neighbors that begin alike
			for range rnd.IntN(5) {
				names = append(names, tab.AppendJoin(nil, enc, tab.AppendEncode(nil, parts[rnd.IntN(len(parts))])))
			}
		}
	}
	r := tab.NewReader()
	for i, enc := range names {
		r.missed = readAhead
		r.Prefetch(len(names)-i, func(j int) []byte { return names[i+j] })
		got, want := string(r.AppendText([]byte("> "), enc)), string(tab.AppendText([]byte("> "), enc))
		if got != want {
			t.Fatalf("name %d: %q, want %q", i, got, want)
		}
	}
}

// TestReaderPrefetches expects hints for the texts that are read next, but only if those
// before were different.
func TestReaderPrefetches(t *testing.T) {
	if !prefetch.Enabled {
		return // no hints there
	}
	tab := New(Options{})
	for i := range 300 { // numbers of two bytes for the parts before the last
		tab.AppendEncode(nil, fmt.Sprint("other", i))
	}
	var names [][]byte
	for i := range 1000 {
		names = append(names, tab.AppendEncode(nil, fmt.Sprintf("a.b.last%d", i*i)))
	}
	r := tab.NewReader()
	next := func(j int) []byte { return names[j] }
	r.Prefetch(20, next)
	if r.hints != (prefetch.Batch{}) {
		t.Error("hints without misses")
	}
	for _, enc := range names[500:520] {
		r.AppendText(nil, enc)
	}
	r.Prefetch(20, next)
	for j := range 20 {
		text := tab.Token(lastSymbol(names[j]))
		if want := fmt.Sprintf("last%d", j*j); string(text) != want || r.hints[j] != uintptr(unsafe.Pointer(&text[0])) {
			t.Errorf("name %d: %q, %x", j, text, r.hints[j])
		}
	}
	// Names whose texts are known are left out, wherever they stand.
	for _, j := range []int{0, 3, 19} {
		r.AppendText(nil, tab.AppendEncode(nil, "x"))
		r.AppendText(nil, tab.AppendEncode(nil, "a.b.y"))
		r.AppendText(nil, names[j])
	}
	r.missed = 20
	r.Prefetch(20, next)
	found := 0
	for j := range 20 {
		if j == 0 || j == 3 || j == 19 {
			continue
		}
		if r.hints[found] != uintptr(unsafe.Pointer(&tab.Token(lastSymbol(names[j]))[0])) {
			t.Errorf("hint %d is not for name %d", found, j)
		}
		found++
	}
	if n := testing.AllocsPerRun(100, func() { r.missed = 20; r.Prefetch(20, next) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestReaderAllocatesNothing(t *testing.T) {
	tab := New(Options{})
	a, b := tab.AppendEncode(nil, "one.two.three"), tab.AppendEncode(nil, "one.two.four.five")
	r, buf := tab.NewReader(), make([]byte, 0, 100)
	r.AppendText(buf, b)
	if n := testing.AllocsPerRun(100, func() {
		buf = r.AppendText(r.AppendText(buf[:0], a), b)
	}); n != 0 || string(buf) != "one.two.threeone.two.four.five" {
		t.Errorf("%v allocations for %q", n, buf)
	}
}
