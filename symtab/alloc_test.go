//go:build !race && !purego

package symtab

import (
	"strings"
	"testing"
)

func TestAllocs(t *testing.T) {
	tab := New(Options{})
	tab.EnableRecent()
	name := "cluster.backend.upstream_rq_time"
	raw := []byte(name)
	enc := tab.AppendEncode(nil, name)
	other := tab.AppendEncode(nil, "cluster.frontend.upstream_rq_time")
	lit := tab.AppendLiteral(nil, "a.b")
	buf := make([]byte, 0, 256)
	tab.CountLookup(name)
	off := New(Options{})
	long := strings.Repeat("x", 200)
	tests := []struct {
		name string
		f    func()
	}{
		{"AppendEncode and Release", func() { buf = tab.AppendEncode(buf[:0], name); tab.Release(buf) }},
		{"AppendEncodeBytes", func() { buf = tab.AppendEncodeBytes(buf[:0], raw) }},
		{"AppendLiteral", func() { buf = tab.AppendLiteral(buf[:0], name) }},
		{"AppendJoin", func() { buf = tab.AppendJoin(buf[:0], enc, lit, other) }},
		{"AppendText", func() { buf = tab.AppendText(buf[:0], enc) }},
		{"EqualText", func() { sinkBool = tab.EqualText(enc, name) }},
		{"Retain and Release", func() { tab.Retain(enc); tab.Release(enc) }},
		{"Segments", func() {
			for c := tab.Segments(enc); c.Next(); {
				sinkInt += len(c.Text())
			}
		}},
		{"Hash", func() { sinkInt = int(tab.Hash(long)) }},
		{"CountLookup, on, known name", func() { tab.CountLookup(name) }},
		{"CountLookup, off", func() { off.CountLookup(long) }},
	}
	for _, tt := range tests {
		if got := testing.AllocsPerRun(200, tt.f); got != 0 {
			t.Errorf("%s: %v allocations, want 0", tt.name, got)
		}
	}
}

// TestTokenCost bounds the memory of a token and checks that tokens are no heap
// objects.
func TestTokenCost(t *testing.T) {
	const n, length = 100_000, 12
	before := heap()
	tab := New(Options{})
	var buf []byte
	name := []byte("token_000000")
	for i := range n {
		for j, v := length-1, i; j >= length-6; j-- {
			name[j] = byte('0' + v%10)
			v /= 10
		}
		buf = tab.AppendEncodeBytes(buf[:0], name)
	}
	after := heap()
	if got := tab.NumSymbols(); got != n {
		t.Fatalf("NumSymbols() = %d, want %d", got, n)
	}
	bytes := float64(after.HeapAlloc-before.HeapAlloc) / n
	objects := float64(after.HeapObjects-before.HeapObjects) / n
	t.Logf("%.1f bytes and %.4f objects per token of %d bytes", bytes, objects, length)
	if bytes > length+36 {
		t.Errorf("%.1f bytes per token of %d bytes, want at most %d", bytes, length, length+36)
	}
	if objects > 0.01 {
		t.Errorf("%.4f objects per token, want at most 0.01", objects)
	}
}
